"""What both disks accept as a name and a path, and how they report a stat (row E3)."""

from __future__ import annotations

import errno
import os
import stat

from steadyhand.ports.disk import EntryStat, Kind

# Reparse tags of NTFS junctions and links; `os.stat_result` has the tag on Windows only.
REPARSE_TAGS_LIKE_LINKS = frozenset({0xA000000C, 0xA0000003})


def require_component(name: str) -> str:
    """Return the name if it is one path component; OSError(EINVAL) otherwise."""
    if name in ("", ".", "..") or "\0" in name or "/" in name or (os.sep in name):
        raise OSError(errno.EINVAL, "Not a single name", name)
    return name


def normalize_absolute(path: str) -> str:
    """Return the path without `.` and without doubled or trailing separators; OSError(EINVAL) if it is not absolute."""
    if "\0" in path or not os.path.isabs(path):
        raise OSError(errno.EINVAL, "Not an absolute path", path)
    # The system resolves `..`: after a link it is not the folder before it.
    drive, rest = os.path.splitdrive(path)
    parts = [part for part in rest.replace(os.altsep or os.sep, os.sep).split(os.sep) if part not in ("", ".")]
    return drive + os.sep + os.sep.join(parts)


def look_path(path: str) -> EntryStat | None:
    """Return the stat of an absolute path, as `Disk.look_path` says."""
    plain = normalize_absolute(path)
    try:
        seen = os.lstat(plain)
    except FileNotFoundError:
        return None
    return entry_stat_of(seen, os.readlink(plain) if is_link(seen) else None)


def is_link(seen: os.stat_result) -> bool:
    """Whether it is a symbolic link or a junction."""
    return stat.S_ISLNK(seen.st_mode) or getattr(seen, "st_reparse_tag", 0) in REPARSE_TAGS_LIKE_LINKS


def kind_of(seen: os.stat_result) -> Kind:
    """Return the kind of an entry."""
    if is_link(seen):
        return "link"
    if stat.S_ISREG(seen.st_mode):
        return "file"
    return "folder" if stat.S_ISDIR(seen.st_mode) else "other"


def entry_stat_of(seen: os.stat_result, target: str | None) -> EntryStat:
    """Return a stat in the port's type."""
    return EntryStat(
        kind=kind_of(seen),
        size=seen.st_size,
        mode=stat.S_IMODE(seen.st_mode),
        uid=seen.st_uid,
        gid=seen.st_gid,
        links=seen.st_nlink,
        modified_ns=seen.st_mtime_ns,
        identity=(seen.st_dev, seen.st_ino),
        target=target,
        changed_ns=seen.st_ctime_ns,
    )
