"""The system call filter, by a small interpreter of classic BPF, for both machines (row O1).

`test_ways_out.py` tries the filter of this machine in the kernel. Here each call is decided by the program alone, so
the other machine is tested too.
"""

import errno
import re
import socket
import struct
from pathlib import Path

import pytest

from steadyhand.adapters.sandbox import seccomp
from steadyhand.adapters.sandbox.seccomp import FilterPurpose, system_call_filter

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOWED, KILLED = "allowed", "killed"
NUMBERS = {name: machine.numbers for name, machine in seccomp._MACHINES.items()}
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


def decide(program: bytes, architecture: int, number: int, *arguments: int) -> str | int:
    """What the kernel would do with a call: "allowed", "killed", or the errno."""
    data = struct.pack("<IIQ6Q", number, architecture, 0, *(arguments + (0,) * 6)[:6])
    instructions = list(struct.iter_unpack("=HBBI", program))
    at = accumulator = 0
    while True:
        code, if_true, if_false, operand = instructions[at]
        at += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", data, operand)
            case 0x15:
                at += if_true if accumulator == operand else if_false
            case 0x35:
                at += if_true if accumulator >= operand else if_false
            case 0x45:
                at += if_true if accumulator & operand else if_false
            case 0x06:
                if operand == 0x7FFF0000:
                    return ALLOWED
                if operand == 0x80000000:
                    return KILLED
                assert operand & 0xFFFF0000 == 0x00050000
                return int(operand & 0xFFFF)
            case _:
                pytest.fail(f"unknown instruction {code:#x}")


def decided(machine: str, name: str, *arguments: int, purpose: FilterPurpose = "command") -> str | int:
    program = system_call_filter(machine, purpose)
    assert program is not None
    return decide(program, MACHINES[machine], NUMBERS[machine][name], *arguments)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("family", "protocol", "answer"),
    [
        (socket.AF_INET, 0, ALLOWED),
        (socket.AF_INET6, 6, ALLOWED),
        (socket.AF_UNIX, 0, errno.EAFNOSUPPORT),
        (16, 0, ALLOWED),  # NETLINK_ROUTE
        (16, 15, errno.EAFNOSUPPORT),
        (17, 0, errno.EAFNOSUPPORT),  # packets
        (38, 0, errno.EAFNOSUPPORT),  # the kernel's cryptography
        (40, 0, errno.EAFNOSUPPORT),  # vsock
        (1 << 32 | socket.AF_UNIX, 0, errno.EAFNOSUPPORT),  # the kernel reads the low half alone
    ],
)
def test_sockets_of_the_internet_and_of_routing_alone(
    machine: str, family: int, protocol: int, answer: str | int
) -> None:
    """O1: a command makes no socket that reaches another program of this machine; `socketpair` works."""
    assert decided(machine, "socket", family, socket.SOCK_STREAM, protocol) == answer
    assert decided(machine, "socketpair", socket.AF_UNIX, socket.SOCK_STREAM) == ALLOWED


@pytest.mark.parametrize("machine", MACHINES)
def test_reading_has_no_socket_and_changes_no_entry(machine: str) -> None:
    """O2: no socket at all; no change of mode, owner, times, attributes or length."""
    for name in ("socket", "socketpair"):
        assert decided(machine, name, socket.AF_INET, purpose="reading") == errno.EACCES
    for name in ("truncate", "fchmod", "fchmodat", "fchmodat2", "fchownat", "utimensat", "setxattr", "removexattr"):
        assert decided(machine, name, purpose="reading") == errno.EROFS
        assert decided(machine, name) == ALLOWED


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("purpose", ["command", "reading"])
def test_both_filters_refuse_what_leads_past_them(machine: str, purpose: FilterPurpose) -> None:
    """O1: tracing, keyrings, mounts, namespaces, io_uring. A program takes ENOSYS for an older kernel."""
    for name in ("ptrace", "keyctl", "add_key", "request_key", "mount", "umount2", "fsopen", "move_mount", "setns"):
        assert decided(machine, name, purpose=purpose) == errno.EPERM
    for name in ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3"):
        assert decided(machine, name, purpose=purpose) == errno.ENOSYS
    new_user = 0x10000000
    for name in ("clone", "unshare"):
        assert decided(machine, name, new_user | 17, purpose=purpose) == errno.EPERM
        assert decided(machine, name, 17, purpose=purpose) == ALLOWED


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("purpose", ["command", "reading"])
def test_filter_decides_every_number(machine: str, purpose: FilterPurpose) -> None:
    """O1: a call that is not named is allowed, each that is named is decided, and no jump leaves the program."""
    program = system_call_filter(machine, purpose)
    assert program is not None
    named = {number: name for name, number in NUMBERS[machine].items()}
    for number in range(600):
        answer = decide(program, MACHINES[machine], number)
        if number not in named:
            assert answer == ALLOWED, number


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_by_other_numbers_are_refused(machine: str) -> None:
    """O1: 32-bit calls have other numbers, so their program is killed; x32 calls answer that there are none."""
    program = system_call_filter(machine, "command")
    assert program is not None
    for architecture in (0x40000003, 0x40000028, MACHINES["aarch64" if machine == "x86_64" else "x86_64"], 0):
        assert decide(program, architecture, 39) == KILLED
    if machine == "x86_64":
        for number in (0x40000000, 0x40000000 | NUMBERS[machine]["socket"], 0xFFFFFFFF):
            assert decide(program, MACHINES[machine], number) == errno.ENOSYS


def test_machine_without_known_numbers_has_no_filter() -> None:
    """O1: then a command is confined and not sealed."""
    assert system_call_filter("riscv64", "command") is None


@pytest.mark.parametrize("machine", MACHINES)
def test_numbers_are_those_of_the_kernel(machine: str) -> None:
    """O1: each number is compared with the kernel's headers; those that the headers are too old for are left out."""
    header = HEADERS[machine]
    if not header.exists():
        pytest.skip("the kernel's headers are not installed")
    pairs = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text())
    known = {name: int(number) for name, number in pairs}
    differing = {
        name: (number, known[name]) for name, number in NUMBERS[machine].items() if known.get(name, number) != number
    }
    assert differing == {}
    assert len(NUMBERS[machine].keys() & known.keys()) > 20
