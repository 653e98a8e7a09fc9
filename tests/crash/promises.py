"""The stories that are killed everywhere, and what must hold afterwards, wherever that was.

Each story is one turn. `WORDS` is told to the practice model: it reads, writes, edits, moves and deletes files and runs
a command that appends a line to one, so that a second run of it would be seen. `HAND` calls the tools that the practice
model has no word for: the other reads, a move over a file, a background command that is read and stopped.

`Left` is what the first life left, read here anew: whole lines of the journal, the files, the kept contents and the
processes; nothing of the product's own reading. `lives_after` are the lives that follow; `keeps_promises` compares.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import attrs

from steadyhand.adapters import process_list
from steadyhand.adapters.model_practice import PracticeModel
from steadyhand.core.folded import Call
from steadyhand.core.ledger import Ledger
from steadyhand.core.record import Check, Record, Result, Settlement
from steadyhand.core.recovery import SettleSetting
from steadyhand.core.refusal import Refused
from steadyhand.core.transcript import outgoing, validate
from steadyhand.core.views import CallState, Snapshot
from steadyhand.core.words import outcome_of, state_of
from steadyhand.journal.format import read_journal
from steadyhand.ports import Disk, Models
from steadyhand.session.resolving import Wanted, resolve
from steadyhand.session.surviving import end_survivors
from tests.journal import second_reader
from tests.support.calling_model import calling_models
from tests.support.fakes import id_of
from tests.support.turns import Place, Rig, ScriptedEditor, rig

SESSION = id_of(1)  # the first id of the first life
PROMPT = "prompt-1"
COUNTER = "counter.txt"
COMMAND = f"echo ran >> {COUNTER}"
JOB = "exec sleep 60"
"""Of a background command; it ends by itself if a test breaks off."""
NOTES = {"notes.txt": "a note\n"}
Files = Mapping[str, "str | None"]


@attrs.frozen
class Story:
    """One turn. `before` and `after`: every file that it changes, None where there is none."""

    prompt: str
    before: Files
    after: Files
    models: Models = lambda provider, name: PracticeModel()
    has_jobs: bool = False

    @property
    def last_files(self) -> dict[str, str]:
        """The workspace after it."""
        return {**NOTES, **{name: content for name, content in self.after.items() if content is not None}}

    def life(self, place: Place, number: int, settle: SettleSetting = "checked", disk: Disk | None = None) -> Any:
        """One life of a server with its model; an async context manager of a `Rig`."""
        editor = ScriptedEditor(user=lambda _: "tea")
        return rig(place, life=number, settle=settle, disk=disk, models=self.models, editor=editor)


WORDS = Story(
    "\n".join(
        [
            "show notes.txt",
            'write new.txt with "new\\n"',
            'write old.txt with "changed\\n"',
            "replace one with two in edited.txt",
            "move here.txt to deep/there.txt",
            "delete gone.txt",
            f"run {COMMAND}",
        ]
    ),
    {
        "new.txt": None, "old.txt": "old\n", "edited.txt": "one\nmore\n", "here.txt": "moved\n", "deep/there.txt": None,
        "gone.txt": "gone\n", COUNTER: None,
    },
    {
        "new.txt": "new\n", "old.txt": "changed\n", "edited.txt": "two\nmore\n", "here.txt": None,
        "deep/there.txt": "moved\n", "gone.txt": None, COUNTER: "ran\n",
    },
)  # fmt: skip
HAND = Story(
    "\n".join(
        [
            'list_files {} & find_files {"pattern": "*.txt"} & search_text {"pattern": "note"} & diagnostics {}',
            'todo {"items": [{"text": "move", "state": "doing"}]}',
            'ask_user {"question": "Tea?", "options": ["tea", "cake"]}',
            'move_file {"from": "over.txt", "to": "under.txt", "overwrite": true}',
            f'run_command {{"command": "{JOB}", "background": true}}',
            'command_output {"jobId": "<job>"}',
            'stop_command {"jobId": "<job>"}',
        ]
    ),
    {"over.txt": "over\n", "under.txt": "under\n"},
    {"over.txt": None, "under.txt": "over\n"},
    calling_models,
    has_jobs=True,
)


def lay_out(place: Place, story: Story = WORDS) -> Place:
    """The workspace before the story."""
    for name, content in {**NOTES, **story.before}.items():
        if content is not None:
            place.write(name, content)
    return place


async def tell_story(house: Rig, story: Story = WORDS) -> str:
    """A session and the story in it; how the turn ended."""
    session_id = await house.create()
    assert session_id == SESSION
    return (await house.say(session_id, story.prompt, PROMPT)).reason


@attrs.frozen
class Left:
    """What a life left on disk."""

    records: list[dict[str, Any]]
    files: dict[str, str]
    kept: frozenset[str] = frozenset()  # digests whose content lies in `checkpoints/`
    alive: frozenset[str] = frozenset()  # attempts of background commands of which a process lives

    @staticmethod
    def of(place: Place, session_id: str = SESSION, has_jobs: bool = False) -> Left:
        records = whole_records(place.journal(session_id))
        commands = {r["attemptId"] for r in records if r["kind"] == "intent" and r["tool"] == "run_command"}
        alive = {mark for mark in commands if has_jobs and survivors(mark)}
        checkpoints = place.session(session_id) / "checkpoints"
        kept = {path.name for path in checkpoints.glob("*") if _digest(path.read_bytes()) == path.name}
        return Left(records, place.files(), frozenset(kept), frozenset(alive))

    def having(self, kind: str) -> set[str]:
        """The calls that have a record of that kind."""
        return {record["callId"] for record in self.records if record["kind"] == kind}

    @property
    def proposed(self) -> dict[str, tuple[str, tuple[str, ...] | None]]:
        """Call id → its tool and the files it changes, of every call whose message is on disk; None: it reads."""
        messages = [record for record in self.records if record["kind"] == "assistant"]
        calls = [call for message in messages for call in message.get("calls", ())]
        return {call["callId"]: (call["tool"], changes(call["tool"], call["arguments"])) for call in calls}

    @property
    def prompted(self) -> bool:
        """Whether the prompt is on disk."""
        return any(record["kind"] == "user" for record in self.records)


def survivors(mark: str) -> list[int]:
    """The processes that carry an attempt's mark."""
    found = process_list.survivors(mark)
    assert found is not None, "processes can be told here"
    return [one.pid for one in found]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def whole_records(content: bytes) -> list[dict[str, Any]]:
    """The records that are whole. Only the last line can be torn by a kill; a beginning of JSON is no JSON."""
    lines = content.split(b"\n")
    records = [json.loads(line) for line in lines[:-1]]
    with contextlib.suppress(ValueError):
        records.append(json.loads(lines[-1]))
    return records


def changes(tool: str, arguments: str) -> tuple[str, ...] | None:
    """The files that a call of a story changes; None if it only reads."""
    given = json.loads(arguments)
    match tool:
        case "write_file" | "edit_file" | "delete_file":
            return (given["path"],)
        case "move_file":
            return given["from"], given["to"]
        case "run_command":
            return () if given.get("background") else (COUNTER,)
        case "stop_command":
            return ()
        case _:
            return None


@attrs.frozen
class Opened:
    """A session as it was opened after a death."""

    ledger: Ledger
    snapshot: Snapshot
    states: dict[str, CallState]  # call id → as on the wire
    journal: bytes
    files: dict[str, str]
    writable: bool
    epoch: str | None
    half_written: list[str]  # in the session's own folder
    told: str  # what the person was told meanwhile


@attrs.frozen
class Later:
    """The lives after a death."""

    opened: Opened
    journals: list[bytes]  # after each further opening
    going_on: str  # how the next turn ended
    next_files: dict[str, str]
    resent: str | None  # how the turn of the resent prompt ended; None: it ran nothing
    last_files: dict[str, str]
    partly: dict[str, str]  # title → what an inspection says, of effects whose paths disagree
    still_alive: list[int]  # processes of background commands, when all that the server knows of was stopped


async def opened(house: Rig, session_id: str = SESSION) -> Opened:
    """Open a session and say what is seen."""
    view = await house.open(session_id)
    calls = [call for message in view.messages for call in message.calls or ()]
    folder = house.place.session(session_id)
    return Opened(
        house.ledger(session_id),
        view.snapshot,
        {call.call_id: call.state for call in calls},
        house.place.journal(session_id),
        house.place.files(),
        view.session.read_only is None,
        view.session.epoch,
        [path.name for path in folder.rglob("*") if path.name.startswith(".") or path.name.endswith(".new")],
        "\n".join(house.editor.messages),
    )


async def lives_after(place: Place, settle: SettleSetting = "checked", life: int = 2, story: Story = WORDS) -> Later:
    """Open three times, each in a new life; go on in the last, and send the prompt of the first again.

    `life`: the number of the first of them."""
    async with story.life(place, life, settle) as house:
        first = await opened(house)
    journals = []
    for again in (1, 2):
        async with story.life(place, life + again, settle) as house:
            await house.open(SESSION)
            journals.append(place.journal(SESSION))
    async with story.life(place, life + 3, settle) as house:
        return await _go_on(house, first, journals, story)


async def _go_on(house: Rig, first: Opened, journals: list[bytes], story: Story) -> Later:
    ended = await house.say(SESSION, "say on", "prompt-2")
    _history_is_sound(house.ledger(SESSION))
    files = house.place.files()
    marks = [job.attempt_id for job in house.ledger(SESSION).open_jobs()]
    marks += [one.attempt_id for one in house.ledger(SESSION).uncertain() if one.tool == "run_command"]
    if story.has_jobs:
        await _stop_what_is_left(house)
    alive = [pid for mark in marks for pid in survivors(mark)] if story.has_jobs else []
    partly = await _partly(house)
    accepted = await house.send(SESSION, story.prompt, PROMPT)
    owner = house.house.owners[SESSION]
    resent = None if accepted.duplicate else (await owner.wait_ended(accepted.turn_id)).reason
    _history_is_sound(house.ledger(SESSION))
    return Later(first, journals, ended.reason, files, resent, house.place.files(), partly, alive)


async def _stop_what_is_left(house: Rig) -> None:
    """Background commands by their ids, and what an uncertain start left, by its inspection."""
    owner = house.house.owners[SESSION]
    for number, job in enumerate(owner.ledger.open_jobs()):
        await house.say(SESSION, f'stop_command {{"jobId": "{job.job_id}"}}', f"stop-{number}")
    for attempt in owner.ledger.uncertain():
        if attempt.tool == "run_command":
            seen = await resolve(owner, Wanted(attempt.attempt_id, "inspect"))
            assert seen.inspection is not None
            await end_survivors(owner, attempt.attempt_id, seen.inspection.inspection_id)


async def _partly(house: Rig) -> dict[str, str]:
    owner, said = house.house.owners[SESSION], {}
    for attempt in owner.ledger.uncertain():
        if attempt.check == "conflict":
            seen = await resolve(owner, Wanted(attempt.attempt_id, "inspect"))
            assert seen.inspection is not None
            said[attempt.title] = seen.inspection.text
    return said


async def lives_without(place: Place, story: Story = WORDS) -> dict[str, str]:
    """After a death before anything of the session was on disk: the server works, and the story goes well anew.

    The session itself was promised to nobody: it may be there, empty, or not.
    """
    async with story.life(place, 2) as house:
        assert {view.session_id for view in await house.house.listed()} <= {SESSION}
        if not await _opens(house):
            assert not place.journal(SESSION), "a session of which anything is there opens"
        session_id = await house.create()
        assert (await house.say(session_id, story.prompt)).reason == "done"
    return place.files()


async def _opens(house: Rig) -> bool:
    try:
        await house.open(SESSION)
    except Refused:
        return False
    return True


def _history_is_sound(ledger: Ledger) -> None:
    messages = outgoing(ledger)
    assert messages
    validate(messages)


def keeps_promises(left: Left, later: Later, settle: SettleSetting = "checked", story: Story = WORDS) -> None:
    """Every promise about a death, as the disk shows it."""
    for name, content in story.before.items():
        assert left.files.get(name) in (content, story.after[name]), f"{name} is neither old nor new"
    first = later.opened
    _evidence_is_there(left, story)
    _each_call_as_the_disk_says(left, later, settle, story)
    _nothing_runs_untold(left, later)
    _said_once(first.ledger, read_journal(first.journal).records)
    _read_by_another(first.journal)
    _nothing_done_by_opening(left, first)
    assert later.journals == [first.journal] * len(later.journals), "opening again wrote something"
    assert later.going_on == "done"
    assert later.next_files == first.files, "going on did something nobody asked for"
    if left.prompted:
        assert later.resent is None
        assert later.last_files == first.files, "a resent prompt ran again"
    else:
        assert later.resent == "done"
        assert later.last_files == story.last_files


def _evidence_is_there(left: Left, story: Story) -> None:
    """A start names each path with the content before and intended, and what was there before is kept (J3, W8)."""
    for record in left.records:
        if record["kind"] != "started":
            continue
        _, files = left.proposed[record["callId"]]
        evidence = {one["path"]: one for one in record.get("evidence", ())}
        assert set(evidence) == set(files or ()) - {COUNTER}, "a start names other paths than its call"
        for name, one in evidence.items():
            before, after = story.before[name], story.after[name]
            assert one.get("before") == (None if before is None else _digest(before.encode()))
            assert one.get("intended") == (None if after is None else _digest(after.encode()))
            assert before is None or one["checkpoint"] in left.kept, f"the content of {name} before is not kept"


def _each_call_as_the_disk_says(left: Left, later: Later, settle: SettleSetting, story: Story) -> None:
    first = later.opened
    started, ended = left.having("started"), left.having("result")
    replied = left.having("tool")
    assert set(first.states) == set(left.proposed), "each call has one state"
    for call_id, (tool, files) in left.proposed.items():
        call, state = first.ledger.calls[call_id], first.states[call_id]
        if files is None:
            assert state == ("returned" if call_id in replied else "notRun"), f"a read is never {state} [C7]"
            continue
        new = {name for name in files if first.files.get(name) != story.before[name]}
        if call_id in ended:
            assert state == "returned"
            assert new == set(files)
        elif call_id in started:
            check: Check = "satisfied" if new == set(files) else "conflict" if new else "unchanged"
            _uncertain(call, state, None if tool in ("run_command", "stop_command") else check, settle)
            if check == "conflict":
                _partial_state_is_named(later.partly, call, files, new)
        else:
            assert state == "notRun", f"{tool} without a start on disk is called {state} (C1)"
            assert not new, f"{tool} did something without a start on disk [I1]"
            if call.attempt is not None:
                assert outcome_of(call)[0] == "interrupted_before_execution"


def _uncertain(call: Call, state: CallState, check: Check | None, settle: SettleSetting) -> None:
    """It may have run: unknown for ever as history, and settled only by what the files prove of now [I3, I9].

    `check`: what the files say, None where there is nothing to check."""
    attempt = call.attempt
    assert attempt is not None
    assert attempt.result is not None
    assert state == "unknown"
    assert attempt.result.outcome == "unknown_after_restart"
    assert attempt.check == check
    if settle == "ask" or check in (None, "conflict"):
        assert attempt.uncertain
        assert attempt.settlement is None
        return
    assert attempt.settlement is not None
    assert not attempt.uncertain
    assert attempt.settlement.settled == ("checked_present" if check == "satisfied" else "checked_absent")


def _partial_state_is_named(partly: Mapping[str, str], call: Call, files: tuple[str, ...], new: set[str]) -> None:
    """Which path is how, in the words of an inspection (W3)."""
    assert call.attempt is not None
    named = ", ".join(f"{name}: {'satisfied' if name in new else 'unchanged'}" for name in files)
    assert named in partly[call.attempt.title]


def _nothing_runs_untold(left: Left, later: Later) -> None:
    """A process in the background has its start on disk; it is told with its mark, or its start is uncertain; it is
    no uncertain effect once that returned; opening ends none, and it can be stopped (E5, I1, I4)."""
    ledger = later.opened.ledger
    for mark in left.alive:
        attempt = ledger.attempts[mark]
        assert attempt.started is not None, "a process runs without a start on disk [I1]"
        assert mark in later.opened.told or attempt.uncertain, "a process runs and nobody is told"
    for job in ledger.jobs.values():
        attempt = ledger.attempts[job.attempt_id]
        assert attempt.uncertain == (attempt.call_id not in left.having("result"))
    assert later.still_alive == []


def _read_by_another(journal: bytes) -> None:
    """The second reader finds the same records in it, and no damage."""
    reading = second_reader.read(journal)
    assert (reading.damaged, reading.breaks, reading.tail, reading.newer) == (0, set(), "clean", False)
    assert reading.records == whole_records(journal)


def _said_once(ledger: Ledger, records: Any) -> None:
    """One end and at most one settlement for each attempt, none refused (J14, C4)."""
    assert ledger.refused == []
    for kind in (Result, Settlement):
        found: list[Record] = [stamped.record for stamped in records if isinstance(stamped.record, kind)]
        attempts = [getattr(record, "attempt_id", None) for record in found]
        assert len(attempts) == len(set(attempts))
    for call in ledger.calls.values():
        outcome, _ = outcome_of(call)
        assert outcome is not None
        assert state_of(outcome)


def _nothing_done_by_opening(left: Left, first: Opened) -> None:
    """Only temporary files that a start names may go; every record that was there is there (I4, C8, W9)."""
    assert first.files == {name: content for name, content in left.files.items() if not temporary(name)}
    kept = whole_records(first.journal)
    assert kept[: len(left.records)] == left.records
    assert first.half_written == []
    assert first.writable
    assert first.epoch is not None


def temporary(name: str) -> bool:
    """Whether it is one of ours, beside a file that is being replaced."""
    return name.rpartition("/")[2].startswith(".") and name.endswith(".steadyhand")
