/* Wraps the C library (LD_PRELOAD). It counts the calls that change files below PROVE_DIR, in their order, and does
   PROVE_ACT to the PROVE_N-th call: "kill", "torn" (half of a write, then killed), "short", or fail with "EIO", "ENOSPC"
   or "EINTR". Each call is a line in the file PROVE_LOG, if it is set. Child processes are not affected. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { path_max = 4096 };
static const char *dir, *act, *log_path;
static long wanted = -1, met;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void begin(void) {
    const char *number = getenv("PROVE_N");
    dir = getenv("PROVE_DIR");
    act = getenv("PROVE_ACT");
    log_path = getenv("PROVE_LOG");
    wanted = number ? atol(number) : -1;
    if (!act) act = "";
    unsetenv("LD_PRELOAD");
}

static int path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, path_max - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return 1;
}

static int below(const char *path) { return dir && !strncmp(path, dir, strlen(dir)); }

/* Whether a name in an open folder is below PROVE_DIR; fills in its path. */
static int names(int at, const char *name, char *path) {
    if (!dir || !name) return 0;
    if (name[0] == '/') {
        snprintf(path, path_max, "%s", name);
        return below(path);
    }
    char folder[path_max];
    if (at == AT_FDCWD) {
        if (!getcwd(folder, sizeof folder)) return 0;
    } else if (!path_of(at, folder)) {
        return 0;
    }
    if (snprintf(path, path_max, "%s/%s", folder, name) >= path_max) return 0;
    return below(path);
}

static int opened(int fd, char *path) { return dir && path_of(fd, path) && below(path); }

static void die(void) {
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

/* Count a call. 0: proceed. 1: fail with errno. 2: write half. 3: write half, then die. */
static int hit(const char *verb, const char *path) {
    pthread_mutex_lock(&guard);
    long number = ++met;
    if (log_path) {
        char line[path_max + 64];
        int size = snprintf(line, sizeof line, "%s %s\n", verb, path);
        int fd = syscall(SYS_openat, AT_FDCWD, log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (fd >= 0) {
            if (syscall(SYS_write, fd, line, (size_t)size) < 0) { /* no way to report it */ }
            syscall(SYS_close, fd);
        }
    }
    pthread_mutex_unlock(&guard);
    if (number != wanted) return 0;
    int is_write = !strcmp(verb, "write");
    if (!strcmp(act, "kill")) die();
    if (!strcmp(act, "torn")) {
        if (!is_write) die();
        return 3;
    }
    if (!strcmp(act, "short")) return is_write ? 2 : 0;
    errno = !strcmp(act, "EIO") ? EIO : !strcmp(act, "ENOSPC") ? ENOSPC : !strcmp(act, "EINTR") ? EINTR : 0;
    return errno != 0;
}

#define REAL(type, name, ...)                                      \
    static type (*real)(__VA_ARGS__);                              \
    if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define WRITES(name, parameters, arguments, half, ...)             \
    ssize_t name parameters {                                      \
        REAL(ssize_t, #name, __VA_ARGS__);                         \
        char path[path_max];                                       \
        if (opened(fd, path)) {                                    \
            int what = hit("write", path);                         \
            if (what == 1) return -1;                              \
            if (what >= 2) {                                       \
                ssize_t done = real half;                          \
                if (what == 3) die();                              \
                return done;                                       \
            }                                                      \
        }                                                          \
        return real arguments;                                     \
    }
WRITES(write, (int fd, const void *b, size_t n), (fd, b, n), (fd, b, n / 2), int, const void *, size_t)
WRITES(pwrite, (int fd, const void *b, size_t n, off_t o), (fd, b, n, o), (fd, b, n / 2, o), int, const void *, size_t, off_t)
WRITES(pwrite64, (int fd, const void *b, size_t n, off64_t o), (fd, b, n, o), (fd, b, n / 2, o), int, const void *, size_t, off64_t)

#define ON_OPEN(name, verb, parameters, arguments, ...)            \
    int name parameters {                                          \
        REAL(int, #name, __VA_ARGS__);                             \
        char path[path_max];                                       \
        if (opened(fd, path) && hit(verb, path)) return -1;        \
        return real arguments;                                     \
    }
ON_OPEN(fsync, "sync", (int fd), (fd), int)
ON_OPEN(fdatasync, "sync", (int fd), (fd), int)
ON_OPEN(ftruncate, "truncate", (int fd, off_t n), (fd, n), int, off_t)
ON_OPEN(ftruncate64, "truncate", (int fd, off64_t n), (fd, n), int, off64_t)
ON_OPEN(fchmod, "give", (int fd, mode_t m), (fd, m), int, mode_t)

#define ON_NAME(name, verb, at, which, parameters, arguments, ...) \
    int name parameters {                                          \
        REAL(int, #name, __VA_ARGS__);                             \
        char path[path_max];                                       \
        if (names(at, which, path) && hit(verb, path)) return -1;  \
        return real arguments;                                     \
    }
ON_NAME(rename, "rename", AT_FDCWD, b, (const char *a, const char *b), (a, b), const char *, const char *)
ON_NAME(renameat, "rename", e, b, (int d, const char *a, int e, const char *b), (d, a, e, b), int, const char *, int, const char *)
ON_NAME(renameat2, "rename", e, b, (int d, const char *a, int e, const char *b, unsigned f), (d, a, e, b, f), int, const char *, int, const char *, unsigned)
ON_NAME(link, "link", AT_FDCWD, b, (const char *a, const char *b), (a, b), const char *, const char *)
ON_NAME(linkat, "link", e, b, (int d, const char *a, int e, const char *b, int f), (d, a, e, b, f), int, const char *, int, const char *, int)
ON_NAME(symlink, "link", AT_FDCWD, b, (const char *a, const char *b), (a, b), const char *, const char *)
ON_NAME(unlink, "unlink", AT_FDCWD, a, (const char *a), (a), const char *)
ON_NAME(unlinkat, "unlink", d, a, (int d, const char *a, int f), (d, a, f), int, const char *, int)
ON_NAME(rmdir, "unlink", AT_FDCWD, a, (const char *a), (a), const char *)
ON_NAME(mkdir, "mkdir", AT_FDCWD, a, (const char *a, mode_t m), (a, m), const char *, mode_t)
ON_NAME(mkdirat, "mkdir", d, a, (int d, const char *a, mode_t m), (d, a, m), int, const char *, mode_t)
ON_NAME(truncate, "truncate", AT_FDCWD, a, (const char *a, off_t n), (a, n), const char *, off_t)

#define OPENS(name, at, parameters, arguments, ...)                \
    int name parameters {                                          \
        REAL(int, #name, __VA_ARGS__);                             \
        mode_t mode = 0;                                           \
        char path[path_max];                                       \
        if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) { \
            va_list more;                                          \
            va_start(more, flags);                                 \
            mode = va_arg(more, mode_t);                           \
            va_end(more);                                          \
        }                                                          \
        if (flags & (O_CREAT | O_TRUNC) && names(at, a, path)      \
            && hit("create", path)) return -1;                     \
        return real arguments;                                     \
    }
OPENS(open, AT_FDCWD, (const char *a, int flags, ...), (a, flags, mode), const char *, int, ...)
OPENS(open64, AT_FDCWD, (const char *a, int flags, ...), (a, flags, mode), const char *, int, ...)
OPENS(openat, d, (int d, const char *a, int flags, ...), (d, a, flags, mode), int, const char *, int, ...)
OPENS(openat64, d, (int d, const char *a, int flags, ...), (d, a, flags, mode), int, const char *, int, ...)
