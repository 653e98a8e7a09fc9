"""What a name and a path may be, and what a stat says, for both disks (row E3)."""

from __future__ import annotations

import errno
import os
import stat

from steadyhand.ports import Kind, Look

# Names of NTFS junctions and links; `os.stat_result` has the tag on Windows only.
reparse_tags_like_links = frozenset({0xA000000C, 0xA0000003})


def component(name: str) -> str:
    """The name again if it is one path component; OSError(EINVAL) otherwise."""
    if name in ("", ".", "..") or "\0" in name or "/" in name or (os.sep in name):
        raise OSError(errno.EINVAL, "Not a single name", name)
    return name


def absolute(path: str) -> str:
    """The path without `.`, doubled and trailing separators; OSError(EINVAL) if it is not absolute."""
    if "\0" in path or not os.path.isabs(path):
        raise OSError(errno.EINVAL, "Not an absolute path", path)
    # `..` is left to the system: behind a link it is not what it looks like.
    drive, rest = os.path.splitdrive(path)
    parts = [part for part in rest.replace(os.altsep or os.sep, os.sep).split(os.sep) if part not in ("", ".")]
    return drive + os.sep + os.sep.join(parts)


def is_link(seen: os.stat_result) -> bool:
    """Whether it is a symbolic link or a junction."""
    return stat.S_ISLNK(seen.st_mode) or getattr(seen, "st_reparse_tag", 0) in reparse_tags_like_links


def kind_of(seen: os.stat_result) -> Kind:
    if is_link(seen):
        return "link"
    if stat.S_ISREG(seen.st_mode):
        return "file"
    return "folder" if stat.S_ISDIR(seen.st_mode) else "other"


def seen_as(seen: os.stat_result, target: str | None) -> Look:
    """A stat as the port's `Look`."""
    return Look(
        kind=kind_of(seen),
        size=seen.st_size,
        mode=stat.S_IMODE(seen.st_mode),
        uid=seen.st_uid,
        gid=seen.st_gid,
        links=seen.st_nlink,
        modified_ns=seen.st_mtime_ns,
        identity=(seen.st_dev, seen.st_ino),
        target=target,
    )
