"""Standing grants: what the person allowed beyond one session, for a workspace or for all of them (row G2).

A file tool's grant is for that tool on paths inside the workspace, a command's for that very text in that folder of the
workspace, as in wire.md for the session; protected paths, what leaves the workspace and a held-back call ask all the
same. The file, `permissions.json` in the state directory, is one line:

    {"sum":"0a1b2c3d","v":1,"grants":[{"id":"…","at":"…","tool":"run_command","workspace":"/w","command":"make","cwd":"."}]}
      8 hex, CRC-32 (zlib) over everything from here ┘ up to the line end, without it

`workspace` is left out for every workspace, `command` and `cwd` (with `/`, from the workspace on) for a file tool. No
byte of it that is flipped, missing or more can make a grant that nobody gave: then the file is *damaged*, and nothing
of it counts. Members that are not known here are passed over, but for a newer `v`, of which nothing counts either.
"""

from __future__ import annotations

import json
import posixpath
import zlib
from collections.abc import Iterable

import attrs

from steadyhand.core.admission import Wanted

VERSION = 1
grants_max = 1000
grants_bytes_max = 16 * 1024 * 1024


@attrs.frozen
class Standing:
    """One grant. `workspace`: absolute folder; None: every workspace."""

    grant_id: str
    at: str
    tool: str
    workspace: str | None = None
    command: str | None = None
    cwd: str | None = None

    def same_as(self, other: Standing) -> bool:
        """Whether it allows the same, whenever it was given."""
        return attrs.evolve(self, grant_id="", at="") == attrs.evolve(other, grant_id="", at="")


@attrs.frozen
class Unusable:
    """A file of which nothing counts. `newer`: a later version wrote it, and it is not touched."""

    newer: bool


def standing_for(wanted: Wanted, everywhere: bool, grant_id: str, at: str) -> Standing:
    """The grant that covers this call, of a workspace, and calls like it."""
    assert wanted.root is not None, "a grant that stands is only for what is in a workspace"
    workspace = None if everywhere else wanted.root
    if wanted.command is None:
        return Standing(grant_id, at, wanted.tool, workspace)
    command, cwd = wanted.command
    return Standing(grant_id, at, wanted.tool, workspace, command, posixpath.relpath(cwd, wanted.root))


def covered(standing: Iterable[Standing], wanted: Wanted) -> bool:
    """Whether one of them covers the call, of which a grant may be heard at all (`AskFirst.lasting`)."""
    if wanted.root is None or (wanted.command is None and wanted.effect != "writes_files"):
        return False
    here, everywhere = standing_for(wanted, False, "", ""), standing_for(wanted, True, "", "")
    return any(one.same_as(here) or one.same_as(everywhere) for one in standing)


def written(standing: Iterable[Standing]) -> bytes:
    """The file."""
    grants = [
        {
            name: value
            for name, value in (
                ("id", one.grant_id), ("at", one.at), ("tool", one.tool), ("workspace", one.workspace),
                ("command", one.command), ("cwd", one.cwd),
            )
            if value is not None
        }
        for one in standing
    ]  # fmt: skip
    body = json.dumps({"v": VERSION, "grants": grants}, separators=(",", ":"))[1:].encode("ascii")
    return b'{"sum":"' + _sum(body) + b'",' + body + b"\n"


def read_grants(content: bytes) -> tuple[Standing, ...] | Unusable:
    """What the file says."""
    head, body = content[:18], content[18:-1]
    if head != b'{"sum":"' + _sum(body) + b'",' or content[-1:] != b"\n":
        return Unusable(newer=False)
    try:
        found = json.loads(b"{" + body)
        if found["v"] != VERSION:
            return Unusable(newer=found["v"] > VERSION)
        return tuple(_grant(one) for one in found["grants"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return Unusable(newer=False)


def _grant(one: object) -> Standing:
    if not isinstance(one, dict):
        raise TypeError
    grant_id, at, tool = one["id"], one["at"], one["tool"]
    workspace, command, cwd = one.get("workspace"), one.get("command"), one.get("cwd")
    texts = (grant_id, at, tool, *(text for text in (workspace, command, cwd) if text is not None))
    if not all(isinstance(text, str) for text in texts) or (command is None) != (cwd is None):
        raise TypeError
    return Standing(grant_id, at, tool, workspace, command, cwd)


def _sum(body: bytes) -> bytes:
    return f"{zlib.crc32(body):08x}".encode("ascii")
