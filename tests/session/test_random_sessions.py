"""Random interleavings of everything a user does, over several sessions, with kills (issue 16; rows S1, S3, S8, S9, G4,
A6, D1, T5, J14).

An example is a list of process runs on one simulated disk. In each, steps of a user are begun one after the other,
without waiting for their ends: prompts, steers, revised prompts, rewinds, new titles, edits of the queue, stops,
answers to questions, decisions on uncertain effects, closing and opening. A run ends in order or by a kill at any
operation of the disk, also halfway through a write; the next one opens what is left. The last run sends everything
again that was ever sent, as a client may, decides on all doubts, lets the queues begin, and waits until nothing runs.

The log of the disk says what was acknowledged, which effects happened and what the model was asked, in their order.
`judged` compares it, after every kill and at the end, with what the journals say: `broken` lists the laws. Nothing
takes place by time or by threads, so an example does the same each time.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import attrs
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from steadyhand.adapters.models.practice import PracticeModel
from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.ledger import Ledger, fold
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.model.messages import ModelRequest, OutMessage, StreamPart, UserMessage
from steadyhand.domain.model.transcript import missing_replies, outgoing_messages, validate
from steadyhand.domain.records.record import Origin, Queue, Record, Steer, Taken, Unknown, User
from steadyhand.domain.settings import Settings
from steadyhand.domain.views.questions import Choice, HeldBackQuestion, PermissionQuestion
from steadyhand.domain.views.sentences import outcome_of
from steadyhand.domain.views.types import Action
from steadyhand.journal.format import read_journal
from steadyhand.session.changes.rewind import rewind
from steadyhand.session.recovery.resolve import ResolutionRequest
from steadyhand.session.service import prompt_queue
from steadyhand.session.service.fork import fork
from steadyhand.session.service.registry import SessionRegistry
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.service.revise import revise
from steadyhand.session.service.session_settings import rename
from steadyhand.session.service.steer import steer
from steadyhand.session.session import Session
from tests.prove.truth import DID_NOT_RUN, STATE, WORK
from tests.support.editor import Park, ScriptedEditor
from tests.support.fakes import FakeProcesses, Run, Script
from tests.support.in_process_server import InProcessServer, Spawn, build_context, running_server
from tests.support.sim_disk import Entry, SimDisk, tree_of
from tests.support.workspace import Workspace

sessions_max = 3
steps_min, steps_max = 8, 30
idle_checkpoints_max = 60_000
FILES = ("a.txt", "b.txt", "c.txt")
URI = f"file://{WORK}"

WORDS = (
    "create", "prompt", "prompt", "prompt", "prompt", "steer", "steer", "steer", "answer", "answer", "answer", "answer",
    "answer", "revise", "rewind", "rename", "edit", "remove", "cancel", "stop", "resume", "decide", "decide", "close",
    "fork", "compact",
)  # fmt: skip
ACTIONS: tuple[Action, ...] = ("inspect", "confirm", "reject", "waive", "restore", "retry")
SETTLED_BY = {
    "user_confirmed": "confirm", "waived": "waive", "restored": "restore", "superseded": "retry",
}  # fmt: skip


@attrs.frozen
class Step:
    """One thing a user does. `pick` chooses what it is about; after it, the server gets `rest` turns of the loop."""

    word: str
    pick: int
    rest: int


@attrs.frozen
class Life:
    """One process run. `kill`: which operation it dies at; None: it ends in order.

    `at_record`: it dies within a few operations of a record that says more than most."""

    steps: tuple[Step, ...]
    kill: int | None
    at_record: bool
    is_half: bool


STEPS = st.builds(Step, st.sampled_from(WORDS), st.integers(0, 10**6), st.sampled_from((0, 1, 5, 20, 60, 150, 400)))
LIVES = st.lists(
    st.builds(
        Life,
        st.lists(STEPS, min_size=steps_min, max_size=steps_max).map(tuple),
        st.one_of(st.none(), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6)),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)


# The server: nothing by time, nothing in threads.


@contextmanager
def without_threads() -> Iterator[None]:
    """What would block a thread runs in the loop, between two of its turns."""

    async def run_sync(work: Callable[..., Any], *arguments: Any, **_: Any) -> Any:
        await anyio.lowlevel.checkpoint()
        return work(*arguments)

    before = anyio.to_thread.run_sync
    anyio.to_thread.run_sync = run_sync  # type: ignore[assignment]  # of this test alone
    try:
        yield
    finally:
        anyio.to_thread.run_sync = before


class AskedModel:
    """The practice model; the log of the disk says what it was asked."""

    def __init__(self, disk: SimDisk) -> None:
        self._disk = disk
        self._model = PracticeModel()

    async def ask(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        self._disk.mark(("asked", request.messages))
        async for part in self._model.ask(request):
            yield part


class LaterEditor(ScriptedEditor):
    """A user who answers some time later, or at once when `at_once` is set."""

    def __init__(self, disk: SimDisk) -> None:
        super().__init__()
        self.disk = disk
        self.open: list[Park] = []
        self.at_once = False

    async def ask_permission(self, question: PermissionQuestion) -> Choice | None:
        return await self._later(question)

    async def ask_held_back(self, question: HeldBackQuestion) -> Choice | None:
        return await self._later(question)

    async def _later(self, question: PermissionQuestion | HeldBackQuestion) -> Choice | None:
        park = Park(question)
        self.open.append(park)
        if self.at_once:
            self.answer(park, 0)
        try:
            return await self._react(question, park)
        finally:
            self.open.remove(park)

    def answer(self, park: Park, pick: int) -> None:
        question = park.question
        assert question is not None
        if park.gate.go.is_set():
            return
        if isinstance(question, PermissionQuestion):
            park.answer_with("reject" if pick % 4 == 3 else "once")
            return
        options = [one.id for one in question.options]
        option = "waive" if pick % 4 == 0 and "waive" in options else options[pick % len(options)]
        if question.uncertain is not None:
            self.disk.mark(("try", "decide", question.uncertain.attempt_id, option))
        park.answer_with(option)


def commanded(disk: SimDisk, run: Run) -> None:
    """What a command does: a line in a file, and the log says that it ran."""
    disk.mark(("command", run.command))
    disk.append_unsynced(f"{WORK}/ran.txt", f"{run.command}\n".encode())


@attrs.define(eq=False)
class Player(InProcessServer):
    """One process run, and what its user does."""

    disk: SimDisk = attrs.field(kw_only=True)
    number: int = attrs.field(kw_only=True)
    count: int = 0

    @property
    def user(self) -> LaterEditor:
        assert isinstance(self.editor, LaterEditor)
        return self.editor

    def name(self) -> str:
        self.count += 1
        return f"{self.number}-{self.count}"

    def picked(self, pick: int) -> Session | None:
        """One of the open sessions that can be written."""
        found = [one for _, one in sorted(self.registry.sessions.items()) if one.can_record]
        return found[pick % len(found)] if found else None

    def mark(self, *what: object) -> None:
        self.disk.mark(what)

    async def do(self, step: Step) -> None:
        """Do what the step says, as far as it can be done. A refusal is an answer."""
        session, pick = self.picked(step.pick), step.pick // 7
        try:
            if step.word == "create" or session is None:
                await self.begin_session(pick)
            elif step.word == "answer":
                if self.user.open:
                    self.user.answer(self.user.open[pick % len(self.user.open)], pick // 5)
            else:
                act: Callable[[Session, int], Awaitable[None]] = getattr(self, f"do_{step.word}")
                await act(session, pick)
        except Refused:
            pass

    async def begin_session(self, pick: int) -> None:
        if len(await self.registry.list_sessions()) < sessions_max:
            view = await self.registry.create(None, URI)
            self.mark("session", view.session_id)
            if pick % 2:
                await self.registry.sessions[view.session_id].set_mode("auto")

    def text(self, session: Session, pick: int) -> str:
        """Every text names its session, and every content exists once."""
        tag, unique = tag_of(session.session_id), self.name()
        file = FILES[pick % len(FILES)]
        return (
            f"write {file} with {tag} {unique}", f"write {file} with {tag} {unique}", f"say {tag} {unique}",
            f'run "{tag} {unique}"', f"show {file}\nsay {tag} {unique}", f"delete {file}\nsay {tag} {unique}",
            f"write {file} with {tag} {unique}\nwrite other-{file} with {tag} {unique}b",
        )[pick // 3 % 7]  # fmt: skip

    async def do_prompt(self, session: Session, pick: int) -> None:
        await self.send(session, self.text(session, pick))

    async def send(self, session: Session, text: str, name: str | None = None) -> None:  # type: ignore[override]
        name = name or self.name()
        self.mark("try", "prompt", session.session_id, name, text)
        await prompt_queue.submit(session, session.epoch, name, text)
        self.mark("said", session.session_id, name, text)

    async def do_steer(self, session: Session, pick: int) -> None:
        turns = list(session.ledger.turns)
        running = session.turn.turn_id if session.turn is not None and pick % 5 else None
        if turns:
            await self.steer(session, running or turns[pick % len(turns)], self.text(session, pick))

    async def steer(self, session: Session, turn_id: str, text: str, name: str | None = None) -> None:
        name = name or self.name()
        self.mark("try", "steer", session.session_id, name, text, turn_id)
        await steer(session, session.epoch or "", turn_id, name, text)
        self.mark("said", session.session_id, name, text)

    async def do_fork(self, session: Session, pick: int) -> None:
        if len(await self.registry.list_sessions()) < sessions_max:
            self.mark("try", "fork", session.session_id)
            view = await fork(self.registry, session.session_id, None, None)
            self.mark("session", view.session_id)

    async def do_compact(self, session: Session, pick: int) -> None:
        self.mark("try", "compact", session.session_id)
        await prompt_queue.submit(session, session.epoch, self.name(), "/compact")

    async def do_revise(self, session: Session, pick: int) -> None:
        turns = [one.turn_id for one in session.ledger.turns.values() if one.is_in_history]
        if turns:
            name, text = self.name(), self.text(session, pick)
            self.mark("try", "revise", session.session_id, name, text)
            await revise(session, session.epoch or "", turns[pick % len(turns)], name, text)
            self.mark("said", session.session_id, name, text)

    async def do_rewind(self, session: Session, pick: int) -> None:
        turns = list(session.ledger.turns)
        if turns:
            self.mark("try", "rewind", session.session_id)
            what = ("conversation", "files", "both")[pick % 3]
            await rewind(session, session.epoch, turns[pick // 3 % len(turns)], what)  # type: ignore[arg-type]

    async def do_rename(self, session: Session, pick: int) -> None:
        title = f"title {self.name()}"
        self.mark("try", "title", session.session_id, title)
        await rename(session, title)
        self.mark("title", session.session_id, title)

    async def do_edit(self, session: Session, pick: int) -> None:
        waiting = list(session.ledger.queue)
        if waiting:
            await prompt_queue.edit_queue(session, waiting[pick % len(waiting)], self.text(session, 2 * 3), False)

    async def do_remove(self, session: Session, pick: int) -> None:
        waiting = list(session.ledger.queue)
        if waiting:
            name = waiting[pick % len(waiting)]
            self.mark("try", "remove", session.session_id, name)
            await prompt_queue.edit_queue(session, name, None, True)

    async def do_cancel(self, session: Session, pick: int) -> None:
        await prompt_queue.cancel(session, None)

    async def do_stop(self, session: Session, pick: int) -> None:
        await prompt_queue.submit(session, session.epoch, self.name(), "/stop")

    async def do_resume(self, session: Session, pick: int) -> None:
        await prompt_queue.resume(session, session.epoch or "")

    async def do_close(self, session: Session, pick: int) -> None:
        await self.registry.close(session.session_id)
        await self.registry.open_session(session.session_id)

    async def do_decide(self, session: Session, pick: int) -> None:
        attempts = [one for one in session.ledger.doubted() if one.uncertain] or session.ledger.doubted()
        if attempts:
            await self.decide(session, attempts[pick % len(attempts)], ACTIONS[pick // 5 % len(ACTIONS)])

    async def decide(self, session: Session, attempt: Attempt, action: Action) -> None:
        seen = await resolve(session, ResolutionRequest(attempt.attempt_id, "inspect"))
        assert seen.inspection is not None
        if action != "inspect":
            self.mark("try", "decide", attempt.attempt_id, action)
            inspection_id = seen.inspection.inspection_id
            await resolve(session, ResolutionRequest(attempt.attempt_id, action, inspection_id=inspection_id))

    # The last run.

    async def finish(self, log: Sequence[Entry]) -> None:
        """Send everything again, decide on every doubt, let the queues begin, and wait until nothing runs."""
        self.user.at_once = True
        for session in self.registry.sessions.values():
            for attempt in session.ledger.uncertain():
                await self.decide(session, attempt, "waive")
        for _, how, session_id, name, text, *turn in [one for one in marks(log, "try") if one[1] in SENDING]:
            found = self.registry.sessions.get(str(session_id))
            if found is None:
                continue
            session = found
            try:
                if how == "steer":
                    await self.steer(session, str(turn[0]), str(text), str(name))
                elif how == "prompt":
                    await self.send(session, str(text), str(name))
            except Refused:
                pass  # its turn is not there, or the id was used for a revised prompt's text
            await self.until_idle()
        for session in self.registry.sessions.values():
            if session.can_record:
                await prompt_queue.resume(session, session.epoch or "")
        await self.until_idle()

    async def until_idle(self) -> None:
        for _ in range(idle_checkpoints_max):
            await anyio.lowlevel.checkpoint()
            if not any(one.view().busy or self.will_begin(one) for one in self.registry.sessions.values()):
                return
        raise AssertionError("something never ends")

    @staticmethod
    def will_begin(session: Session) -> bool:
        return any(not one.paused for one in session.queue())


SENDING = ("prompt", "steer")


async def play(disk: SimDisk, number: int, life: Life | None) -> None:
    """One process run. `life` None: the last one."""

    def start(spawn: Spawn, defects: list[str]) -> Player:
        context = build_context(
            STATE,
            disk=disk,
            processes=FakeProcesses({}, Script((b"done\n",), effect=lambda run: commanded(disk, run))),
            models=lambda provider, name: AskedModel(disk),
            spawn=spawn,
            run=number,
            editor=(editor := LaterEditor(disk)),
            settings=Settings(mode="ask", retry=True),
        )
        workspace = Workspace(Path(WORK), Path(STATE))
        return Player(workspace, SessionRegistry(context), editor, disk=disk, number=number, defects=defects)

    async with running_server(start) as server:
        for view in await server.registry.list_sessions():
            with suppress(Refused):  # nothing of it was acknowledged
                await server.registry.open_session(view.session_id)
        if life is None:
            await server.finish(list(disk.log))
            return
        async with anyio.create_task_group() as tasks:
            for step in life.steps:
                tasks.start_soon(server.do, step)
                for _ in range(step.rest):
                    await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()  # whoever still waits for an answer leaves


def after_kill(disk: SimDisk, begun: int, life: Life) -> SimDisk:
    """The disk that the next process finds."""
    if life.kill is None:
        prefix, half = len(disk.log), []
    else:
        prefix = place_of_kill(disk.log, begun, life)
        half = [
            (*entry[:3], bytes_written(entry)[: len(bytes_written(entry)) // 2])
            for entry in disk.log[prefix : prefix + 1]
            if entry[0] == "write" and life.is_half
        ]
    left = SimDisk(disk.first)
    left._next_inode, left._attributes = disk._next_inode, dict(disk._attributes)
    left.log = [*disk.log[:prefix], *half]
    return SimDisk.killed_after(left, len(left.log))


def bytes_written(entry: Entry) -> bytes:
    piece = entry[3]
    assert isinstance(piece, bytes)
    return piece


def place_of_kill(log: Sequence[Entry], begun: int, life: Life) -> int:
    """How much of the log there is: any place, or one close behind a record of a kind that is chosen first."""
    assert life.kill is not None
    spread = life.kill * 2654435761 >> 5  # small numbers are drawn more often than large ones
    places = list(range(begun, len(log)))
    if life.at_record:
        writes = {at: bytes_written(log[at]) for at in places if log[at][0] == "write"}
        kinds = [kind for kind in TELLING if any(f'"kind":"{kind}"'.encode() in piece for piece in writes.values())]
        if kinds:
            wanted = f'"kind":"{kinds[spread % len(kinds)]}"'.encode()
            places = [at for at, piece in writes.items() if wanted in piece]
    return min(places[spread // 11 % len(places)] + spread // 97 % 6, len(log)) if places else begun


TELLING = ("started", "result", "settlement", "taken", "steer", "rewind", "user", "inspection", "queue", "title")
"""Kinds of records after which a kill leaves a doubt, or half of what belongs together."""


# The laws.


def marks(log: Sequence[Entry], *words: str) -> list[tuple[Any, ...]]:
    found = (entry[1] for entry in log if entry[0] == "mark" and isinstance(entry[1], tuple))
    return [one for one in found if not words or one[0] in words]


def tag_of(session_id: str) -> str:
    return f"s{int(session_id[8:], 16)}"


def journals(disk: SimDisk) -> dict[str, bytes]:
    """Session → its journal."""
    head, tail = f"{STATE}/sessions/", "/journal.jsonl"
    files = disk.now().walk()
    return {
        path[len(head) : -len(tail)]: content
        for path, content in files.items()
        if path.startswith(head) and path.endswith(tail) and content and path[len(head)] != "."  # of a half-made fork
    }


@attrs.frozen
class Story:
    """A session as its journal tells it."""

    session_id: str
    records: tuple[Record, ...]
    ledger: Ledger
    damaged: int


def story_of(session_id: str, journal: bytes) -> Story:
    loaded = read_journal(journal)
    known = tuple(one.record for one in loaded.records if not isinstance(one.record, Unknown))
    return Story(session_id, known, fold(loaded.records, loaded.breaks, torn_starts=loaded.torn_starts), loaded.damaged)


def broken(log: Sequence[Entry], disk: SimDisk, is_open: bool) -> list[str]:
    """The laws that do not hold. `is_open`: a process has opened the sessions since the last kill."""
    stories = [story_of(session_id, journal) for session_id, journal in journals(disk).items()]
    found = [
        f"session {one[1]} is lost" for one in marks(log, "session") if one[1] not in {s.session_id for s in stories}
    ]
    seen = contents_seen(disk)
    ran = {str(one[1]) for one in marks(log, "command")}
    tried = {(str(one[2]), str(one[3])) for one in marks(log, "try") if one[1] == "decide"}
    origins = {s.session_id: next((r.session_id for r in s.records if isinstance(r, Origin)), None) for s in stories}
    for story in stories:
        found += [f"{story.session_id[-4:]}: {law}" for law in (
            *_own(story, origins), *_kept(story, log), *_title(story, log), *_truth(story, seen, ran),
            *_receipts(story, tried), *(_ended(story) if is_open else ()),
        )]  # fmt: skip
    return found + _grown(log)


def _own(story: Story, origins: Mapping[str, str | None]) -> Iterator[str]:
    """Nothing of another session is in this one, but what a fork has of its origin."""
    if story.damaged or story.ledger.refused:
        yield f"its journal is damaged or has records that may not stand there: {story.ledger.refused}"
    tags: list[str] = []
    of: str | None = story.session_id
    while of is not None:
        tags.append(f"{tag_of(of)} ")
        of = origins.get(of)
    for record in story.records:
        if not isinstance(record, User | Queue | Steer) or record.text.startswith(("/", "Rewind to")):
            continue
        if not any(tag in record.text for tag in tags):
            yield f"it has the text {record.text!r}"


def _kept(story: Story, log: Sequence[Entry]) -> Iterator[str]:
    """What was acknowledged is there, once, as it was sent."""
    removed = {str(one[3]) for one in marks(log, "try") if one[1] == "remove"}
    begun = [one.client_message_id for one in story.records if isinstance(one, User | Taken)]
    for _, session_id, name, text in marks(log, "said"):
        if session_id != story.session_id:
            continue
        places = begun.count(name) + (name in story.ledger.queue)
        if name not in story.ledger.prompts or story.ledger.prompts[name][1].text != text:
            yield f"the text {text!r} is lost"
        elif places > 1 or (places == 0 and name not in removed):
            yield f"the text {text!r} stands {places} times"
    for name in set(begun):
        if begun.count(name) > 1:
            yield f"{name} began {begun.count(name)} times"


def _title(story: Story, log: Sequence[Entry]) -> Iterator[str]:
    """A title of the user is replaced by another one of the user alone."""
    of_user = [one for one in marks(log, "title", "try") if one[:2] != ("try", "title") or one[2] == story.session_id]
    tried = [str(one[3]) for one in of_user if one[:2] == ("try", "title")]
    acknowledged = [str(one[2]) for one in of_user if one[0] == "title" and one[1] == story.session_id]
    if acknowledged and story.ledger.title not in tried[tried.index(acknowledged[0]) :]:
        yield f"its title is {story.ledger.title!r} after {acknowledged}"
    if acknowledged and story.ledger.title_source != "user":
        yield "its title is not the user's any more"


def contents_seen(disk: SimDisk) -> set[tuple[str, bytes]]:
    """Every (name, content) that a file of the workspace ever had, from the log."""
    played, found = SimDisk(disk.first), set[tuple[str, bytes]]()
    work = played._at(WORK)
    assert work is not None
    for entry in disk.log:
        played._happened(entry)
        if entry[0] in ("rename", "rename_to", "exchange", "link", "write"):
            for name, inode in played.folders[work].items():
                if inode in played.files:
                    found.add((name, played.files[inode]))
    return found


def _truth(story: Story, seen: set[tuple[str, bytes]], ran: set[str]) -> Iterator[str]:
    """What the history says of a call agrees with what the disk saw [I3, I9]."""
    for call in story.ledger.calls.values():
        outcome, _ = outcome_of(call)
        arguments = json.loads(call.arguments)
        match call.tool:
            case "write_file":
                happened = (arguments["path"], arguments["content"].encode()) in seen
            case "run_command":
                happened = arguments["command"] in ran
            case _:
                continue
        settled = call.attempt.settlement.settled if call.attempt is not None and call.attempt.settlement else None
        if happened and (outcome in DID_NOT_RUN or settled == "checked_absent"):
            yield f"{call.tool} {call.arguments} happened and is called {outcome}, {settled}"
        if not happened and (outcome == "returned" or settled == "checked_present"):
            yield f"{call.tool} {call.arguments} did not happen and is called {outcome}, {settled}"


def _receipts(story: Story, tried: set[tuple[str, str]]) -> Iterator[str]:
    """A doubt ends by proof or by a decision that somebody made."""
    for attempt in story.ledger.attempts.values():
        if attempt.settlement is None:
            continue
        settled = attempt.settlement.settled
        allowed = {(attempt.attempt_id, SETTLED_BY.get(settled, settled)), (attempt.attempt_id, "confirm")}
        if settled in SETTLED_BY and not allowed & tried:
            yield f"{attempt.title} is {settled}, which nobody decided"


def _ended(story: Story) -> Iterator[str]:
    """No call is open, and a model can be asked [I16]."""
    if story.ledger.open_calls():
        yield f"open calls: {[one.tool for one in story.ledger.open_calls()]}"
    story.ledger.apply_unrecorded(missing_replies(story.ledger))
    validate(outgoing_messages(story.ledger))


def lost_receipts(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """An opening loses no attempt and calls none less than it was."""
    found = []
    for session_id, journal in before.items():
        earlier, later = story_of(session_id, journal).ledger, story_of(session_id, after.get(session_id, b"")).ledger
        for attempt_id, attempt in earlier.attempts.items():
            now = later.attempts.get(attempt_id)
            if now is None:
                found.append(f"{attempt.title} is lost")
            elif attempt.uncertain and not now.uncertain and now.settlement is None:
                found.append(f"{attempt.title} was uncertain and is {now.stage}")
            elif attempt.stage == "started" and now.result is not None and now.result.outcome in DID_NOT_RUN:
                found.append(f"{attempt.title} had started and is {now.result}")
            elif attempt.settlement is not None and now.settlement != attempt.settlement:
                checked = attempt.settlement.settled in ("checked_present", "checked_absent")
                if not checked:
                    found.append(f"the settlement of {attempt.title} has changed")
    return found


def _grown(log: Sequence[Entry]) -> list[str]:
    """Each request of a session begins with the one before, unless its conversation was taken back (T5)."""
    found: list[str] = []
    last: dict[str, tuple[OutMessage, ...]] = {}
    compacted, forked = set[str](), False
    for what, *more in marks(log, "asked", "try"):
        if what == "try" and more[0] in ("revise", "rewind"):
            last.pop(tag_of(more[1]), None)
        forked = forked or (what == "try" and more[0] == "fork")
        if what == "try" and more[0] == "compact":
            compacted.add(tag_of(more[1]))
        if what != "asked":
            continue
        messages: tuple[OutMessage, ...] = more[0]
        words = (
            word
            for message in reversed(messages)
            if isinstance(message, UserMessage)
            for word in message.text.replace('"', " ").split()
            if word[:1] == "s" and word[1:].isdigit()
        )
        tag = next(words, "")
        if tag in compacted or (
            compacted and forked
        ):  # a compaction ends some time after it was asked for, and replaces the beginning
            continue
        before = last.get(tag, ())
        if messages[: len(before)] != before:
            found.append(f"a request of {tag} does not begin with the one before")
        last[tag] = messages
    return found


def judged(log: Sequence[Entry], disk: SimDisk, is_open: bool, what: str) -> None:
    laws = broken(log, disk, is_open)
    assert not laws, f"{what}: {laws}"


@given(LIVES)
@settings(
    max_examples=300, deadline=None, phases=(Phase.explicit, Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
@pytest.mark.timeout(900)
def test_random_lives_of_sessions_break_no_law(lives: list[Life]) -> None:
    """S1, S3, S8, S9, G4, A6, D1, T5, J14 [I3, I5, I6, I9, I16]: after every kill, every opening and at the end."""
    with without_threads():
        disk = SimDisk(tree_of({STATE: None, WORK: None}))
        for number, life in enumerate([*lives, None], 1):
            begun, before = len(disk.log), journals(disk)
            anyio.run(play, disk, number, life)
            if life is None:
                judged(disk.log, disk, True, "at the end")
                break
            disk = after_kill(disk, begun, life)
            judged(disk.log, disk, False, f"after run {number}")
            found = lost_receipts(before, journals(disk)) if before else []
            assert not found, f"in run {number}: {found}"
