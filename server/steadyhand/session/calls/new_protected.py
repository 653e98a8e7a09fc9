"""After a confined command: name protected files that are new or changed, and ask whether new ones stay (row O1).

*Remove* deletes each file as a call of `delete_file` that the user made: with evidence, *started*, a check and a result
of its own, so a crash in between is settled like that of any deletion. A file that changed since the question is kept.
Empty folders that are left are removed. Where nobody can be asked, the warning stands.
"""

from __future__ import annotations

import posixpath
from collections.abc import Awaitable, Callable, Iterable, Iterator

from steadyhand.domain.errors import Refused
from steadyhand.domain.records.identity import Arguments, BadArguments, canonical_json, parse_arguments
from steadyhand.domain.records.record import Intent, Started
from steadyhand.domain.views.types import Warned
from steadyhand.journal.journal import JournalBroken, TooLong
from steadyhand.session.active_turn import ActiveTurn
from steadyhand.session.calls.commands import intention_of, key_of
from steadyhand.session.calls.holdback import find_blocking, find_blocking_there
from steadyhand.session.calls.prepared import PreparedCall, count_known_happened, facts_of, prepare_in_thread
from steadyhand.session.calls.user_channel import TurnUserChannel
from steadyhand.session.session import Session
from steadyhand.session.stored_messages import tell_model
from steadyhand.tools.builtin.delete_file import DeleteFile
from steadyhand.tools.contract import EvidenceResult, Planned, Preview, Refusal, ToolContext, ToolOutcome
from steadyhand.tools.workspace.paths import ResolvedPath, locate, one_line, open_folder
from steadyhand.tools.workspace.walk import printable
from steadyhand_values import frozen

KEEP, REMOVE = "Keep", "Remove"
REMOVED_FILES_MAX = 200
"""Files that *Remove* deletes; with more of them it is not offered."""
NAMED_MAX = 20
NAME_CHARS_MAX = 80

RunAndRecord = Callable[[Session, ActiveTurn, PreparedCall, EvidenceResult], Awaitable[ToolOutcome | None]]


async def tell_of_protected(session: Session, turn: ActiveTurn, done: ToolOutcome, run: RunAndRecord) -> None:
    """Warn of protected names, and carry out what the user decides about the new ones."""
    if not done.protected:
        return
    text = f"Protected names are new or changed after this command: {_named(done.protected)}."
    session.feed.notify(turn.turn_id, Warned("protected", f"{text} Programs may run what is in them."))
    if not done.protected_new or done.outcome == "unknown" or turn.stopping is not None:
        return
    context = session.tool_context
    files = await session.context.in_thread(_files_below, context, done.protected_new)
    if len(files) > REMOVED_FILES_MAX:
        return
    planned = [await prepare_in_thread(session, _plan_removal, context, path) for path in files]
    removals = [one for one in planned if not isinstance(one, Refusal)]
    if len(removals) < len(planned):
        return
    question = f"A command made these protected names, from which programs may run code: {_named(done.protected_new)}."
    answer = await TurnUserChannel(session, turn.turn_id).ask(f"{question} Keep them or remove them?", (KEEP, REMOVE))
    if answer.answer != REMOVE:
        return
    removed = [one for one in removals if await _remove(session, turn, one, run)]
    await session.context.in_thread(_remove_empty_folders, context, done.protected_new)
    await _tell_result(session, done.protected_new, complete=len(removed) == len(files))


@frozen
class _Removal:
    """One file to delete, with its content as it was when the user was asked."""

    arguments: Arguments
    planned: Planned
    preview: Preview


async def _remove(session: Session, turn: ActiveTurn, removal: _Removal, run: RunAndRecord) -> bool:
    """Delete one file as a call of its own; return whether it is gone."""
    planned, arguments = removal.planned, removal.arguments
    ids, tool = session.context.ids, DeleteFile.name
    facts = facts_of(session, tool, planned)
    attempt_id = ids.new()
    if await find_blocking(session, facts.scope) or await find_blocking_there(session, facts.scope):
        return False
    gathered = await prepare_in_thread(session, planned.gather, attempt_id, removal.preview)
    if isinstance(gathered, Refusal):
        return False
    intended = intention_of(tool, planned, arguments)
    occurrence = count_known_happened(session, intended)
    key = key_of(session, intended, arguments, occurrence)
    intent = Intent(
        attempt_id=attempt_id,
        call_id=ids.new(),
        turn_id=turn.turn_id,
        tool=tool,
        title=planned.title,
        effect=planned.effect,
        arguments_digest=arguments.digest,
        scope=planned.scope,
        key=key,
        occurrence=occurrence,
    )
    started = Started(attempt_id=attempt_id, call_id=intent.call_id, evidence=gathered.evidence)
    try:
        await session.log.append([intent, started], barrier=True)
    except (JournalBroken, TooLong, Refused):
        return False
    call = session.ledger.calls[intent.call_id]
    done = await run(session, turn, PreparedCall(call, planned, facts, attempt_id, key), gathered)
    return done is not None and done.outcome == "returned"


async def _tell_result(session: Session, paths: tuple[str, ...], complete: bool) -> None:
    """Tell model and user what became of the names (row G15)."""
    text = f"The user removed the new protected names {_named(paths)}."
    if not complete:
        text = f"The user wanted to remove the new protected names {_named(paths)}; not all of them could be removed."
        session.feed.notify_message("warning", f"{text} Look at them yourself.")
    await tell_model(session, "files", text)


def _plan_removal(tool_context: ToolContext, path: str) -> _Removal | Refusal:
    arguments = parse_arguments(canonical_json({"path": path}))
    if isinstance(arguments, BadArguments):
        return Refusal("unsupported", arguments.why)
    planned = DeleteFile().prepare(arguments, tool_context)
    if isinstance(planned, Refusal):
        return planned
    preview = planned.preview_content()
    return preview if isinstance(preview, Refusal) else _Removal(arguments, planned, preview)


def _files_below(tool_context: ToolContext, paths: Iterable[str]) -> list[str]:
    """Return the files and links at and below these paths, one more than the bound at most. Blocks."""
    found: list[str] = []
    for path in _entries_below(tool_context, paths, folders=False):
        found.append(path)
        if len(found) > REMOVED_FILES_MAX:
            break
    return found


def _remove_empty_folders(tool_context: ToolContext, paths: Iterable[str]) -> None:
    """Remove the folders at and below these paths that are empty now, the deepest first. Blocks."""
    folders = list(_entries_below(tool_context, paths, folders=True))
    for path in sorted(folders, key=lambda one: one.count("/"), reverse=True):
        located = locate(tool_context, path, follow=False)
        if isinstance(located, ResolvedPath) and located.kind == "folder" and located.is_inside:
            try:
                with open_folder(tool_context, located.folders) as parent:
                    tool_context.disk.remove_folder(parent, located.name)
                    tool_context.disk.sync_folder(parent)
            except OSError:
                continue


def _entries_below(tool_context: ToolContext, paths: Iterable[str], folders: bool) -> Iterator[str]:
    """Yield the folders, or everything else, at and below these paths; links are not followed."""
    waiting = list(paths)
    while waiting:
        path = waiting.pop(0)
        located = locate(tool_context, path, follow=False)
        if not isinstance(located, ResolvedPath) or located.kind is None:
            continue
        if located.kind != "folder":
            if not folders:
                yield path
            continue
        if folders:
            yield path
        try:
            with open_folder(tool_context, located.parts) as folder:
                waiting += [posixpath.join(path, name) for name in tool_context.disk.names(folder)]
        except OSError:
            continue


def _named(paths: Iterable[str]) -> str:
    every = [one_line(printable(path), NAME_CHARS_MAX) for path in paths]
    more = f" and {len(every) - NAMED_MAX} more" if len(every) > NAMED_MAX else ""
    return ", ".join(every[:NAMED_MAX]) + more
