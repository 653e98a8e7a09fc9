"""The scenarios that are killed at every operation, and what must hold afterwards, wherever the kill was.

Each scenario is one turn. The practice model plays `WORDS`: it reads, writes, edits, moves and deletes files, and runs
a command that appends a line to a file, so that a second run of the command would be visible. `HAND` calls the tools
that the practice model has no word for: the other reads, a move over a file, a background command that is read and
stopped.

`Left` is what the first process run left, read here without the product's own reading: the whole lines of the journal,
the files, the kept contents and the processes. `later_runs` starts the process runs that follow; `keeps_promises`
compares.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import attrs

from steadyhand.adapters.models.practice import PracticeModel
from steadyhand.adapters.processes import process_table
from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.ledger.state import ToolCall
from steadyhand.domain.model.transcript import outgoing_messages, validate
from steadyhand.domain.records.record import Check, Record, Result, Settlement
from steadyhand.domain.recovery.tables import SettleSetting
from steadyhand.domain.views.sentences import outcome_of, state_of
from steadyhand.domain.views.types import CallState, Snapshot
from steadyhand.journal.format import read_journal
from steadyhand.ports.disk import Disk
from steadyhand.ports.model import Models
from steadyhand.session.recovery.resolve import ResolutionRequest
from steadyhand.session.recovery.survivors import end_survivors
from steadyhand.session.service.resolutions import resolve
from tests.journal import second_reader
from tests.support.editor import ScriptedEditor
from tests.support.fakes import id_of
from tests.support.in_process_server import InProcessServer, practice_server
from tests.support.journals import whole_records
from tests.support.model import calling_models
from tests.support.workspace import Workspace

SESSION = id_of(1)  # the first id of the first run
PROMPT = "prompt-1"
COUNTER = "counter.txt"
COMMAND = f"echo ran >> {COUNTER}"
JOB = "exec sleep 60"
"""Of a background command; it ends by itself if a test is interrupted."""
NOTES = {"notes.txt": "a note\n"}
Files = Mapping[str, "str | None"]


@attrs.frozen
class Scenario:
    """One turn. `before` and `after`: every file that it changes; None: there is no such file."""

    prompt: str
    before: Files
    after: Files
    models: Models = lambda provider, name: PracticeModel()
    has_jobs: bool = False

    @property
    def last_files(self) -> dict[str, str]:
        """The workspace after it."""
        return {**NOTES, **{name: content for name, content in self.after.items() if content is not None}}

    def server(
        self, workspace: Workspace, number: int, settle: SettleSetting = "checked", disk: Disk | None = None
    ) -> Any:
        """One process run of a server with the model of the scenario, as an async context manager."""
        editor = ScriptedEditor(user=lambda _: "tea")
        return practice_server(workspace, run=number, settle=settle, disk=disk, models=self.models, editor=editor)


WORDS = Scenario(
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
HAND = Scenario(
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


def lay_out(workspace: Workspace, scenario: Scenario = WORDS) -> Workspace:
    """Write the files of the workspace before the scenario."""
    for name, content in {**NOTES, **scenario.before}.items():
        if content is not None:
            workspace.write(name, content)
    return workspace


async def play_scenario(server: InProcessServer, scenario: Scenario = WORDS) -> str:
    """Create a session and play the scenario in it; how the turn ended."""
    session_id = await server.create()
    assert session_id == SESSION
    return (await server.say(session_id, scenario.prompt, PROMPT)).reason


@attrs.frozen
class Left:
    """What a process run left on disk."""

    records: list[dict[str, Any]]
    files: dict[str, str]
    kept: frozenset[str] = frozenset()  # digests whose content is in `checkpoints/`
    alive: frozenset[str] = frozenset()  # attempts of background commands of which a process lives
    torn_start: str | None = None  # the beginning of the attempt id in a half-written start at the end

    @staticmethod
    def of(workspace: Workspace, session_id: str = SESSION, has_jobs: bool = False) -> Left:
        records = whole_records(workspace.journal(session_id))
        commands = {r["attemptId"] for r in records if r["kind"] == "intent" and r["tool"] == "run_command"}
        alive = {mark for mark in commands if has_jobs and survivors(mark)}
        checkpoints = workspace.session_directory(session_id) / "checkpoints"
        kept = {path.name for path in checkpoints.glob("*") if _digest(path.read_bytes()) == path.name}
        torn = second_reader.read(workspace.journal(session_id)).torn_start
        return Left(records, workspace.files(), frozenset(kept), frozenset(alive), torn)

    def is_torn_start(self, call: ToolCall) -> bool:
        """Whether the journal ends in a half-written start of this call, which counts as a start (case 134)."""
        if self.torn_start is None or call.attempt is None:
            return False
        return call.attempt.attempt_id.startswith(self.torn_start)

    def having(self, kind: str) -> set[str]:
        """The calls that have a record of that kind."""
        return {record["callId"] for record in self.records if record["kind"] == kind}

    @property
    def proposed(self) -> dict[str, tuple[str, tuple[str, ...] | None]]:
        """Call id → its tool and the files it changes, for every call whose message is on disk; None: it only reads."""
        messages = [record for record in self.records if record["kind"] == "assistant"]
        calls = [call for message in messages for call in message.get("calls", ())]
        return {call["callId"]: (call["tool"], changes(call["tool"], call["arguments"])) for call in calls}

    def reads_of_nothing(self, scenario: Scenario) -> set[str]:
        """The calls that read a file which the scenario creates; the model reads it before it writes it."""
        calls = [call for record in self.records if record["kind"] == "assistant" for call in record.get("calls", ())]
        reads = {call["callId"]: json.loads(call["arguments"]) for call in calls if call["tool"] == "read_file"}
        return {call_id for call_id, given in reads.items() if scenario.before.get(given["path"], "") is None}

    @property
    def prompted(self) -> bool:
        """Whether the prompt is on disk."""
        return any(record["kind"] == "user" for record in self.records)


def survivors(mark: str) -> list[int]:
    """The processes that carry the mark of an attempt."""
    found = process_table.find_survivors(mark)
    assert found is not None, "processes can be told here"
    return [one.pid for one in found]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def changes(tool: str, arguments: str) -> tuple[str, ...] | None:
    """The files that a call of a scenario changes; None if it only reads."""
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
    """A session as it was opened after a kill."""

    ledger: Ledger
    snapshot: Snapshot
    states: dict[str, CallState]  # call id → as in the protocol
    journal: bytes
    files: dict[str, str]
    writable: bool
    epoch: str | None
    half_written: list[str]  # in the session's directory
    told: str  # the messages to the user meanwhile


@attrs.frozen
class Later:
    """The process runs after a kill."""

    opened: Opened
    journals: list[bytes]  # after each further opening
    going_on: str  # how the next turn ended
    next_files: dict[str, str]
    resent: str | None  # how the turn of the resent prompt ended; None: it ran nothing
    last_files: dict[str, str]
    partly: dict[str, str]  # title → the words of an inspection, for effects whose paths disagree
    still_alive: list[
        int
    ]  # processes of background commands that live after everything the server knows of was stopped


async def opened(server: InProcessServer, session_id: str = SESSION) -> Opened:
    """Open a session and return what is seen."""
    view = await server.open(session_id)
    calls = [call for message in view.messages for call in message.calls or ()]
    folder = server.workspace.session_directory(session_id)
    return Opened(
        server.ledger(session_id),
        view.snapshot,
        {call.call_id: call.state for call in calls},
        server.workspace.journal(session_id),
        server.workspace.files(),
        view.session.read_only is None,
        view.session.epoch,
        [path.name for path in folder.rglob("*") if path.name.startswith(".") or path.name.endswith(".new")],
        "\n".join(server.editor.messages),
    )


async def later_runs(
    workspace: Workspace, settle: SettleSetting = "checked", run: int = 2, scenario: Scenario = WORDS
) -> Later:
    """Open three times, each in a new process run; continue in the last one, and send the prompt of the first run
    again.

    `run`: the number of the first of them.
    """
    async with scenario.server(workspace, run, settle) as server:
        first = await opened(server)
    journals = []
    for again in (1, 2):
        async with scenario.server(workspace, run + again, settle) as server:
            await server.open(SESSION)
            journals.append(workspace.journal(SESSION))
    async with scenario.server(workspace, run + 3, settle) as server:
        return await _go_on(server, first, journals, scenario)


async def _go_on(server: InProcessServer, first: Opened, journals: list[bytes], scenario: Scenario) -> Later:
    ended = await server.say(SESSION, "say on", "prompt-2")
    _history_is_sound(server.ledger(SESSION))
    files = server.workspace.files()
    marks = [job.attempt_id for job in server.ledger(SESSION).open_jobs()]
    marks += [one.attempt_id for one in server.ledger(SESSION).uncertain() if one.tool == "run_command"]
    if scenario.has_jobs:
        await _stop_what_is_left(server)
    alive = [pid for mark in marks for pid in survivors(mark)] if scenario.has_jobs else []
    partly = await _partly(server)
    accepted = await server.send(SESSION, scenario.prompt, PROMPT)
    session = server.registry.sessions[SESSION]
    resent = None if accepted.duplicate else (await session.feed.wait_until_ended(accepted.turn_id)).reason
    _history_is_sound(server.ledger(SESSION))
    return Later(first, journals, ended.reason, files, resent, server.workspace.files(), partly, alive)


async def _stop_what_is_left(server: InProcessServer) -> None:
    """Stop background commands by their ids, and what an uncertain start left by its inspection."""
    session = server.registry.sessions[SESSION]
    for number, job in enumerate(session.ledger.open_jobs()):
        await server.say(SESSION, f'stop_command {{"jobId": "{job.job_id}"}}', f"stop-{number}")
    for attempt in session.ledger.uncertain():
        if attempt.tool == "run_command":
            seen = await resolve(session, ResolutionRequest(attempt.attempt_id, "inspect"))
            assert seen.inspection is not None
            await end_survivors(session, attempt.attempt_id, seen.inspection.inspection_id)


async def _partly(server: InProcessServer) -> dict[str, str]:
    session, said = server.registry.sessions[SESSION], {}
    for attempt in session.ledger.uncertain():
        if attempt.check == "conflict":
            seen = await resolve(session, ResolutionRequest(attempt.attempt_id, "inspect"))
            assert seen.inspection is not None
            said[attempt.title] = seen.inspection.text
    return said


async def runs_without_session(workspace: Workspace, scenario: Scenario = WORDS) -> dict[str, str]:
    """After a kill before anything of the session was on disk: the server works, and the scenario runs well again.

    Nobody was promised the session itself: it may be there, empty, or not.
    """
    async with scenario.server(workspace, 2) as server:
        assert {view.session_id for view in await server.registry.list_sessions()} <= {SESSION}
        if not await _opens(server):
            assert not workspace.journal(SESSION), "a session of which anything is there opens"
        session_id = await server.create()
        assert (await server.say(session_id, scenario.prompt)).reason == "done"
    return workspace.files()


async def _opens(server: InProcessServer) -> bool:
    try:
        await server.open(SESSION)
    except Refused:
        return False
    return True


def _history_is_sound(ledger: Ledger) -> None:
    messages = outgoing_messages(ledger)
    assert messages
    validate(messages)


def keeps_promises(left: Left, later: Later, settle: SettleSetting = "checked", scenario: Scenario = WORDS) -> None:
    """Assert every promise about a kill, as the disk shows it."""
    for name, content in scenario.before.items():
        assert left.files.get(name) in (content, scenario.after[name]), f"{name} is neither old nor new"
    first = later.opened
    _evidence_is_there(left, scenario)
    _each_call_as_the_disk_says(left, later, settle, scenario)
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
        assert later.last_files == scenario.last_files


def _evidence_is_there(left: Left, scenario: Scenario) -> None:
    """A start names each path with the content before and the intended content, and the content before is kept (J3,
    W8)."""
    for record in left.records:
        if record["kind"] != "started":
            continue
        _, files = left.proposed[record["callId"]]
        evidence = {one["path"]: one for one in record.get("evidence", ())}
        assert set(evidence) == set(files or ()) - {COUNTER}, "a start names other paths than its call"
        for name, one in evidence.items():
            before, after = scenario.before[name], scenario.after[name]
            assert one.get("before") == (None if before is None else _digest(before.encode()))
            assert one.get("intended") == (None if after is None else _digest(after.encode()))
            assert before is None or one["checkpoint"] in left.kept, f"the content of {name} before is not kept"


def _each_call_as_the_disk_says(left: Left, later: Later, settle: SettleSetting, scenario: Scenario) -> None:
    first = later.opened
    started, ended = left.having("started"), left.having("result")
    replied, missing = left.having("tool"), left.reads_of_nothing(scenario)
    assert set(first.states) == set(left.proposed), "each call has one state"
    for call_id, (tool, files) in left.proposed.items():
        call, state = first.ledger.calls[call_id], first.states[call_id]
        if files is None:
            over = ("failed" if call_id in missing else "returned") if call_id in replied else "notRun"
            assert state == over, f"a read is never {state} [C7]"
            continue
        new = {name for name in files if first.files.get(name) != scenario.before[name]}
        if call_id in ended:
            assert state == "returned"
            assert new == set(files)
        elif left.is_torn_start(call):
            assert not new, f"{tool} did something before its start was durable [I1]"
            _uncertain(call, state, None, settle)
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


def _uncertain(call: ToolCall, state: CallState, check: Check | None, settle: SettleSetting) -> None:
    """It may have run: its result stays unknown in the history, and only what the files prove now settles it [I3, I9].

    `check`: what the files say; None if there is nothing to check.
    """
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


def _partial_state_is_named(partly: Mapping[str, str], call: ToolCall, files: tuple[str, ...], new: set[str]) -> None:
    """The words of an inspection say how each path is (W3)."""
    assert call.attempt is not None
    named = ", ".join(f"{name}: {'satisfied' if name in new else 'unchanged'}" for name in files)
    assert named in partly[call.attempt.title]


def _nothing_runs_untold(left: Left, later: Later) -> None:
    """A background process has its start on disk. A message has its mark, or its start is uncertain. It is no uncertain
    effect once the start has returned. Opening ends none, and it can be stopped (E5, I1, I4)."""
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
    """The second reader finds the same records in the journal, and no damage."""
    reading = second_reader.read(journal)
    assert (reading.damaged, reading.breaks, reading.tail, reading.newer) == (0, set(), "clean", False)
    assert reading.records == whole_records(journal)


def _said_once(ledger: Ledger, records: Any) -> None:
    """One end and at most one settlement for each attempt, and no refused record (J14, C4)."""
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
    """Opening removes only temporary files that a start names; every record is still there (I4, C8, W9)."""
    assert first.files == {name: content for name, content in left.files.items() if not temporary(name)}
    kept = whole_records(first.journal)
    assert kept[: len(left.records)] == left.records
    assert first.half_written == []
    assert first.writable
    assert first.epoch is not None


def temporary(name: str) -> bool:
    """Whether the file is one of ours, beside a file that is being replaced."""
    return name.rpartition("/")[2].startswith(".") and name.endswith(".steadyhand")
