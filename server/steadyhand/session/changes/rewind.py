"""Rewind: take the files, the conversation or both back to before a turn (row G4).

The files come first, what was changed last first: one checked attempt for each path, or for paths that a move joined,
to the oldest content that the unbroken chain of the path reaches; if one of the joined paths is spared, all are. Then
one record takes the conversation back and begins a new epoch. A rewind is a turn of its own, so a rewind to it undoes
it. A kill leaves whole attempts and the conversation as it was; the next opening says how many files are done, and the
same request goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import anyio
import attrs

from steadyhand.domain.changes.rewind import Rewound, rewound
from steadyhand.domain.errors import invalid_params
from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.ledger.state import Attempt, Turn
from steadyhand.domain.records.record import Ended, FileChange, Record, Rewind, RewindOf, RewindWhat, Scope, Told, User
from steadyhand.domain.recovery.postcondition import Absent, Present, intended_changes
from steadyhand.domain.views.changed_files import net_changes
from steadyhand.domain.views.render import display_path, short_title
from steadyhand.domain.views.rewind_texts import (
    FileNow,
    FileState,
    conversation_rewound_text,
    files_rewound_text,
    rewind_prompt,
)
from steadyhand.domain.views.types import Began, ChangedFile, LeftPath, RewindResult, TurnEnded
from steadyhand.session.calls.take_back import refuse_held_back
from steadyhand.session.changes.bring_back import (
    BringBack,
    FileBack,
    bring_back,
    deciding,
    oldest_evidence,
    parts_names,
)
from steadyhand.session.changes.units import joined
from steadyhand.session.inspection.file_changes import chains_of, read_changes, read_present
from steadyhand.session.session import Session
from steadyhand.session.stored_messages import make_told, show_told
from steadyhand_values import define, frozen

TOOL = "rewind"
_BY_THE_USER = ("undo", "rewind", "restore")  # tools that the model does not have


@frozen
class _Range:
    """What the session did since a turn."""

    target: Turn
    files: tuple[Rewound, ...]
    attempts: tuple[Attempt, ...]


@define
class _Done:
    """What a rewind did to files so far."""

    restored: list[ChangedFile] = attrs.field(factory=list)
    left: list[LeftPath] = attrs.field(factory=list)


async def rewind(session: Session, epoch: str | None, turn_id: str, what: RewindWhat) -> RewindResult:
    """Rewind to before a turn. Raise Refused in the order of docs/protocol.md."""
    async with deciding(session, epoch):
        target = session.ledger.turns.get(turn_id)
        if target is None or (what != "files" and not session.ledger.has_conversation_of(turn_id)):
            raise invalid_params("$.turnId", "no such turn, or it was rewound")
        found = await _read_range(session, target)
        units = [] if what == "conversation" else _units(found)
        if what != "conversation" and (paths := _paths_of(found)):
            await refuse_held_back(session, TOOL, Scope(paths=paths))
        with anyio.CancelScope(shield=True):  # what is begun is finished and told, even if the request is cancelled
            own = await _begin(session, target, None if what == "conversation" else _cut_off(session.ledger, target))
            try:
                done = _Done() if what == "conversation" else await _take_files_back(session, own, found, units)
                await _finish(session, own, found, what, done)
            finally:
                session.end_side_turn(own)
    return RewindResult(tuple(done.restored), tuple(done.left), own, session.view())


async def _read_range(session: Session, target: Turn) -> _Range:
    every = await read_changes(session)
    links = every[0].links
    paths = [path for path, some in links.items() if some[-1].position >= target.file_events]
    chains = chains_of(paths, every, await read_present(session, {path: links[path][-1].evidence for path in paths}))
    every_one = (rewound(session.session_id, chains[path], links[path], target.file_events) for path in paths)
    found = _spare_together([one for one in every_one if one is not None])
    ledger = session.ledger
    order = list(ledger.turns)
    since = set(order[order.index(target.turn_id) :])
    return _Range(
        target,
        tuple(found),
        tuple(one for one in ledger.attempts.values() if one.turn_id in since),
    )


def _paths_of(found: _Range) -> tuple[str, ...]:
    """Return the paths in the range: those that the session changed, and those that an uncertain effect names."""
    doubtful = (path for attempt in found.attempts if attempt.uncertain for path in attempt.scope.paths)
    return tuple(dict.fromkeys((*(one.path for one in found.files), *doubtful)))


def _units(found: _Range) -> list[tuple[Rewound, ...]]:
    """Return the paths that are taken back, in the groups that one attempt takes back, what was changed last first."""
    groups = (tuple(one for one in group if not one.is_spared and not one.is_done) for group in _groups(found.files))
    wanted = [group for group in groups if group]
    return sorted(wanted, key=lambda group: -max(link.position for one in group for link in one.changed))


def _groups(files: Sequence[Rewound]) -> list[tuple[Rewound, ...]]:
    return joined(files, lambda one: {link.attempt_id for link in one.changed}, lambda one: not one.is_spared)


def _spare_together(files: Sequence[Rewound]) -> list[Rewound]:
    """Spare every path of a group of which one is spared: it may be the only place of the content (row W12)."""
    spared = {one.path for group in _groups(files) if any(each.is_spared for each in group) for one in group}
    return [attrs.evolve(one, links=()) if one.path in spared and not one.is_done else one for one in files]


def _cut_off(ledger: Ledger, target: Turn) -> Turn | None:
    """Return the turn of the latest rewind, if it has the same target, did not finish and is the latest turn."""
    latest = next((one for one in reversed(ledger.attempts.values()) if one.rewind_of is not None), None)
    if latest is None or latest.rewind_of is None or latest.rewind_of.target != target.turn_id:
        return None
    order = list(ledger.turns)
    later = order[order.index(latest.turn_id) :]
    is_over = any(turn_id in ledger.rewinds or ledger.turns[turn_id].is_in_history for turn_id in later)
    return None if is_over else ledger.turns[latest.turn_id]


async def _begin(session: Session, target: Turn, cut_off: Turn | None) -> str:
    """Record the turn of the rewind and return its id; one that was cut off goes on, so one rewind undoes all of it."""
    if cut_off is not None:
        session.begin_side_turn(cut_off.turn_id)
        session.feed.notify(cut_off.turn_id, Began(cut_off.client_message_id))
        return cut_off.turn_id
    ids = session.context.ids
    turn_id = ids.new()
    user = User(
        turn_id=turn_id,
        message_id=ids.new(),
        client_message_id=f"rewind-{turn_id}",
        text=rewind_prompt(short_title(target.text)),
        command=True,
    )
    await session.log.record_or_refuse([user])
    session.begin_side_turn(turn_id)
    session.feed.notify(turn_id, Began(user.client_message_id))
    return turn_id


async def _take_files_back(
    session: Session, turn_id: str, found: _Range, units: Sequence[tuple[Rewound, ...]]
) -> _Done:
    done, root = _Done(), session.tool_context.root
    rewind_of = RewindOf(target=found.target.turn_id, files=sum(len(unit) for unit in units))
    for unit in units:
        if parts_names(unit):
            done.left += [LeftPath(display_path(one.path, root), "inPlace") for one in unit]
            continue
        files = tuple(FileBack(one.path, oldest_evidence(one.links), one.links[-1].after) for one in unit)
        subject = {"rewind": [turn_id, *(one.path for one in files)]}
        result = await bring_back(session, BringBack(TOOL, turn_id, files, subject, rewind_of=rewind_of))
        if not isinstance(result, Attempt):
            done.left += [LeftPath(display_path(one.path, root), result) for one in files]
    for one in found.files:
        if one.is_spared or one.is_broken:
            done.left.append(LeftPath(display_path(one.path, root), "changed"))
    for attempt in found.attempts:
        if attempt.effect == "opaque" and attempt.started is not None:
            done.left.append(LeftPath(short_title(attempt.title), "command"))
    taken = {one.path for unit in units for one in unit}
    for attempt in session.ledger.uncertain():
        paths = [path for path in attempt.scope.paths if path not in taken and attempt.turn_id != turn_id]
        done.left += [LeftPath(display_path(path, root), "uncertain") for path in paths]
    done.left = list(dict.fromkeys(done.left))
    done.restored = list(_restored(session.ledger.attempts_of_turn(turn_id)))
    return done


def _restored(attempts: Iterable[Attempt]) -> tuple[ChangedFile, ...]:
    """Return what the attempts of a rewind brought back, before a kill too."""
    changes: list[FileChange] = []
    for attempt in attempts:
        if attempt.has_certainly_happened and attempt.started is not None:
            found = attempt.result.files if attempt.result is not None else ()
            changes += found or intended_changes(attempt.started.evidence)
    return net_changes(changes)


async def _finish(session: Session, turn_id: str, found: _Range, what: RewindWhat, done: _Done) -> None:
    """Record that the rewind is done, with what the model is told, and begin the new epoch."""
    epoch = None if what == "files" else session.context.ids.new()
    told = await _told(session, found, what, done)
    record = Rewind(turn_id=turn_id, target=found.target.turn_id, what=what, epoch=epoch)
    end = Ended(turn_id=turn_id, reason="done")
    records: list[Record] = [record, *([told] if told is not None else []), end]
    await session.log.record_or_refuse(records)
    if told is not None:
        show_told(session, told)
    session.feed.notify(turn_id, TurnEnded("done", tuple(done.restored)))
    if epoch is not None:
        session.use_folders(session.tool_context, epoch)
        session.feed.notify_queue()
    session.feed.notify_changes()


async def text_about_removed(session: Session, target: Turn) -> str | None:
    """Return what the model is told where the conversation from a turn on is replaced and the files stay (row S8)."""
    found = await _read_range(session, target)
    files = await _files_now(session, found)
    return await _conversation_text(session, short_title(target.text), files)


async def _conversation_text(session: Session, prompt: str, files: Sequence[FileNow]) -> str | None:
    await session.wait_for_origins()
    there = session.origins.unresolved_lines()
    return conversation_rewound_text(prompt, files, session.ledger.uncertain(), there)


async def _told(session: Session, found: _Range, what: RewindWhat, done: _Done) -> Told | None:
    """Return what the model must know: files without their conversation, or a conversation without its files (S8)."""
    prompt = short_title(found.target.text)
    if what == "files":
        text = files_rewound_text(prompt, done.restored)
    else:
        text = await _conversation_text(session, prompt, await _files_now(session, found))
    return make_told(session, "files", text) if text else None


async def _files_now(session: Session, found: _Range) -> list[FileNow]:
    """Return the files that the model changed in what is taken back and that are not as they were."""
    root = session.tool_context.root
    changed = {one.path: [link for link in one.changed if link.tool not in _BY_THE_USER] for one in found.files}
    by_model = {path: links for path, links in changed.items() if links}
    present = await read_present(session, {path: links[-1].evidence for path, links in by_model.items()})
    files: list[FileNow] = []
    for path, links in by_model.items():
        before, left, now = links[0].before, links[-1].after, present[path]
        digest = now.digest if isinstance(now, Present) else None
        if not isinstance(now, Present | Absent):
            files.append(FileNow(display_path(path, root), "unreadable"))
        elif digest != before:
            as_left: FileState = "removed" if left is None else "as_left"
            files.append(FileNow(display_path(path, root), as_left if digest == left else "changed"))
    return files
