"""Grants that the user gave: list and remove those of sessions, of workspaces and of the user (row G2).

A session's grant is removed by a record in its journal, the others in the file of the state directory. From the next
call on the user is asked again; a call that was permitted goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steadyhand.domain.errors import invalid_params
from steadyhand.domain.permissions.grants import StandingGrant
from steadyhand.domain.records.record import Forget, Permission
from steadyhand.domain.views.types import GrantView
from steadyhand.session.context import SessionContext
from steadyhand.session.session import Session

ID_DIGITS_MIN = 4
ID_SHOWN_DIGITS = 8
COMMAND_TOLD_CHARS_MAX = 200
NOTHING = "No remembered permissions. Steadyhand asks about every call unless the mode or a rule allows it."


async def list_grants(context: SessionContext, sessions: Iterable[Session]) -> tuple[GrantView, ...]:
    """Return the grants of these sessions, then those beyond a session, oldest first."""
    of_sessions = [_of_session(session, grant) for session in sessions for grant in session.ledger.grants]
    return (*of_sessions, *(_stored_grant(one) for one in await context.grants.load_all()))


async def forget(context: SessionContext, sessions: Iterable[Session], grants: Sequence[GrantView]) -> None:
    """Remove these grants. Raise Refused where that cannot be recorded."""
    wanted = {grant.grant_id for grant in grants}
    for session in sessions:
        mine = [Forget(attempt_id=grant.attempt_id) for grant in session.ledger.grants if grant.attempt_id in wanted]
        if mine:
            session.require_owned()
            await session.log.record_or_refuse(mine)
    if any(grant.lasts != "session" for grant in grants):
        await context.grants.forget(sorted(wanted))


def select_grants(grants: Sequence[GrantView], given: str) -> tuple[GrantView, ...]:
    """Return all for `all`, else the one whose id begins so. Raise Refused if none or several do."""
    if given == "all":
        return tuple(grants)
    found = tuple(grant for grant in grants if grant.grant_id.startswith(given.lower()))
    if len(given) < ID_DIGITS_MIN:
        raise invalid_params("ID", f"give at least {ID_DIGITS_MIN} digits of the ID, or all")
    if len(found) != 1:
        raise invalid_params("ID", f"{'no' if not found else 'more than one'} remembered permission begins with it")
    return found


def grant_text(grant: GrantView) -> str:
    """Return one grant for reading, on one line."""
    what = grant.tool
    if grant.command is not None:
        shown = " ".join(grant.command.split())
        cut = shown if len(shown) <= COMMAND_TOLD_CHARS_MAX else f"{shown[: COMMAND_TOLD_CHARS_MAX - 1]}…"
        outside = " outside the sandbox" if grant.unconfined else ""
        what = f"{grant.tool}{outside} in {grant.cwd}: {cut}"
    where = {
        "session": f"in session {(grant.session_id or '')[:ID_SHOWN_DIGITS]}",
        "workspace": f"in {grant.workspace}",
        "user": "in all workspaces",
    }[grant.lasts]
    return f"{grant.grant_id[:ID_SHOWN_DIGITS]}  {what} ({where})"


def _of_session(session: Session, grant: Permission) -> GrantView:
    return GrantView(
        grant.attempt_id, "session", grant.tool, session_id=session.session_id, command=grant.command, cwd=grant.cwd
    )


def _stored_grant(one: StandingGrant) -> GrantView:
    return GrantView(
        one.grant_id,
        "user" if one.workspace is None else "workspace",
        one.tool,
        one.at,
        None,
        one.workspace,
        one.command,
        one.cwd,
        one.unconfined or None,
    )
