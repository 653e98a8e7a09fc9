"""The verbs that are not about recovery: sessions, show, export, permissions, ask, doctor. Each gives the exit code.

Sessions that are only looked at are read without taking them, so that an editor that has one open is not disturbed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import anyio

from steadyhand.cli.flags import Flags
from steadyhand.cli.terminal import Terminal
from steadyhand.core.model import Looked
from steadyhand.core.plain import plain
from steadyhand.core.refusal import Refused, invalid
from steadyhand.core.show import last_text, short_title
from steadyhand.core.views import ChangedFile, SessionView, TurnEnded
from steadyhand.session import desk, prompts, shelf
from steadyhand.session.diagnosis import diagnose
from steadyhand.session.glimpse import glimpse, owned_text
from steadyhand.session.granted import NOTHING, forget, granted, meant, shown_grant
from steadyhand.session.house import House, OpenedView
from steadyhand.session.owner import Owner
from steadyhand.session.reviving import revive
from steadyhand.session.uris import path_of, uri_of

id_digits_min = 4
id_shown_digits = 8
neighbours_wait_s = 1.0
"""How long `ask` waits for an unsettled session of the workspace that somebody else owns."""
cancel_s_max = 30.0
_LOOKED: Mapping[Looked, str] = {
    "model": "the model",
    "key": "its key",
    "reachable": "reachable",
    "window": "its window",
    "streaming": "streaming",
    "calls": "tool calls",
}


async def sessions(house: House, flags: Flags, terminal: Terminal) -> int:
    listed = await house.listed()
    if flags.json:
        terminal.answer({"sessions": list(listed)})
    elif not listed:
        terminal.say("There are no sessions.")
    for view in () if flags.json else listed:
        terminal.say(_row(view))
    return 0


async def show(house: House, flags: Flags, terminal: Terminal) -> int:
    owner = await glimpse(house, await session_meant(house, flags.id))
    if flags.json:
        messages, more = owner.messages(flags.tail)
        opened = OpenedView(owner.view(), messages, more, owner.snapshot(), owner.queue(), owner.damaged)
        terminal.answer(opened)
        return 0
    terminal.say(desk.exported(owner, "markdown").rstrip("\n"))
    for line in _standing(owner):
        terminal.note(line)
    return 0


async def export(house: House, flags: Flags, terminal: Terminal) -> int:
    text = desk.exported(await glimpse(house, await session_meant(house, flags.id)), flags.form)
    if flags.json:
        terminal.answer({"text": text})
    else:
        terminal.raw(text)
    return 0


async def permissions(house: House, flags: Flags, terminal: Terminal) -> int:
    """What is remembered beyond a session; those of a session are taken back in its chat."""
    known = await granted(house.world, ())
    forgotten = meant(known, flags.id or "") if flags.deed == "forget" else ()
    if forgotten:
        await forget(house.world, (), forgotten)
    if flags.json:
        terminal.answer({"grants": await granted(house.world, ())})
        return 0
    if flags.deed == "forget":
        lines = [f"Forgotten: {shown_grant(grant)}" for grant in forgotten]
    else:
        lines = [shown_grant(grant) for grant in known]
    terminal.say("\n".join(lines) or NOTHING)
    return 0


async def doctor(house: House, flags: Flags, terminal: Terminal) -> int:
    found = await diagnose(house)
    if flags.json:
        terminal.answer(found)
        return 0
    terminal.say(f"steadyhand {found.version}, Python {found.python}")
    for what, path in found.paths.items():
        terminal.say(f"{what}: {path}")
    terminal.say(f"model: {found.model.provider}, {found.model.name}")
    for look in found.provider:
        terminal.say(
            f"{_LOOKED[look.what]}: {look.text}" if look.fine else f"{_LOOKED[look.what]}, not fine: {look.text}"
        )
    for sentence in (*found.journal.values(), *(found.notes or ())):
        terminal.say(sentence)
    return 0


async def ask(house: House, flags: Flags, terminal: Terminal) -> int:
    """A whole turn. 0 if it ended `done`."""
    if not flags.text.strip():
        raise invalid("$.text", "empty", "There is nothing to ask: the text is empty.")
    owner = await _session_for(house, flags)
    if flags.mode is not None:
        await owner.set_mode(flags.mode)
    if flags.model_given:
        model = house.world.settings.model
        await desk.set_model(owner, model.provider, model.name)
    terminal.streaming = not flags.json
    client_message_id = house.world.ids.new()
    accepted = await prompts.prompt(owner, None, client_message_id, flags.text)
    try:
        ended = await owner.wait_ended(accepted.turn_id)
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True), anyio.move_on_after(cancel_s_max):
            await prompts.cancel(owner, accepted.turn_id)
            await owner.wait_ended(accepted.turn_id)
        raise
    terminal.finish()
    if flags.json:
        text = last_text(owner.ledger, accepted.turn_id)
        begun = {"sessionId": owner.session_id, "turnId": accepted.turn_id}
        terminal.answer({**begun, "text": text, "reason": ended.reason, "changed": plain(ended.changed)})
    else:
        _note_end(owner, ended, terminal)
    if ended.reason == "done":
        return 0
    terminal.note(f"steadyhand: The turn ended: {ended.reason}.")
    return 1


async def session_meant(house: House, given: str | None) -> str:
    """The one session whose id begins so. Refused: unknownSession, or too few digits."""
    wanted = (given or "").lower()
    if len(wanted) < id_digits_min:
        raise invalid("ID", f"give at least {id_digits_min} digits of the session's id")
    names = await house.world.in_thread(shelf.names, house.world)
    found = [name for name in names if name.startswith(wanted)]
    if len(found) != 1:
        raise Refused("unknownSession", f"{'No' if not found else 'More than one'} session begins with that ID.")
    return found[0]


async def _session_for(house: House, flags: Flags) -> Owner:
    """The session to go on with, or a new one. What is unsettled in its workspace is opened with it, so that it holds
    back here as it does in an editor (row B1)."""
    if flags.session is not None:
        session_id = await session_meant(house, flags.session)
        seen = await glimpse(house, session_id)
        if (owned := owned_text(seen)) is not None:
            raise Refused("notOwner", owned)
        await _revive(house, seen.workspace)
        owner = await house.owner(session_id)
        owner.require_owned()
        return owner
    workspace = _workspace(flags.workspace)
    await _revive(house, workspace)
    return await house.owner((await house.create(None, workspace)).session_id)


def _workspace(given: str | None) -> str:
    """The URI of the folder that is given, else of this one."""
    path = os.path.abspath(given if given is not None else os.getcwd())
    if not os.path.isdir(path):
        raise invalid("--workspace", f"there is no folder {path}")
    return uri_of(path)


async def _revive(house: House, workspace: str | None) -> None:
    if workspace is not None:
        await revive(house, [workspace], neighbours_wait_s)


def _row(view: SessionView) -> str:
    cells = [view.session_id[:id_shown_digits], view.updated[:16].replace("T", " ")]
    if view.uncertain:
        cells.append(f"[{view.uncertain} uncertain]")
    cells.append(short_title(view.title) or "(no title)")
    if view.workspace is not None:
        cells.append(path_of(view.workspace) or view.workspace)
    return "  ".join(cells)


def _standing(owner: Owner) -> list[str]:
    """What a reader of the conversation should know beside it."""
    lines = [text for text in (owned_text(owner),) if text is not None]
    if owner.damaged:
        lines.append(f"{owner.damaged} damaged or missing records of its journal were passed over.")
    uncertain = owner.snapshot().calls
    if uncertain:
        lines.append(f"{len(uncertain)} uncertain: see `steadyhand recovery list`.")
    return lines


def _note_end(owner: Owner, ended: TurnEnded, terminal: Terminal) -> None:
    for change in ended.changed:
        terminal.note(f"{change.change}: {_changed(change)}")
    terminal.note(f"session {owner.session_id}")


def _changed(change: ChangedFile) -> str:
    return change.path if change.from_ is None else f"{change.from_} to {change.path}"
