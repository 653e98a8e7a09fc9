"""What stands against replacing a file by a new one under its name (row W11): `Disk.replace_limits`.

A replacement makes a new file and gives it the old name. That damages a file whose attributes this user cannot give to
a new one, and it is impossible where the name is a mount point or the folder lets no name be replaced. Several names
(hard links) are in the file's stat and not here. What the system does not tell counts as no limit; the replacement then
fails and changes nothing.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress

from steadyhand.adapters.disk.open_files import ACCESS_LIST_NAME, attributes_of
from steadyhand.ports.disk import ReplaceLimits

# linux/fs.h. The number has the size of a long, but the kernel reads and writes an int.
FS_IOC_GETFLAGS = 0x80086601
FS_IMMUTABLE_FL = 0x10
FS_APPEND_FL = 0x20
FLAGS_BYTES = 8

# Prefixes of extended attributes that a copy has: the user's own, those of root, and those that the system sets itself.
COPIED_PREFIXES = ("user.", "trusted.", "security.")


def replace_limits(folder: int, file: int) -> ReplaceLimits:
    """Return the limits of an open regular file in an open folder. Raises OSError."""
    seen = os.fstat(file)
    return ReplaceLimits(
        unkept=_unkept(file, seen),
        is_mount=_is_mount(folder, file, seen),
        is_folder_fixed=_is_folder_fixed(folder, seen),
        is_append_only=bool(_flags(file) & FS_APPEND_FL),
    )


def limits_of_folder(folder: int) -> ReplaceLimits:
    """Return what stands against a new file in an open folder."""
    return ReplaceLimits(is_folder_fixed=_is_folder_fixed(folder, None))


def _unkept(file: int, seen: os.stat_result) -> tuple[str, ...]:
    """Return the attributes that a new file of this user would not have."""
    if sys.platform == "win32":
        return ()
    ours = os.geteuid()
    other_owner = ours not in (0, seen.st_uid)
    other_group = ours != 0 and seen.st_gid not in (os.getegid(), *os.getgroups())
    found = [name for name, is_other in (("uid", other_owner), ("gid", other_group)) if is_other]
    for name in attributes_of(file).extended:
        # Only the owner may set an access list; those of other file systems (NFS, CIFS) have rules of their own.
        is_copied = name.startswith(COPIED_PREFIXES) or (name == ACCESS_LIST_NAME and not found)
        found += [] if is_copied else [name]
    return tuple(found)


def _is_mount(folder: int, file: int, seen: os.stat_result) -> bool:
    mounts = [_mount_id(descriptor) for descriptor in (folder, file)]
    if None in mounts:
        return os.fstat(folder).st_dev != seen.st_dev
    return mounts[0] != mounts[1]


def _mount_id(descriptor: int) -> str | None:
    """Return the number of the mount that it was opened on; None where the system does not tell."""
    with suppress(OSError), open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as told:
        for line in told:
            if line.startswith("mnt_id:"):
                return line
    return None


def _is_folder_fixed(folder: int, seen: os.stat_result | None) -> bool:
    if _flags(folder) & (FS_APPEND_FL | FS_IMMUTABLE_FL):
        return True
    above = os.fstat(folder)
    if sys.platform != "win32" and seen is not None and above.st_mode & stat.S_ISVTX:
        if os.geteuid() not in (0, above.st_uid, seen.st_uid):
            return True
    effective = os.access in os.supports_effective_ids
    return os.access in os.supports_dir_fd and not os.access(
        ".", os.W_OK | os.X_OK, dir_fd=folder, effective_ids=effective
    )


def _flags(descriptor: int) -> int:
    """Return the inode flags; 0 where the file system has none."""
    if sys.platform != "linux":
        return 0
    import fcntl  # missing on Windows

    told = bytearray(FLAGS_BYTES)
    try:
        fcntl.ioctl(descriptor, FS_IOC_GETFLAGS, told)
    except OSError:
        return 0
    return int.from_bytes(told[:4], sys.byteorder)
