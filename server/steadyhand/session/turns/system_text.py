"""The system text of a session: who the agent is, where it works, and what AGENTS.md says (case 120, rows G5, P4).

Every part is fixed for the session, so the beginning of each request stays the same: the date is the session's first
day, and the folder is the one that the session was created with. If it moves, the model is told (row S10).
"""

from __future__ import annotations

import sys

from steadyhand.session.session import Session
from steadyhand.session.uris import path_of
from steadyhand.tools.workspace.paths import one_line

SYSTEM = (
    "You are Steadyhand, a coding agent inside an editor. You work on the files of one workspace through tools, and"
    " paths are relative to it. Say what you really did and nothing else. A call whose outcome is unknown is never"
    " repeated before its effect was inspected."
)
SYSTEM_WITHOUT_FILES = " No folder is open, so there are no files to work on: say so when files are asked for."
SHELL = "/bin/sh"
DATE_CHARS = len("2026-01-02")
_SYSTEMS = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}


def system_text(session: Session) -> str:
    """Return the system text of every request of this session."""
    return fixed_text(session) + (session.ledger.instructions or "")


def fixed_text(session: Session) -> str:
    """Return the system text without AGENTS.md: the agent, shell, system, folder and date.

    The date is the session's first day: which day it is later, the user can say."""
    identity = SYSTEM if session.workspace is not None else SYSTEM + SYSTEM_WITHOUT_FILES
    root, created = _first_folder(session), session.ledger.created
    system = _SYSTEMS.get(sys.platform, sys.platform)
    folder = "" if root is None else f" The workspace folder is {one_line(root)}."
    date = "" if created is None else f" This session began on {created[:DATE_CHARS]} (UTC)."
    return f"{identity} Commands run in {SHELL} on {system}, without a terminal and without input.{folder}{date}"


def _first_folder(session: Session) -> str | None:
    """Return the path of the folder that the session was created with."""
    first = session.ledger.session.workspace if session.ledger.session is not None else None
    if first == session.workspace:
        return session.tool_context.root or session.tool_context.missing
    return path_of(first) if first is not None else None
