"""What passes without asking by the person's word, shown and taken back: of sessions, of workspaces, of the user (G2).

A session's grant is taken back by a record in its journal, the others in the file of the state directory. What was
taken back is asked about from the next call on; a call that has been permitted goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steadyhand.core.grants import Standing
from steadyhand.core.record import Forget, Permission
from steadyhand.core.refusal import invalid
from steadyhand.core.views import GrantView
from steadyhand.session.owner import Owner
from steadyhand.session.world import World

id_digits_min = 4
id_shown_digits = 8
command_told_chars_max = 200
NOTHING = "Nothing is remembered: every call is asked about, but what the mode and the rules let pass."


async def granted(world: World, owners: Iterable[Owner]) -> tuple[GrantView, ...]:
    """Those of these sessions, then those that are remembered beyond a session, oldest first."""
    of_sessions = [_of_session(owner, grant) for owner in owners for grant in owner.ledger.grants]
    return (*of_sessions, *(_remembered(one) for one in await world.grants.known()))


async def forget(world: World, owners: Iterable[Owner], grants: Sequence[GrantView]) -> None:
    """Take these back. Refused where that cannot be recorded."""
    wanted = {grant.grant_id for grant in grants}
    for owner in owners:
        mine = [Forget(grant.attempt_id) for grant in owner.ledger.grants if grant.attempt_id in wanted]
        if mine:
            owner.require_owned()
            await owner.record_or_refuse(mine)
    if any(grant.lasts != "session" for grant in grants):
        await world.grants.forget(sorted(wanted))


def meant(grants: Sequence[GrantView], given: str) -> tuple[GrantView, ...]:
    """Those meant by `all`, or the one whose id begins so. Refused: none or several do."""
    if given == "all":
        return tuple(grants)
    found = tuple(grant for grant in grants if grant.grant_id.startswith(given.lower()))
    if len(given) < id_digits_min:
        raise invalid("ID", f"give at least {id_digits_min} digits of the ID, or all")
    if len(found) != 1:
        raise invalid("ID", f"{'no' if not found else 'more than one'} remembered permission begins with it")
    return found


def shown_grant(grant: GrantView) -> str:
    """One of them for reading, on one line."""
    what = grant.tool
    if grant.command is not None:
        shown = " ".join(grant.command.split())
        cut = shown if len(shown) <= command_told_chars_max else f"{shown[: command_told_chars_max - 1]}…"
        what = f"{grant.tool} in {grant.cwd}: {cut}"
    where = {
        "session": f"in session {(grant.session_id or '')[:id_shown_digits]}",
        "workspace": f"in {grant.workspace}",
        "user": "in all workspaces",
    }[grant.lasts]
    return f"{grant.grant_id[:id_shown_digits]}  {what} ({where})"


def _of_session(owner: Owner, grant: Permission) -> GrantView:
    return GrantView(
        grant.attempt_id, "session", grant.tool, session_id=owner.session_id, command=grant.command, cwd=grant.cwd
    )


def _remembered(one: Standing) -> GrantView:
    return GrantView(
        one.grant_id, "user" if one.workspace is None else "workspace", one.tool, one.at, None, one.workspace,
        one.command, one.cwd,
    )  # fmt: skip
