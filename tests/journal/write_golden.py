"""Write golden journals of today's code: `python -m tests.journal.write_golden VERSION [NAME ...]`.

A golden journal is never written anew: a file that exists is left alone. Whoever adds a record kind, a member or a
word runs `python -m tests.journal.write_golden 0.2 every-member` and pins the new files in `test_golden_journals.py`.

    every-member  by the codec: each record class with its optional members absent and present, and with each word
    attempts      by the codec: a session whose attempts have each outcome and each settlement
    damaged       by a run: one bit of a journal was damaged, and the next process opened it
    uncertain     by a run: a kill left an uncertain command, a background job and a queued prompt
    NN-NAME       by a run: one scenario of tests/scenarios; `-killed-N`: what its Nth kill left

Clock and ids are fake, and the runs take place in one fixed folder, so that the same code writes the same bytes.
Beside each journal stands what the ledger makes of it, and beside some the rest of their session folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
import typing
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import anyio
import attrs

from steadyhand.domain.permissions.child_environment import ATTEMPT_MARK_NAME
from steadyhand.domain.records.prompt import FileAttachment
from steadyhand.domain.records.record import (
    KINDS,
    Assistant,
    Cancel,
    Ended,
    EndReason,
    Epoch,
    FileChange,
    Forget,
    Inspection,
    Job,
    Notice,
    Outcome,
    Permission,
    Queue,
    Record,
    Reject,
    Settled,
    Settlement,
    Supplied,
    Title,
    Usage,
)
from steadyhand.domain.views.serialize import camel_case
from steadyhand.ports.processes import OrphanProcess
from tests.journal.golden_journals import (
    GOLDEN,
    alternatives_of,
    fields_of,
    is_optional,
    item_of,
    ledger_state,
    words_of,
)
from tests.scenarios.test_scenarios import SCENARIOS, ScenarioPlayer, lines_of
from tests.support import fakes
from tests.support import journals as history
from tests.support.fakes import FakeProcesses, Script
from tests.support.in_process_server import scripted_server
from tests.support.journals import attempt_id, ident, journal
from tests.support.model import asks, run, says, write
from tests.support.session_state import journal_path

RUN_FOLDER = Path("/tmp/steadyhand-golden")  # stands in the journals, so it is the same for everybody
RUNS = (  # scenarios in which nothing runs side by side, so that ids come in one order
    "04-killed-after-the-write",
    "06-killed-in-a-command",
    "08-the-queue",
    "10-a-grant-has-an-end",
    "17-in-the-background",
    "18-a-job-outlives-a-crash",
    "19-the-model-asks-and-plans",
    "21-tried-again",
    "22-brought-back",
    "23-cut-off-while-reading",
    "25-a-turn-is-steered",
)
FOLDERS = ("damaged", "uncertain", "21-tried-again")  # the rest of their session folders is kept too
UNCERTAIN: tuple[Outcome, ...] = ("unknown", "unknown_after_restart")
NEVER_STARTED: tuple[Outcome, ...] = ("refused", "not_started", "interrupted_before_execution")


# By the codec.


def every_member() -> bytes:
    """Records of all kinds that show all there is to show; what they say of each other makes no sense."""
    odd_texts = ("Grüße, 世界 🌍", "line\u2028separator", "half a pair: \ud83d", 'quotes " and \\ and \x00 and \x7f')
    notices = [Notice(message_id=ident(f"odd {at}"), text=text) for at, text in enumerate(odd_texts)]
    return journal([*(record for cls in KINDS.values() for record in _objects_of(cls)), *notices])


def _objects_of(cls: type) -> Iterator[typing.Any]:
    """Without optional members, with all of them, and with each possible value of each member."""
    values = {field.name: _values_of(hint, camel_case(field.name)) for field, hint in fields_of(cls)}
    optional = {field.name: field.default for field, hint in fields_of(cls) if is_optional(field, hint)}
    whole = {
        name: next((value for value in some if value != optional.get(name, attrs.NOTHING)), some[0])
        for name, some in values.items()
    }
    made = [
        cls(**{name: value for name, value in whole.items() if name not in optional}),
        *(cls(**{**whole, name: value}) for name, some in values.items() for value in some),
    ]
    return iter(dict.fromkeys(made))


def _values_of(hint: object, name: str) -> list[object]:
    values: list[object] = []
    for part in alternatives_of(hint):
        item = item_of(part)
        if words_of(part):
            values += words_of(part)
        elif item is not None:
            values.append(tuple(_values_of(item, name)))
        elif isinstance(part, type) and attrs.has(part):
            values += _objects_of(part)
        elif part is bool:
            values += [True, False]
        elif part is int:
            values += [len(name), 2**40]
        else:
            values.append(name)
    return values


def attempts() -> bytes:
    """A session that makes sense: one call for each outcome, each settlement and each place where a kill may fall."""
    records: list[Record] = [*history.begun(), history.prompt("turn", "try everything")]
    uncertain = [*UNCERTAIN, *(f"{word} {outcome}" for outcome in UNCERTAIN for word in typing.get_args(Settled))]
    certain = [word for word in typing.get_args(Outcome) if word not in UNCERTAIN]
    open_ones = ["proposed", "intended", "started", "look open"]
    records.append(history.proposes("turn", *certain, *uncertain, *open_ones, "look ended", "answered", "supplied"))
    for outcome in certain:
        records += _attempt_records(outcome, outcome)
    for name in uncertain:
        outcome = typing.cast(Outcome, name.rpartition(" ")[2])
        records += _attempt_records(name, outcome)
        if " " in name:
            records += _settled(name, typing.cast(Settled, name.partition(" ")[0]))
    records += history.looked("look ended")
    records.append(history.replies("answered", "refused", "No such tool.", admitted=False))
    records.append(Supplied(turn_id=ident("turn"), call_id=ident("supplied"), text="No reply is recorded."))
    records += [*_tried_again(), *_jobs(), *_conversation(), *_queue()]
    records += [history.intends("intended"), history.intends("started"), history.allows("started", "session")]
    records += [history.starts("started"), history.intends("look open", effect="reads")]
    return journal(records)


def _attempt_records(name: str, outcome: Outcome) -> list[Record]:
    answer = "reject" if outcome == "refused" else "session" if outcome == "returned" else "once"
    records: list[Record] = [history.intends(name), history.allows(name, answer)]
    if outcome not in NEVER_STARTED:
        records.append(history.starts(name))
    if outcome in ("unknown_after_restart", "interrupted", "interrupted_before_execution"):
        return [*records, history.verdict(name, outcome)]
    return [*records, history.ends(name, outcome), history.replies(name, outcome)]


def _settled(name: str, word: Settled) -> list[Record]:
    about: dict[str, typing.Any] = {"attempt_id": attempt_id(name), "call_id": ident(name)}
    author: typing.Any = "recovery" if word.startswith("checked") else "model" if word.startswith("model") else "user"
    look = ident(f"inspection of {name}")
    inspection = Inspection(**about, inspection_id=look, state="absent_fenced", by=author, check="unchanged")
    ids: dict[str, typing.Any] = {
        "inspection_id": look,
        "superseded_by": attempt_id("retry") if word == "superseded" else None,
    }
    noted: list[Record] = [Reject(**about, inspection_id=look)] if word == "waived" else []
    settlement = Settlement(**about, settled=word, by=author, check="unchanged", **ids)
    told = Notice(message_id=ident(f"notice of {name}"), text=f"{name}.", attempt_id=attempt_id(name))
    return [inspection, *noted, settlement, told, settlement]


def _tried_again() -> list[Record]:
    """A retry and a restore, each an attempt of its own; a call that was confirmed is asked about again."""
    retry = attrs.evolve(history.intends("retry"), retry_of=attempt_id("superseded unknown"))
    restore = attrs.evolve(history.intends("restore"), restore_of=attempt_id("restored unknown"))
    change = FileChange(path="b.txt", change="moved", from_="a.txt")
    asked_again = Permission(
        attempt_id=attempt_id("retry"),
        call_id=ident("retry"),
        answer="once",
        tool="write_file",
        confirmed_before=(attempt_id("user_confirmed unknown"),),
    )
    return [
        retry,
        asked_again,
        attrs.evolve(history.starts("retry"), held=True, key="another key", occurrence=1),
        attrs.evolve(history.ends("retry"), files=(change,)),
        restore,
        history.starts("restore"),
        history.ends("restore"),
        Forget(attempt_id=attempt_id("returned")),
    ]


def _jobs() -> list[Record]:
    started = Job(
        job_id=ident("job 1"),
        attempt_id=attempt_id("returned"),
        call_id=ident("returned"),
        event="started",
        pid=4711,
        started="then",
        title="run_command: serve",
    )
    ended = attrs.evolve(started, event="ended", exit_code=1, output=history.digest("output"))
    return [started, ended, ended, attrs.evolve(started, job_id=ident("job 2"))]


def _conversation() -> list[Record]:
    """What is withdrawn, gone on with, counted and named; a turn for each reason to end."""
    cut = Assistant(turn_id=ident("turn"), message_id=ident("cut"), text="Half of", finish="length", reasoning="Hm. ")
    whole = attrs.evolve(cut, text=" a sentence.", finish="stop", goes_on=True, reasoning="Yes.")
    withdrawn = attrs.evolve(cut, message_id=ident("withdrawn"), text="No.", withdrawn=True)
    records: list[Record] = [
        cut,
        whole,
        withdrawn,
        Usage(turn_id=ident("turn"), complete=True, input=10, output=5, cost="0.0012", currency="USD"),
        Title(title="By the model", source="auto"),
        Title(title="By the user", source="user"),
        Title(title="By the model, too late", source="auto"),
        Ended(turn_id=ident("turn"), reason="done"),
        Ended(turn_id=ident("turn"), reason="cut"),
    ]
    for reason in typing.get_args(EndReason):
        records += [history.prompt(reason, f"end with {reason}"), Cancel(turn_id=ident(reason))]
        records.append(Ended(turn_id=ident(reason), reason=reason, text="Why." if reason == "cost" else None))
    return [*records, Epoch(epoch=ident("epoch 2"), pid=4712, host="host"), history.prompt("open", "/help", True)]


def _queue() -> list[Record]:
    """Prompts that wait, that were edited, that were removed, and that began their turn."""
    first, *more = [
        Queue(
            client_message_id=f"client-{name}", turn_id=ident(name), text=name, attachments=(FileAttachment("a.txt"),)
        )
        for name in ("waits", "edited", "removed", "begun")
    ]
    edited, removed, begun = more
    return [
        *(first, edited, removed, begun),
        attrs.evolve(edited, text="edited later", attachments=()),
        attrs.evolve(removed, removed=True),
        history.prompt("begun", "begun"),
    ]


# By runs.


async def damaged(results: Path) -> None:
    """A turn that writes a file; one bit of a `started` line is damaged; the next process opens the session."""
    async with scripted_server(RUN_FOLDER, asks(write("a.txt", "new\n")), says("done")) as stage:
        session = await stage.session("auto")
        await stage.say(session, "write a.txt")
    path = journal_path(stage.state, session.session_id)
    content = path.read_bytes()
    at = content.index(b'"kind":"started"') + 10
    path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    async with scripted_server(RUN_FOLDER, run=2) as stage:
        await stage.opened(session.session_id)
    _collect(path.parent, results / "damaged")


async def uncertain(results: Path) -> None:
    """A background job runs, a command runs and a prompt waits when the process is killed; the next one opens it."""
    scripts = {"serve": Script(hangs=True), "build": Script(hangs=True, started=anyio.Event())}
    processes = FakeProcesses(scripts)
    answers = (asks(run("serve", background=True)), says("It serves."), asks(run("build")))
    async with scripted_server(RUN_FOLDER, *answers, processes=processes) as stage:
        session = await stage.session("auto")
        await stage.say(session, "start the server")
        await stage.send(session, "build it")
        started = scripts["build"].started
        assert started is not None
        await started.wait()
        await stage.send(session, "and then deploy it")
        killed = stage.crashed(RUN_FOLDER / "killed")
    name = session.session_id
    _collect(killed / "sessions" / name, results / "uncertain-killed")
    mark = processes.runs[0].environment[ATTEMPT_MARK_NAME]
    later = FakeProcesses()
    later.survivors_of = {mark: [OrphanProcess(4001, "then", "serve")]}
    async with scripted_server(RUN_FOLDER, processes=later, state=killed, run=2) as stage:
        await stage.opened(name)
    _collect(killed / "sessions" / name, results / "uncertain")


async def scenario(path: Path, results: Path) -> None:
    """One scenario, and what each of its kills left."""
    async with AsyncExitStack() as processes:
        player, kills = ScenarioPlayer(RUN_FOLDER, processes), 0
        await player.start_process()
        for line in lines_of(path):
            if line.strip() and not line.startswith("#"):
                await player.play(line.strip())
            if line.strip() == "kill":
                kills += 1
                _collect(Path(player.current.session.path), results / f"{path.stem}-killed-{kills}")
                await player.start_process()
    _collect(Path(player.current.session.path), results / f"{path.stem}")


def _collect(session_folder: Path, result: Path) -> None:
    """Keep a session's files, unless its journal is the same as one that is kept already."""
    content = (session_folder / "journal.jsonl").read_bytes()
    if any(content == known.read_bytes() for known in result.parent.glob("*.jsonl")):
        return
    shutil.copyfile(session_folder / "journal.jsonl", result.with_name(f"{result.name}.jsonl"))
    for name in ("summary.json", "owner.json") if result.name in FOLDERS else ():
        shutil.copyfile(session_folder / name, result.with_name(f"{result.name}.{name}"))


def _in_run_folder(run: Callable[[], Awaitable[None]]) -> None:
    shutil.rmtree(RUN_FOLDER, ignore_errors=True)
    RUN_FOLDER.mkdir()
    try:
        anyio.run(run)
    finally:
        shutil.rmtree(RUN_FOLDER)


def write_all(results: Path) -> None:
    """Every golden journal of today's code into a folder."""
    os.umask(0o022)
    fakes.run_mark = fakes._own_mark = "00000000"  # not this process's id
    (results / "every-member.jsonl").write_bytes(every_member())
    (results / "attempts.jsonl").write_bytes(attempts())
    for made in (damaged, uncertain):
        _in_run_folder(partial(made, results))
    for path in SCENARIOS:
        if path.stem in RUNS:
            _in_run_folder(partial(scenario, path, results))


def expected_text(content: bytes) -> str:
    """What the ledger makes of a journal, one call, attempt or message a line."""
    parts = []
    for name, value in ledger_state(content).items():
        if isinstance(value, list):
            text = ",\n  ".join(map(json.dumps, value))
            parts.append(f' "{name}": [\n  {text}\n ]' if value else f' "{name}": []')
        else:
            parts.append(f' "{name}": {json.dumps(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main(version: str, *names: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder)
        write_all(results)
        for path in sorted(results.glob("*.jsonl")):
            path.with_suffix(".expected.json").write_text(expected_text(path.read_bytes()), encoding="ascii")
        for path in sorted(results.iterdir()):
            target = GOLDEN / f"{version}-{path.name}"
            if (not names or path.name.partition(".")[0] in names) and not target.exists():
                shutil.copyfile(path, target)
                if not target.name.endswith(".expected.json"):
                    sys.stdout.write(f'    "{target.name}": "{hashlib.sha256(target.read_bytes()).hexdigest()}",\n')


if __name__ == "__main__":
    main(*sys.argv[1:])
