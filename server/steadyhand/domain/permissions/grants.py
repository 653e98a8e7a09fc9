"""Standing grants: what the user allowed beyond one session, for one workspace or for all (row G2).

The grant of a file tool covers that tool on paths inside the workspace. The grant of a command covers that exact text
in that folder of the workspace, as a grant for the session does (docs/protocol.md, "Remembered permissions"). Protected
paths, paths outside the workspace and held-back calls still ask. The file, `permissions.json` in the state directory,
is one line:

    {"sum":"0a1b2c3d","v":1,"grants":[{"id":"…","at":"…","tool":"run_command","workspace":"/w","command":"make","cwd":"."}]}
      8 hex, CRC-32 (zlib) over everything from here ┘ up to the line end, without it

`"unconfined":true` follows `cwd` in a grant for outside the sandbox. `workspace` is left out in a grant for every
workspace. `command` and `cwd` (relative to the workspace, with `/`) are
left out for a file tool. No flipped, missing or added byte can make a grant that nobody gave: the file is then
*damaged*, and none of its grants count. Unknown members are ignored. If `v` is newer than ours, none of the grants
count either.
"""

from __future__ import annotations

import json
import posixpath
import zlib
from collections.abc import Iterable

import attrs

from steadyhand.domain.permissions.policy import CallFacts
from steadyhand_values import frozen

VERSION = 1
GRANTS_MAX = 1000
GRANTS_BYTES_MAX = 16 * 1024 * 1024


@frozen
class StandingGrant:
    """One grant. `workspace`: absolute path of the folder; None: every workspace."""

    grant_id: str
    at: str  # time when it was given
    tool: str
    workspace: str | None = None
    command: str | None = None  # the exact text; None: a file tool
    cwd: str | None = None  # relative to the workspace, with `/`; None: a file tool
    unconfined: bool = False  # true: it covers the command outside the sandbox too (row O3)

    def allows_same_as(self, other: StandingGrant) -> bool:
        """Return whether both allow the same, apart from id and time."""
        return attrs.evolve(self, grant_id="", at="") == attrs.evolve(other, grant_id="", at="")


@frozen
class InvalidGrants:
    """A file none of whose grants count. `newer`: a later version wrote it, so we do not change it."""

    newer: bool


def grant_for(wanted: CallFacts, everywhere: bool, grant_id: str, at: str) -> StandingGrant:
    """Return the grant that covers this call and calls like it. The call must be in a workspace."""
    assert wanted.folder is not None, "a grant that stands is only for what is in a workspace"
    workspace = None if everywhere else wanted.folder
    if wanted.command is None:
        return StandingGrant(grant_id, at, wanted.tool, workspace)
    command, cwd = wanted.command
    place = posixpath.relpath(cwd, wanted.folder)
    return StandingGrant(grant_id, at, wanted.tool, workspace, command, place, wanted.unconfined)


def is_covered(standing: Iterable[StandingGrant], wanted: CallFacts) -> bool:
    """Return whether one of the grants covers the call.

    Ask this only for a call that allows grants (`AskFirst.lasting`).
    """
    if wanted.folder is None or (wanted.command is None and wanted.effect != "writes_files"):
        return False
    enough = [grant_for(wanted, everywhere, "", "") for everywhere in (False, True)]
    if wanted.command is not None:  # a grant for outside the sandbox covers the confined command too, never the reverse
        enough += [attrs.evolve(one, unconfined=True) for one in enough]
    return any(one.allows_same_as(other) for one in standing for other in enough)


def encode_grants(standing: Iterable[StandingGrant]) -> bytes:
    """Return the bytes of the file."""
    grants = [
        {
            name: value
            for name, value in (
                ("id", one.grant_id),
                ("at", one.at),
                ("tool", one.tool),
                ("workspace", one.workspace),
                ("command", one.command),
                ("cwd", one.cwd),
                ("unconfined", one.unconfined or None),
            )
            if value is not None
        }
        for one in standing
    ]
    body = json.dumps({"v": VERSION, "grants": grants}, separators=(",", ":"))[1:].encode("ascii")
    return b'{"sum":"' + _sum(body) + b'",' + body + b"\n"


def decode_grants(content: bytes) -> tuple[StandingGrant, ...] | InvalidGrants:
    """Parse the bytes of the file. It never raises."""
    head, body = content[:18], content[18:-1]
    if head != b'{"sum":"' + _sum(body) + b'",' or content[-1:] != b"\n":
        return InvalidGrants(newer=False)
    try:
        found = json.loads(b"{" + body)
        if found["v"] != VERSION:
            return InvalidGrants(newer=found["v"] > VERSION)
        return tuple(_grant(one) for one in found["grants"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return InvalidGrants(newer=False)


def _grant(one: object) -> StandingGrant:
    if not isinstance(one, dict):
        raise TypeError
    grant_id, at, tool = one["id"], one["at"], one["tool"]
    workspace, command, cwd = one.get("workspace"), one.get("command"), one.get("cwd")
    texts = (grant_id, at, tool, *(text for text in (workspace, command, cwd) if text is not None))
    unconfined = one.get("unconfined", False)
    if not all(isinstance(text, str) for text in texts) or (command is None) != (cwd is None):
        raise TypeError
    if not isinstance(unconfined, bool):
        raise TypeError
    return StandingGrant(grant_id, at, tool, workspace, command, cwd, unconfined)


def _sum(body: bytes) -> bytes:
    return f"{zlib.crc32(body):08x}".encode("ascii")
