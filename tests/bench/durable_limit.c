/* What the disk itself takes for a call: two appends, each made durable, as a loop in C.
 *
 * durable_limit FILE CALLS FIRST SECOND  appends FIRST, then SECOND bytes, CALLS times, fdatasync (fsync on macOS)
 * after each, and prints the nanoseconds of each pair, one a line. Exit 1 on any failure. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef __APPLE__
#define fdatasync fsync
#endif

static void append(int file, const char *bytes, size_t size) {
    while (size > 0) {
        ssize_t done = write(file, bytes, size);
        if (done <= 0) {
            perror("write");
            exit(1);
        }
        bytes += done;
        size -= (size_t)done;
    }
    if (fdatasync(file) != 0) {
        perror("fdatasync");
        exit(1);
    }
}

int main(int count, char **arguments) {
    if (count != 5) {
        return 1;
    }
    int file = open(arguments[1], O_WRONLY | O_CREAT | O_APPEND, 0600);
    size_t first = strtoul(arguments[3], NULL, 10), second = strtoul(arguments[4], NULL, 10);
    char *bytes = malloc(first + second);
    if (file < 0 || bytes == NULL) {
        return 1;
    }
    memset(bytes, 'x', first + second);
    for (long call = strtol(arguments[2], NULL, 10); call > 0; call--) {
        struct timespec begun, ended;
        clock_gettime(CLOCK_MONOTONIC, &begun);
        append(file, bytes, first);
        append(file, bytes, second);
        clock_gettime(CLOCK_MONOTONIC, &ended);
        printf("%lld\n", (ended.tv_sec - begun.tv_sec) * 1000000000LL + (ended.tv_nsec - begun.tv_nsec));
    }
    return 0;
}
