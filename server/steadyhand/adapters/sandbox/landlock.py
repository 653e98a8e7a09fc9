"""Landlock rules: what a child may open, as numbers for the launcher (rows O1, O2).

The kernel adds rules and knows no exception, so a rule allows a whole tree; what it does not name is refused. An ABI is
the kernel's version of Landlock: 2 renames between folders, 3 truncation, 4 TCP by port, 6 abstract sockets and
signals. Landlock does not stop changes of mode, owner, times and attributes, locks, sockets by path, UDP, and `stat`.

Names and numbers: linux/landlock.h. The numbers of the system calls are the same on every machine of Linux but alpha.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence

from steadyhand_values import frozen

ABI_MIN = 2
"""With ABI 1 every rename between two folders fails."""
_CREATE_RULESET, _ASK_VERSION = 444, 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_CHANGE_ENTRIES = 0b1_1111_1111 << 4  # remove folders and files; make devices, folders, files, sockets, FIFOs, links
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_TCP_BIND, _TCP_CONNECT = 1, 2
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx")
_DEVICE_FOLDERS = ("/dev/pts", "/dev/shm")


@frozen
class LandlockRules:
    """One ruleset. The launcher leaves a path out that does not exist, and what a file cannot have."""

    handled: int  # rights to files that are refused unless a path allows them
    network: int  # the same for TCP; nothing allows it
    scoped: int  # what does not reach beyond this child and its children
    paths: tuple[tuple[str, int], ...]  # each path with the rights in its tree

    @property
    def values(self) -> tuple[int, int, int, tuple[tuple[bytes, int], ...]]:
        """The same as plain values for the launcher."""
        return self.handled, self.network, self.scoped, tuple((os.fsencode(path), right) for path, right in self.paths)


def landlock_abi() -> int:
    """Return the kernel's ABI; 0: it has none, or it is switched off."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        return max(0, int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION))))
    except (OSError, AttributeError):  # no C library that can be asked
        return 0


def rules_inside_bubblewrap(abi: int, writable: Sequence[str]) -> LandlockRules:
    """Refuse to open for writing outside `writable` and the sandbox's own devices, FIFOs included."""
    rights = _writing(abi)
    return LandlockRules(rights, 0, 0, tuple((path, rights) for path in (*writable, "/dev")))


def rules_for_command(abi: int, writable: Sequence[str], is_network_denied: bool) -> LandlockRules:
    """Landlock alone: writes in `writable` and to devices; no TCP if the network is denied. Everything can be read."""
    rights = _writing(abi)
    paths = [(path, rights) for path in (*writable, *_DEVICE_FOLDERS)]
    paths += [(path, rights & (_WRITE_FILE | _TRUNCATE)) for path in _DEVICES]
    return LandlockRules(rights, _tcp(abi) if is_network_denied else 0, _scopes(abi), tuple(paths))


def rules_for_reading(abi: int, readable: Sequence[str]) -> LandlockRules:
    """Read in `readable`, write nothing but the null device, and use no TCP."""
    paths = [(path, _READ) for path in readable]
    paths += [(path, _READ_FILE) for path in _DEVICES]
    paths.append(("/dev/null", _READ_FILE | _WRITE_FILE))
    return LandlockRules(_READ | _writing(abi), _tcp(abi), _scopes(abi), tuple(paths))


def landlock_limits(abi: int) -> Mapping[int, str]:
    """Return, by the ABI that would stop it, what this kernel's Landlock does not stop."""
    later = {3: "truncating files", 4: "TCP connections", 6: "signals to other processes and abstract sockets"}
    return {number: what for number, what in later.items() if abi < number}


def _writing(abi: int) -> int:
    return _WRITE_FILE | _CHANGE_ENTRIES | _REFER | (_TRUNCATE if abi >= 3 else 0)


def _tcp(abi: int) -> int:
    return _TCP_BIND | _TCP_CONNECT if abi >= 4 else 0


def _scopes(abi: int) -> int:
    return _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS if abi >= 6 else 0
