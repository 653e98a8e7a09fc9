"""The system call filter of a confined child, as the bytes of a classic BPF program (row O1).

Mounts and namespaces do not stop a connection to a Unix socket that the child can see, the keyrings that it inherits, a
socket of a virtual machine (vsock), or io_uring, which makes sockets without `socket`. The filter does. It decides by
the number of the call and at most one argument, so it is exact only where the numbers are known: x86-64 and aarch64.
A call by the 32-bit or x32 numbers is refused as a whole.

An instruction takes 8 bytes: code (u16), jump if true (u8), jump if false (u8), operand (u32), in the byte order of the
machine (linux/filter.h). The program reads `struct seccomp_data`: number at 0, architecture at 4, arguments from 16.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Mapping, Sequence
from typing import Literal

from steadyhand_values import frozen

FilterPurpose = Literal["command", "reading"]

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _THIRD_ARGUMENT = 0, 4, 16, 32
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_X32_BIT = 0x40000000
_AF_INET, _AF_INET6, _AF_NETLINK = 2, 10, 16
_NETLINK_ROUTE = 0
_CLONE_NEWUSER = 0x10000000

_Instruction = tuple[int, int, int, int]


@frozen
class _Machine:
    """The calls of one architecture that the filter names."""

    audit: int  # AUDIT_ARCH_* of linux/audit.h
    numbers: Mapping[str, int]


def _numbers(table: str) -> dict[str, int]:
    """Read `name number` pairs."""
    words = iter(table.split())
    return {name: int(number) for name, number in zip(words, words, strict=True)}


# The same on both: they were added after the numbers were unified.
_NEWER = """
io_uring_setup 425 io_uring_enter 426 io_uring_register 427
open_tree 428 move_mount 429 fsopen 430 fsconfig 431 fsmount 432 fspick 433
clone3 435 mount_setattr 442 fchmodat2 452 setxattrat 463 removexattrat 466 open_tree_attr 467
"""
_X86_64 = """
socket 41 socketpair 53 clone 56 unshare 272 setns 308 ptrace 101
add_key 248 request_key 249 keyctl 250 mount 165 umount2 166 pivot_root 155
truncate 76 chmod 90 fchmod 91 fchmodat 268 chown 92 fchown 93 lchown 94 fchownat 260
utime 132 utimes 235 futimesat 261 utimensat 280
setxattr 188 lsetxattr 189 fsetxattr 190 removexattr 197 lremovexattr 198 fremovexattr 199
"""
_AARCH64 = """
socket 198 socketpair 199 clone 220 unshare 97 setns 268 ptrace 117
add_key 217 request_key 218 keyctl 219 mount 40 umount2 39 pivot_root 41
truncate 45 fchmod 52 fchmodat 53 fchown 55 fchownat 54 utimensat 88
setxattr 5 lsetxattr 6 fsetxattr 7 removexattr 14 lremovexattr 15 fremovexattr 16
"""
_MACHINES = {
    "x86_64": _Machine(0xC000003E, _numbers(_X86_64 + _NEWER)),
    "aarch64": _Machine(0xC00000B7, _numbers(_AARCH64 + _NEWER)),
}
_REFUSED = {
    # A program takes ENOSYS for an old kernel and uses older calls. No filter can read the flags of `clone3`.
    errno.ENOSYS: ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3"),
    errno.EPERM: (
        *("ptrace", "add_key", "request_key", "keyctl", "setns"),
        *("mount", "umount2", "pivot_root", "mount_setattr", "move_mount"),
        *("open_tree", "open_tree_attr", "fsopen", "fsconfig", "fsmount", "fspick"),
    ),
}
_REFUSED_TO_READING = {
    # What changes a file and is no business of Landlock: modes, owners, times, attributes; truncation before ABI 3.
    errno.EROFS: (
        *("truncate", "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
        *("utime", "utimes", "futimesat", "utimensat", "setxattr", "lsetxattr", "fsetxattr", "setxattrat"),
        *("removexattr", "lremovexattr", "fremovexattr", "removexattrat"),
    ),
    errno.EACCES: ("socket", "socketpair"),
}


def system_call_filter(machine: str, purpose: FilterPurpose) -> bytes | None:
    """Return the program for a machine, named as by `os.uname`; None: its numbers are not known here."""
    here = _MACHINES.get(machine)
    if here is None:
        return None
    program = _only_calls_of(here, machine)
    for refused in (_REFUSED, _REFUSED_TO_READING) if purpose == "reading" else (_REFUSED,):
        for code, names in refused.items():
            program += _refuse_calls([here.numbers[name] for name in names if name in here.numbers], code)
    program += _refuse_user_namespaces(here)
    if purpose == "command":
        program += _restrict_sockets(here)
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *one) for one in program)


def _only_calls_of(here: _Machine, machine: str) -> list[_Instruction]:
    program: list[_Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, here.audit),
        (_RETURN, 0, 0, _KILL),  # a 32-bit program: the numbers below mean other calls there
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        program += [(_JUMP_AT_LEAST, 0, 1, _X32_BIT), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    return program


def _refuse_calls(numbers: Sequence[int], code: int) -> list[_Instruction]:
    """Expects the number in the accumulator, and leaves it there."""
    # Each test jumps over the remaining tests to the refusal, the last one falls through past it.
    tests = [(_JUMP_EQUAL, len(numbers) - 1 - index, 0, number) for index, number in enumerate(numbers[:-1])]
    return [*tests, (_JUMP_EQUAL, 0, 1, numbers[-1]), (_RETURN, 0, 0, _ERRNO | code)]


def _refuse_user_namespaces(here: _Machine) -> list[_Instruction]:
    """`clone` and `unshare` with CLONE_NEWUSER in the first argument; expects and leaves the number."""
    return [
        (_JUMP_EQUAL, 1, 0, here.numbers["clone"]),
        (_JUMP_EQUAL, 0, 4, here.numbers["unshare"]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_JUMP_ANY_BIT, 0, 1, _CLONE_NEWUSER),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _restrict_sockets(here: _Machine) -> list[_Instruction]:
    """Allow `socket` for IPv4, IPv6 and NETLINK_ROUTE; `socketpair` connects nothing and stays allowed."""
    return [
        (_JUMP_EQUAL, 1, 0, here.numbers["socket"]),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_JUMP_EQUAL, 5, 0, _AF_INET),
        (_JUMP_EQUAL, 4, 0, _AF_INET6),
        (_JUMP_EQUAL, 0, 2, _AF_NETLINK),
        (_LOAD, 0, 0, _THIRD_ARGUMENT),
        (_JUMP_EQUAL, 1, 0, _NETLINK_ROUTE),
        (_RETURN, 0, 0, _ERRNO | errno.EAFNOSUPPORT),
    ]
