"""The story that is killed everywhere, and what must hold afterwards, wherever that was.

The story is one turn that reads, writes a new file, writes and edits existing ones, and runs a command that appends a
line to a file, so that a second run of it would be seen. `Left` is what the first life left, read here anew: whole
lines of the journal and the files, nothing of the product's own reading. `lives_after` are the lives that follow;
`keeps_promises` compares the two.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any

import attrs

from steadyhand.core.ledger import Call, Ledger
from steadyhand.core.record import Record, Result, Settlement
from steadyhand.core.recovery import SettleSetting
from steadyhand.core.refusal import Refused
from steadyhand.core.transcript import outgoing, validate
from steadyhand.core.views import CallState, Snapshot
from steadyhand.core.words import outcome_of, state_of
from steadyhand.journal.format import read_journal
from tests.support.fakes import id_of
from tests.support.turns import Place, Rig, rig

SESSION = id_of(1)  # the first id of the first life
PROMPT = "prompt-1"
COUNTER = "counter.txt"
COMMAND = f"echo ran >> {COUNTER}"
STORY = "\n".join(
    [
        "show notes.txt",
        'write new.txt with "new\\n"',
        'write old.txt with "changed\\n"',
        "replace one with two in edited.txt",
        f"run {COMMAND}",
    ]
)
BEFORE: dict[str, str | None] = {"new.txt": None, "old.txt": "old\n", "edited.txt": "one\nmore\n", COUNTER: None}
AFTER = {"new.txt": "new\n", "old.txt": "changed\n", "edited.txt": "two\nmore\n", COUNTER: "ran\n"}
NOTES = {"notes.txt": "a note\n"}


def lay_out(place: Place) -> Place:
    """The workspace before the story."""
    for name, content in {**NOTES, **BEFORE}.items():
        if content is not None:
            place.write(name, content)
    return place


async def tell_story(house: Rig) -> str:
    """A session and the story in it; how the turn ended."""
    session_id = await house.create()
    assert session_id == SESSION
    return (await house.say(session_id, STORY, PROMPT)).reason


@attrs.frozen
class Left:
    """What a life left on disk."""

    records: list[dict[str, Any]]
    files: dict[str, str]

    @staticmethod
    def of(place: Place, session_id: str = SESSION) -> Left:
        return Left(whole_records(place.journal(session_id)), place.files())

    def having(self, kind: str) -> set[str]:
        """The calls that have a record of that kind."""
        return {record["callId"] for record in self.records if record["kind"] == kind}

    @property
    def proposed(self) -> dict[str, tuple[str, str | None]]:
        """Call id → its tool and the file it changes, of every call whose message is on disk."""
        messages = [record for record in self.records if record["kind"] == "assistant"]
        calls = [call for message in messages for call in message.get("calls", ())]
        return {call["callId"]: (call["tool"], changes(call["tool"], call["arguments"])) for call in calls}

    @property
    def prompted(self) -> bool:
        """Whether the prompt is on disk."""
        return any(record["kind"] == "user" for record in self.records)


def whole_records(content: bytes) -> list[dict[str, Any]]:
    """The records that are whole. Only the last line can be torn by a kill; a beginning of JSON is no JSON."""
    lines = content.split(b"\n")
    records = [json.loads(line) for line in lines[:-1]]
    with contextlib.suppress(ValueError):
        records.append(json.loads(lines[-1]))
    return records


def changes(tool: str, arguments: str) -> str | None:
    """The file that a call of the story changes."""
    if tool == "run_command":
        return COUNTER
    path: str = json.loads(arguments)["path"]
    return path if tool != "read_file" else None


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


@attrs.frozen
class Later:
    """The lives after a death."""

    opened: Opened
    journals: list[bytes]  # after each further opening
    going_on: str  # how the next turn ended
    next_files: dict[str, str]
    resent: str | None  # how the turn of the resent prompt ended; None: it ran nothing
    last_files: dict[str, str]


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
    )


async def lives_after(place: Place, settle: SettleSetting = "checked", life: int = 2, prompt: str = STORY) -> Later:
    """Open three times, each in a new life; go on in the last, and send the prompt of the first again.

    `life`: the number of the first of them."""
    async with rig(place, life=life, settle=settle) as house:
        first = await opened(house)
    journals = []
    for again in (1, 2):
        async with rig(place, life=life + again, settle=settle) as house:
            await house.open(SESSION)
            journals.append(place.journal(SESSION))
    async with rig(place, life=life + 3, settle=settle) as house:
        return await _go_on(house, first, journals, prompt)


async def _go_on(house: Rig, first: Opened, journals: list[bytes], prompt: str) -> Later:
    ended = await house.say(SESSION, "say on", "prompt-2")
    _history_is_sound(house.ledger(SESSION))
    files = house.place.files()
    accepted = await house.send(SESSION, prompt, PROMPT)
    owner = house.house.owners[SESSION]
    resent = None if accepted.duplicate else (await owner.wait_ended(accepted.turn_id)).reason
    _history_is_sound(house.ledger(SESSION))
    return Later(first, journals, ended.reason, files, resent, house.place.files())


async def lives_without(place: Place) -> dict[str, str]:
    """After a death before anything of the session was on disk: the server works, and the story goes well anew.

    The session itself was promised to nobody: it may be there, empty, or not.
    """
    async with rig(place, life=2) as house:
        assert {view.session_id for view in await house.house.listed()} <= {SESSION}
        if not await _opens(house):
            assert not place.journal(SESSION), "a session of which anything is there opens"
        session_id = await house.create()
        assert (await house.say(session_id, STORY)).reason == "done"
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


def keeps_promises(left: Left, later: Later, settle: SettleSetting = "checked") -> None:
    """Every promise about a death, as the disk shows it."""
    for name, content in BEFORE.items():
        assert left.files.get(name) in (content, AFTER[name]), f"{name} is neither old nor new"
    first = later.opened
    _each_call_as_the_disk_says(left, first, settle)
    _said_once(first.ledger, read_journal(first.journal).records)
    _nothing_done_by_opening(left, first)
    assert later.journals == [first.journal] * len(later.journals), "opening again wrote something"
    assert later.going_on == "done"
    assert later.next_files == first.files, "going on did something nobody asked for"
    if left.prompted:
        assert later.resent is None
        assert later.last_files == first.files, "a resent prompt ran again"
    else:
        assert later.resent == "done"
        assert later.last_files == {**NOTES, **AFTER}


def _each_call_as_the_disk_says(left: Left, first: Opened, settle: SettleSetting) -> None:
    started, ended = left.having("started"), left.having("result")
    replied = left.having("tool")
    assert set(first.states) == set(left.proposed), "each call has one state"
    for call_id, (tool, file) in left.proposed.items():
        call, state = first.ledger.calls[call_id], first.states[call_id]
        if file is None:
            assert state == ("returned" if call_id in replied else "notRun"), f"a read is never {state} [C7]"
            continue
        happened = first.files.get(file) != BEFORE[file]
        if call_id in ended:
            assert state == "returned"
            assert happened
        elif call_id in started:
            _uncertain(call, state, tool, happened, settle)
        else:
            assert state == "notRun", f"{tool} without a start on disk is called {state} (C1)"
            assert not happened, f"{tool} did something without a start on disk [I1]"
            if call.attempt is not None:
                assert outcome_of(call)[0] == "interrupted_before_execution"


def _uncertain(call: Call, state: CallState, tool: str, happened: bool, settle: SettleSetting) -> None:
    """It may have run: unknown for ever as history, and settled only by what the file proves of now [I3, I9]."""
    attempt = call.attempt
    assert attempt is not None
    assert attempt.result is not None
    assert state == "unknown"
    assert attempt.result.outcome == "unknown_after_restart"
    if tool == "run_command":
        assert attempt.uncertain
        assert attempt.check is None
        assert attempt.settlement is None
        return
    assert attempt.check == ("satisfied" if happened else "unchanged")
    if settle == "ask":
        assert attempt.uncertain
        assert attempt.settlement is None
        return
    assert attempt.settlement is not None
    assert not attempt.uncertain
    assert attempt.settlement.settled == ("checked_present" if happened else "checked_absent")


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
