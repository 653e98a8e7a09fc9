"""The verbs other than recovery and jobs: sessions, show, export, permissions, ask, doctor. Each returns the exit code.

A session that is only shown is read without taking it, so an editor that has it open is not disturbed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

import anyio

from steadyhand.cli.arguments import CommandArguments
from steadyhand.cli.terminal import Terminal
from steadyhand.domain.errors import Refused, invalid_params
from steadyhand.domain.model.messages import ProviderAspect
from steadyhand.domain.views.render import answer_text, short_title
from steadyhand.domain.views.serialize import to_plain
from steadyhand.domain.views.types import ChangedFile, SessionView, TurnEnded
from steadyhand.session.service import prompt_queue, session_settings
from steadyhand.session.service.doctor import diagnose
from steadyhand.session.service.grant_list import NOTHING, forget, grant_text, list_grants, select_grants
from steadyhand.session.service.read_only_view import owner_sentence, read_session
from steadyhand.session.service.registry import SessionRegistry, SessionSnapshot
from steadyhand.session.service.sandbox_report import SandboxReport
from steadyhand.session.session import DoubtsUnknown, Session
from steadyhand.session.storage import directory
from steadyhand.session.uris import path_of, uri_of

ID_DIGITS_MIN = 4
ID_SHOWN_DIGITS = 8
HELD_BACK_CODE = 3
"""The exit code of `ask` if a call was refused because an earlier effect is uncertain."""
CANCEL_S_MAX = 30.0  # until a cancelled turn has ended
_ASPECT_LABELS: Mapping[ProviderAspect, str] = {
    "model": "the model",
    "key": "its key",
    "reachable": "reachable",
    "window": "its window",
    "streaming": "streaming",
    "calls": "tool calls",
}


async def sessions(registry: SessionRegistry, flags: CommandArguments, terminal: Terminal) -> int:
    """List every session, newest first."""
    listed = await registry.list_sessions()
    if flags.is_json:
        terminal.write_json({"sessions": list(listed)})
    elif not listed:
        terminal.write_line("There are no sessions.")
    for view in () if flags.is_json else listed:
        terminal.write_line(_row(view))
    return 0


async def show(registry: SessionRegistry, flags: CommandArguments, terminal: Terminal) -> int:
    """Show one session."""
    session = await read_session(registry, await find_session_id(registry, flags.id))
    if flags.is_json:
        messages, more = session.messages(flags.tail)
        opened = SessionSnapshot(session.view(), messages, more, session.snapshot(), session.queue(), session.damaged)
        terminal.write_json(opened)
        return 0
    terminal.write_line(session_settings.export_text(session, "markdown").rstrip("\n"))
    for line in _session_notes(session):
        terminal.write_note(line)
    return 0


async def export(registry: SessionRegistry, flags: CommandArguments, terminal: Terminal) -> int:
    """Print one session as a text."""
    session = await read_session(registry, await find_session_id(registry, flags.id))
    text = session_settings.export_text(session, flags.format, flags.redact)
    if flags.is_json:
        terminal.write_json({"text": text})
    else:
        terminal.write_text(text)
    return 0


async def permissions(registry: SessionRegistry, flags: CommandArguments, terminal: Terminal) -> int:
    """List or forget grants beyond a session; the chat of a session forgets those of that session."""
    known = await list_grants(registry.context, ())
    forgotten = select_grants(known, flags.id or "") if flags.subcommand == "forget" else ()
    if forgotten:
        await forget(registry.context, (), forgotten)
    if flags.is_json:
        terminal.write_json({"grants": await list_grants(registry.context, ())})
        return 0
    if flags.subcommand == "forget":
        lines = [f"Forgotten: {grant_text(grant)}" for grant in forgotten]
    else:
        lines = [grant_text(grant) for grant in known]
    terminal.write_line("\n".join(lines) or NOTHING)
    return 0


async def doctor(registry: SessionRegistry, flags: CommandArguments, terminal: Terminal) -> int:
    """Report on this installation and the chosen provider."""
    found = await diagnose(registry.context, [os.getcwd()])
    if flags.is_json:
        terminal.write_json(found)
        return 0
    terminal.write_line(f"steadyhand {found.version}, Python {found.python}")
    for what, path in found.paths.items():
        terminal.write_line(f"{what}: {path}")
    terminal.write_line(f"model: {found.model.provider}, {found.model.name}")
    terminal.write_line(_sandbox_line(found.sandbox))
    terminal.write_line(f"old contents: {found.retention.named} named for removal, {found.retention.removed} removed")
    for finding in found.provider:
        label = _ASPECT_LABELS[finding.what]
        terminal.write_line(f"{label}: {finding.text}" if finding.fine else f"{label}, failed: {finding.text}")
    for sentence in (*found.journal.values(), *(found.notes or ())):
        terminal.write_line(sentence)
    return 0


def _sandbox_line(found: SandboxReport) -> str:
    why = f" {found.why}" if found.why else ""
    if found.kind == "none":
        return f"sandbox ({found.mode}): commands are not confined.{why}"
    return f"sandbox ({found.mode}): {found.kind}, network {found.network}.{why}"


async def ask(registry: SessionRegistry, flags: CommandArguments, terminal: Terminal) -> int:
    """Run a whole turn. Returns 0 if it ended `done`."""
    if not flags.text.strip():
        raise invalid_params("$.text", "empty", "The text is empty, so there is nothing to ask.")
    session = await _open_session(registry, flags)
    if flags.mode is not None:
        await session.set_mode(flags.mode)
    if flags.has_model:
        model = registry.context.settings.model
        await session_settings.set_model(session, model.provider, model.name)
    terminal.is_streaming = not flags.is_json
    client_message_id = registry.context.ids.new()
    accepted = await prompt_queue.submit(session, None, client_message_id, flags.text)
    try:
        ended = await session.feed.wait_until_ended(accepted.turn_id)
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True), anyio.move_on_after(CANCEL_S_MAX):
            await prompt_queue.cancel(session, accepted.turn_id)
            await session.feed.wait_until_ended(accepted.turn_id)
        raise
    terminal.end_stream()
    if flags.is_json:
        text = answer_text(session.ledger, accepted.turn_id)
        begun = {"sessionId": session.session_id, "turnId": accepted.turn_id}
        terminal.write_json({**begun, "text": text, "reason": ended.reason, "changed": to_plain(ended.changed)})
    else:
        _note_end(session, ended, terminal)
    if _was_held_back(session, accepted.turn_id):
        terminal.write_note("steadyhand: A call was refused until an uncertain effect is settled: see `recovery list`.")
        return HELD_BACK_CODE
    if ended.reason == "done":
        return 0
    terminal.write_note(f"steadyhand: The turn ended: {ended.reason}.")
    return 1


def _was_held_back(session: Session, turn_id: str) -> bool:
    """Return whether a call of the turn was refused as `recovery_required` (case 122)."""
    calls = (call for call in session.ledger.calls.values() if call.turn_id == turn_id)
    return any(call.reply is not None and call.reply.reason == "recovery_required" for call in calls)


async def find_session_id(registry: SessionRegistry, given: str | None) -> str:
    """Return the one session id with that beginning. Refused: unknownSession, or too few digits."""
    wanted = (given or "").lower()
    if len(wanted) < ID_DIGITS_MIN:
        raise invalid_params("ID", f"give at least {ID_DIGITS_MIN} digits of the session's id")
    names = await registry.context.in_thread(directory.names, registry.context)
    found = [name for name in names if name.startswith(wanted)]
    if len(found) != 1:
        raise Refused("unknownSession", f"{'No' if not found else 'More than one'} session begins with that ID.")
    return found[0]


async def _open_session(registry: SessionRegistry, flags: CommandArguments) -> Session:
    """Return the given session, or a new one.

    Unsettled sessions of its workspace are opened too, so they hold back calls here as in an editor (row B1)."""
    if flags.session is not None:
        session_id = await find_session_id(registry, flags.session)
        seen = await read_session(registry, session_id)
        if (owned := owner_sentence(seen)) is not None:
            raise Refused("notOwner", owned)
        await _revive(registry, seen.workspace)
        session = await registry.open_session(session_id)
        session.require_owned()
        return session
    workspace = _workspace_uri(flags.workspace)
    await _revive(registry, workspace)
    return await registry.open_session((await registry.create(None, workspace)).session_id)


def _workspace_uri(given: str | None) -> str:
    """Return the URI of the given folder, or of the current one."""
    path = os.path.abspath(given if given is not None else os.getcwd())
    if not os.path.isdir(path):
        raise invalid_params("--workspace", f"there is no folder {path}")
    return uri_of(path)


async def _revive(registry: SessionRegistry, workspace: str | None) -> None:
    if workspace is not None:
        with suppress(DoubtsUnknown):  # the first effect tries again, and its refusal says so
            await registry.read_doubts([workspace])


def _row(view: SessionView) -> str:
    cells = [view.session_id[:ID_SHOWN_DIGITS], view.updated[:16].replace("T", " ")]
    if view.uncertain:
        cells.append(f"[{view.uncertain} uncertain]")
    cells.append(short_title(view.title) or "(no title)")
    if view.workspace is not None:
        cells.append(path_of(view.workspace) or view.workspace)
    return "  ".join(cells)


def _session_notes(session: Session) -> list[str]:
    """Return what a reader of the conversation should also know."""
    lines = [text for text in (owner_sentence(session),) if text is not None]
    if session.damaged:
        lines.append(f"{session.damaged} damaged or missing records of its journal were skipped.")
    uncertain = session.snapshot().calls
    if uncertain:
        lines.append(f"{len(uncertain)} uncertain effects: see `steadyhand recovery list`.")
    return lines


def _note_end(session: Session, ended: TurnEnded, terminal: Terminal) -> None:
    for change in ended.changed:
        terminal.write_note(f"{change.change}: {_change_line(change)}")
    terminal.write_note(f"session {session.session_id}")


def _change_line(change: ChangedFile) -> str:
    return change.path if change.from_ is None else f"{change.from_} to {change.path}"
