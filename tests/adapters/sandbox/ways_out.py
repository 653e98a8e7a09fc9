"""Ways out of a sandbox, one a line, with what stops each; and the program that tries them inside.

    python ways_out.py PLACES     PLACES: JSON text, see `Places`; prints JSON, name → errno's name or "reached"

Nothing here imports Steadyhand, because it runs inside. The targets are outside, and the test looks at them afterwards:
a process inside may believe that it reached what is its own copy. docs/sandbox.md has the same table.
"""

from __future__ import annotations

import ctypes
import dataclasses
import errno
import fcntl
import json
import mmap
import os
import signal
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from typing import Any

STOPPED, REACHED, ROOT, USER = "stopped", "reached", "root", "user"
"""The last two: only root gets through; only an ordinary user does."""
VERDICTS = {"S": STOPPED, "P": REACHED, "R": ROOT, "U": USER}

libc = ctypes.CDLL(None, use_errno=True)
libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4


@dataclasses.dataclass
class Places:
    """Where the targets are."""

    outside: str  # a folder outside the roots, with the targets
    workspace: str  # a root
    home: str  # with secret places
    state: str  # the state directory
    victim: int  # the pid of a process outside, of the same user
    port: int  # where something listens on TCP, on the loopback of outside
    key: str  # the name of a key in the session's keyring, and of a shared memory segment and a queue

    def out(self, name: str) -> str:
        return f"{self.outside}/{name}"

    def root(self, name: str) -> str:
        return f"{self.workspace}/{name}"


@dataclasses.dataclass
class Way:
    """One way out. `verdicts`: a letter each for bubblewrap (with Landlock and the filter), bubblewrap alone (on a
    system without these), Landlock alone (ABI 7, with the filter), a reading command (Landlock with its own filter),
    and no sandbox."""

    name: str
    verdicts: str
    attempt: Callable[[Places], Any]
    harms: bool = False  # tried only in a sandbox, because as root it would change the machine

    def verdict(self, column: int) -> str:
        return VERDICTS[self.verdicts[column]]


def c(name: str, *arguments: Any) -> int:
    answer: int = getattr(libc, name)(*arguments)
    if answer == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return answer


def write(path: str, mode: str = "r+") -> None:
    with open(path, mode) as file:
        file.write("evil")


def same(path: str) -> None:
    """Write what is there already."""
    with open(path, "rb") as file:
        content = file.read()
    with open(path, "r+b", buffering=0) as file:
        file.write(content)


def read(path: str) -> None:
    with open(path, "rb") as file:
        assert file.read(1), "it is empty"


def listed(folder: str) -> None:
    if not os.listdir(folder):
        raise OSError(errno.ENOENT, "an empty folder")


def mapped(path: str) -> None:
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[0:1] = b"!"


def through_descriptor(path: str, to: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    at_cwd, follow = -100, 0x400
    c("linkat", at_cwd, f"/proc/self/fd/{descriptor}".encode(), at_cwd, to.encode(), follow)


def replaced_git(workspace: str) -> None:
    os.rename(f"{workspace}/.git", f"{workspace}/.moved")
    os.makedirs(f"{workspace}/.git/hooks")


def connected(address: str | tuple[str, int], family: int, kind: int) -> None:
    with socket.socket(family, kind) as one:
        one.settimeout(5)
        one.connect(address)
        one.send(b"evil")
        if kind == DATAGRAM:  # where nobody listens, the second one fails
            one.send(b"evil")


def in_child(action: Callable[[], Any]) -> None:
    """Do it in a child process, which alone is changed; its exit code is the errno."""
    child = os.fork()
    if child == 0:
        try:
            action()
        except OSError as trouble:
            os._exit(trouble.errno or 255)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        raise OSError(errno.ENOSYS if code == -signal.SIGSYS else abs(code), "in the child")


def call_32_bit() -> None:
    """Call getpid by the 32-bit gate of x86-64."""
    if os.uname().machine != "x86_64":
        raise OSError(errno.ENOSYS, "no such gate here")
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # mov eax, 20; int 0x80; ret
    start = ctypes.addressof(ctypes.c_char.from_buffer(code))
    if ctypes.CFUNCTYPE(ctypes.c_int)(start)() <= 0:
        raise OSError(errno.ENOSYS, "refused")


def mounted(folder: str) -> None:
    os.makedirs(f"{folder}/place", exist_ok=True)
    c("mount", b"none", f"{folder}/place".encode(), b"tmpfs", 0, None)
    c("umount2", f"{folder}/place".encode(), 2)


def typed() -> None:
    with open("/dev/tty", "r+b", buffering=0) as terminal:
        fcntl.ioctl(terminal, termios.TIOCSTI, b"x")


def inherited(_: Places) -> None:
    """Any descriptor but the three usual ones, that of the listing, and that of this file."""
    for name in os.listdir("/proc/self/fd"):
        path = f"/proc/self/fd/{name}"
        if int(name) > 2 and os.path.exists(path) and not os.path.samefile(path, __file__):
            return
    raise OSError(errno.EBADF, "none")


def output_reopened(_: Places) -> None:
    if not os.path.isfile("/proc/self/fd/1"):
        raise OSError(errno.ESPIPE, "no file")
    os.close(os.open("/proc/self/fd/1", os.O_RDWR))


def handle_opened(_: Places) -> None:
    handle = ctypes.create_string_buffer((8).to_bytes(4, "little") + (1).to_bytes(4, "little") + bytes(8))
    root = os.open("/", os.O_RDONLY)
    try:
        c("open_by_handle_at", root, handle, 0)
    except OSError as trouble:
        if trouble.errno != errno.ESTALE:  # it may ask, and there is no such file
            raise
    finally:
        os.close(root)


def device_made(places: Places) -> None:
    os.mknod(f"{places.workspace}/disk", 0o060666, os.makedev(254, 0))
    os.unlink(f"{places.workspace}/disk")


def became_other(_: Places) -> None:
    ended = subprocess.run(["su", "-c", "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if ended.returncode:
        raise OSError(errno.EPERM, "su failed")


def remote_descriptor(places: Places) -> None:
    handle = os.pidfd_open(places.victim)
    try:
        os.close(c("syscall", 438, handle, 0, 0))
    finally:
        os.close(handle)


def memory_read(places: Places) -> None:
    read(f"/proc/{places.victim}/environ")


def user_namespace() -> None:
    c("unshare", 0x10000000)


KEYS = {"x86_64": (248, 249, 250), "aarch64": (217, 218, 219)}.get(os.uname().machine, (0, 0, 0))
"""Numbers of the system calls add_key, request_key and keyctl."""
USER_KEYRING, KEYCTL_UNLINK = -4, 9
UNIX, INET = socket.AF_UNIX, socket.AF_INET
STREAM, DATAGRAM = socket.SOCK_STREAM, socket.SOCK_DGRAM

WAYS = (
    # First, because later ones leave descriptors open.
    Way("use an inherited descriptor", "SSSSS", inherited),
    # Files outside the roots.
    Way("write a file outside", "SSSSP", lambda p: write(p.out("target"))),
    Way("truncate a file outside", "SSSSP", lambda p: os.truncate(p.out("target"), 0)),
    Way("create a file outside", "SSSSP", lambda p: write(p.out("new"), "w")),
    Way("write a file outside through a memory map", "SSSSP", lambda p: mapped(p.out("map"))),
    Way("rename a file outside into the workspace", "SSSSP", lambda p: os.rename(p.out("moved"), p.root("moved"))),
    Way("remove a file outside", "SSSSP", lambda p: os.unlink(p.out("removed"))),
    Way("make a folder outside", "SSSSP", lambda p: os.mkdir(p.out("folder"))),
    Way("make a link outside", "SSSSP", lambda p: os.symlink("/", p.out("link"))),
    Way("hard link a file outside into the workspace", "SSSSP", lambda p: os.link(p.out("target"), p.root("hard"))),
    Way(
        "hard link an open file into the workspace",
        "SSSSP",
        lambda p: through_descriptor(p.out("target"), p.root("hard2")),
    ),
    Way("write through a symbolic link made before", "SSSSP", lambda p: write(p.root("before_symbolic"))),
    Way("change the mode of a file outside", "SSPSP", lambda p: os.chmod(p.out("target"), 0o640)),
    Way("change the owner of a file outside", "SSPSP", lambda p: os.chown(p.out("target"), os.getuid(), os.getgid())),
    Way("change the times of a file outside", "SSPSP", lambda p: os.utime(p.out("target"), (1, 1))),
    Way("change an attribute of a file outside", "SSPSP", lambda p: os.setxattr(p.out("target"), "user.evil", b"1")),
    Way(
        "write to a FIFO outside that somebody reads",
        "SPSSP",
        lambda p: os.write(os.open(p.out("fifo"), os.O_WRONLY | os.O_NONBLOCK), b"evil"),
    ),
    Way("write a file that has a second name outside", "PPPSP", lambda p: write(p.root("before_hard"))),
    Way("change the mode of such a file", "PPPSP", lambda p: os.chmod(p.root("before_hard"), 0o640)),
    Way(
        "lock a file outside",
        "PPPSP",
        lambda p: fcntl.flock(os.open(p.out("target"), os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB),
    ),
    Way(
        "take a lease on a file outside",
        "PPPSP",
        lambda p: fcntl.fcntl(os.open(p.out("leased"), os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK),
    ),
    # Secrets and protected names.
    Way("read a secret place of the home folder", "SSPSP", lambda p: read(f"{p.home}/.ssh/id")),
    Way("read a secret file of the home folder", "SSPSP", lambda p: read(f"{p.home}/.netrc")),
    Way("read the state directory", "SSPSP", lambda p: read(f"{p.state}/journal")),
    Way("write the state directory", "SSSSP", lambda p: write(f"{p.state}/journal")),
    Way("read the temporary files of others", "SSPSP", lambda p: read(f"/tmp/{p.key}")),
    Way("write the configuration of git", "SSPSP", lambda p: write(p.root(".git/config"))),
    Way("create a hook of git", "SSPSP", lambda p: write(p.root(".git/hooks/pre-commit"), "w")),
    Way("put another folder in the place of .git", "SSPSP", lambda p: replaced_git(p.workspace)),
    Way("write another protected name that exists", "SSPSP", lambda p: write(p.root("sub/.env"))),
    Way("remove another protected name that exists", "SSPSP", lambda p: os.unlink(p.root("sub/.env"))),
    Way("rename the folder of a protected name", "SSPSP", lambda p: os.rename(p.root("sub"), p.root("sub2"))),
    Way("create a protected name that does not exist", "PPPSP", lambda p: write(p.root(".envrc"), "w")),
    Way("replace a protected name that is a link", "PPPSP", lambda p: os.replace(p.root("free"), p.root(".env.link"))),
    # Other programs.
    Way("connect to a Unix socket", "SPSSP", lambda p: connected(p.out("stream"), UNIX, STREAM)),
    Way("send to a Unix socket", "SPSSP", lambda p: connected(p.out("datagram"), UNIX, DATAGRAM)),
    Way("see the folder of run-time sockets", "SSPSP", lambda p: listed(p.out("run-time"))),
    Way("connect to an abstract Unix socket", "SSSSP", lambda p: connected(f"\0{p.key}", UNIX, STREAM)),
    Way("connect to a server on the loopback", "SSSSP", lambda p: connected(("127.0.0.1", p.port), INET, STREAM)),
    Way("send UDP", "SSPSP", lambda p: connected(("127.0.0.1", p.port), INET, DATAGRAM)),
    Way("open a socket to the virtual machine's host", "SPSSP", lambda p: socket.socket(40, STREAM)),
    Way("listen to the kernel's events (netlink)", "SPSSP", lambda p: socket.socket(16, socket.SOCK_RAW, 15)),
    Way("set up io_uring", "SPSSP", lambda p: c("syscall", 425, 4, ctypes.create_string_buffer(256))),
    Way("signal a process outside", "SSSSP", lambda p: os.kill(p.victim, signal.SIGCONT)),
    Way("see a process outside", "SSPPP", lambda p: os.stat(f"/proc/{p.victim}")),
    Way("read the environment of a process outside", "SSSSP", memory_read),
    Way(
        "open the memory of a process outside", "SSSSP", lambda p: os.close(os.open(f"/proc/{p.victim}/mem", os.O_RDWR))
    ),
    Way("trace a process outside", "SSSSP", lambda p: in_child(lambda: c("ptrace", 0x4206, p.victim, None, None))),
    Way("take a descriptor of a process outside", "SSSSP", remote_descriptor),
    Way("hold a process outside (pidfd)", "SSPPP", lambda p: os.close(os.pidfd_open(p.victim))),
    Way("reach files through a process outside", "SSSSP", lambda p: read(f"/proc/{p.victim}/root{p.state}/journal")),
    Way("lower the priority of a process outside", "SSUUP", lambda p: os.setpriority(os.PRIO_PROCESS, p.victim, 19)),
    Way("limit a process outside", "SSPPP", lambda p: __import__("resource").prlimit(p.victim, 4, (0, 0))),
    Way("attach shared memory of outside (System V)", "SSPPP", lambda p: c("shmget", int(p.key, 16), 4096, 0)),
    Way("open shared memory of outside (POSIX)", "SSPSP", lambda p: write(f"/dev/shm/{p.key}")),
    Way(
        "open a message queue of outside", "SSSSP", lambda p: os.close(c("mq_open", f"/{p.key}".encode(), os.O_WRONLY))
    ),
    Way(
        "add a key to the session's keyring",
        "SPSSP",
        lambda p: c("syscall", KEYS[0], b"user", b"steadyhand-evil", b"x", 1, -4),
    ),
    Way(
        "find a key of the session's keyring",
        "SSSSP",
        lambda p: c("syscall", KEYS[1], b"user", p.key.encode(), None, -4),
    ),
    # The kernel.
    Way("mount a file system", "SSSSR", lambda p: mounted(p.workspace)),
    Way(
        "mount everything writable again", "SSSSR", lambda p: c("mount", None, b"/", None, 32 | 4096, None), harms=True
    ),
    Way("unmount the workspace", "SSSSR", lambda p: c("umount2", p.workspace.encode(), 2), harms=True),
    Way("make a user namespace", "SSSSP", lambda p: in_child(user_namespace)),
    Way("make a mount namespace", "SSSSR", lambda p: in_child(lambda: c("unshare", 0x00020000))),
    Way(
        "enter the mount namespace of a process outside",
        "SSSSR",
        lambda p: in_child(lambda: c("setns", os.open(f"/proc/{p.victim}/ns/mnt", os.O_RDONLY), 0)),
    ),
    Way("open a file by its handle", "SSSSR", handle_opened),
    Way("make a node of a disk", "SSSSR", device_made),
    Way("type into the terminal", "SSSSS", lambda p: typed()),
    Way("open the output again as a file", "SSSSS", output_reopened),
    Way("become another user by a setuid program", "SSSSR", became_other),
    Way("set the clock", "SSSSR", lambda p: time.clock_settime(time.CLOCK_REALTIME, time.time()), harms=True),
    Way("set the name of the machine", "SSSSR", lambda p: socket.sethostname(socket.gethostname())),
    Way("write a setting of the kernel", "SSSSR", lambda p: same("/proc/sys/kernel/core_pattern")),
    Way("open the kernel's log", "SSSSR", lambda p: os.close(os.open("/dev/kmsg", os.O_WRONLY))),
    Way(
        "load a program into the kernel (bpf)",
        "SSSSR",
        lambda p: c("syscall", 321, 0, (ctypes.c_uint32 * 32)(2, 4, 4, 1), 72),
    ),
    Way("call the kernel by 32-bit numbers", "SPSSP", lambda p: in_child(call_32_bit)),
    Way("call the kernel by x32 numbers", "SSSSS", lambda p: c("syscall", 0x40000000 | 39)),
)


def outcome_of(way: Way, places: Places) -> str:
    ctypes.set_errno(0)
    try:
        way.attempt(places)
    except OSError as trouble:
        return errno.errorcode.get(trouble.errno or 0, str(trouble))
    except AssertionError as trouble:
        return str(trouble)
    return REACHED


if __name__ == "__main__":
    given = Places(**json.loads(sys.argv[1]))
    spared = sys.argv[2:] == ["spare"]
    sys.stdout.write(json.dumps({way.name: outcome_of(way, given) for way in WAYS if not (spared and way.harms)}))
