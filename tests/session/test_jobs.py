"""Background commands: started, read, stopped, ended with their session, looked for after a crash (E5, case 98)."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from steadyhand.adapters import process_list
from steadyhand.adapters.children import SystemProcesses
from steadyhand.adapters.disk import system_disk
from steadyhand.core.ledger import fold
from steadyhand.core.record import Damage, Job, Notice, Result, Stamped
from steadyhand.core.show import last_text
from steadyhand.ports import Disk, Finished, Survivor
from steadyhand.session import jobs
from steadyhand.session.owner import Owner
from steadyhand.session.reviving import revive
from steadyhand.tools.command_output import CommandOutput, wait_ms_max
from steadyhand.tools.content import Contents
from steadyhand.tools.job_output import JobOutput
from steadyhand.tools.output import shown_bytes_max
from steadyhand.tools.run_command import RunCommand
from steadyhand.tools.stop_command import StopCommand
from steadyhand.tools.tool import Done, Preview, Running, Tool
from tests.support.disks import MatchingFault
from tests.support.fakes import FakeProcesses, Script
from tests.support.ground import Yard, carried_out, planned, refusal
from tests.support.scripted import (
    ScriptedTool,
    Stage,
    asks,
    assert_closed,
    call,
    kinds,
    on_disk,
    outcomes,
    replies,
    run,
    says,
    staged,
    until,
)
from tests.support.systems import linux_only

pytestmark = pytest.mark.anyio

ID = "0" * 31 + "1"


def hanging(*output: bytes) -> FakeProcesses:
    """Every command writes this and runs until it is ended."""
    return FakeProcesses(otherwise=Script(output=output, hangs=True))


async def begun(stage: Stage, command: str = "serve", **more: object) -> tuple[Owner, str]:
    """A session with a job in it: (owner, job id)."""
    stage.model.answers.insert(0, asks(run(command, background=True, **more)))
    owner = await stage.session("auto")
    await stage.say(owner)
    (job_id,) = owner.ledger.jobs
    return owner, job_id


async def asked(stage: Stage, owner: Owner, tool: str, job_id: str, **more: object) -> str:
    """The reply to one call of that tool."""
    stage.model.answers.insert(0, asks(call(tool, jobId=job_id, **more)))
    await stage.say(owner)
    return replies(owner)[-1]


async def typed(stage: Stage, owner: Owner, line: str) -> str:
    """The answer to a slash command."""
    turn_id = (await stage.send(owner, line)).turn_id
    await stage.ended(owner, turn_id)
    return last_text(owner.ledger, turn_id)


def events(owner: Owner) -> list[tuple[str, str | None]]:
    return [(record.event, record.reason) for record in on_disk(owner) if isinstance(record, Job)]


# --- the start ------------------------------------------------------------------------------------------------------


async def test_a_start_returns_when_it_is_spawned(tmp_path: Path) -> None:
    """E5, J2: the call has returned while its process runs on; the job stands in the journal before the result."""
    async with staged(tmp_path, processes=hanging()) as stage:
        owner, job_id = await begun(stage)
        assert job_id in replies(owner)[0]
        assert outcomes(owner) == [("returned", None)]
        assert owner.ledger.uncertain() == []
        order = [kind for kind in kinds(owner) if kind in ("intent", "started", "job", "result", "tool")]
        assert order == ["intent", "started", "job", "result", "tool"]
        (job,) = [record for record in on_disk(owner) if isinstance(record, Job)]
        result = next(record for record in on_disk(owner) if isinstance(record, Result))
        assert (job.attempt_id, job.pid, job.started, job.title) == (
            result.attempt_id, 1001, "start-1001", "run_command: serve",
        )  # fmt: skip
        assert_closed(owner)


async def test_what_cannot_be_spawned_failed(tmp_path: Path) -> None:
    """C6: nothing ran, and there is no job."""
    processes = FakeProcesses(otherwise=Script(not_started=FileNotFoundError(errno.ENOENT, "No such file")))
    async with staged(tmp_path, asks(run("serve", background=True)), processes=processes) as stage:
        owner = await stage.session("auto")
        await stage.say(owner)
        assert outcomes(owner) == [("failed", "not_started")]
        assert "Nothing ran" in replies(owner)[0]
        assert owner.ledger.jobs == {}


async def test_there_is_a_bound_of_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I13: one more than may run at once is refused before it is spawned; an ended one makes room."""
    monkeypatch.setattr(jobs, "jobs_at_once_max", 1)
    async with staged(tmp_path, processes=hanging()) as stage:
        owner, job_id = await begun(stage)
        stage.model.answers.insert(0, asks(run("other", background=True)))
        await stage.say(owner)
        assert outcomes(owner)[-1] == ("failed", "not_started")
        assert len(owner.ledger.jobs) == 1
        await asked(stage, owner, "stop_command", job_id)
        stage.model.answers.insert(0, asks(run("other", background=True)))
        await stage.say(owner)
        assert len(owner.ledger.jobs) == 2


async def test_a_reading_in_the_background_is_none(tmp_path: Path) -> None:
    """B2: what runs on after its call is asked for like any command, whatever its words are; the person sees that it
    stays."""
    yard = Yard.under(tmp_path)
    seen = planned(RunCommand(), yard.ground(), command="cat a", background=True)
    assert seen.effect == "opaque"
    preview = seen.preview()
    assert isinstance(preview, Preview)
    assert "in the background until it ends, is stopped, or the session is closed" in preview.text


@pytest.mark.parametrize(
    ("tool", "fields", "named"),
    [
        (CommandOutput(), {}, "jobId"),
        (CommandOutput(), {"jobId": "1"}, "jobId"),
        (CommandOutput(), {"jobId": ID, "waitMs": wait_ms_max + 1}, "waitMs"),
        (CommandOutput(), {"jobId": ID, "waitMs": -1}, "waitMs"),
        (StopCommand(), {"jobId": ID.upper().replace("0", "A")}, "jobId"),
        (StopCommand(), {"jobId": ID, "force": True}, "force"),
    ],
)
async def test_arguments_are_strict(tmp_path: Path, tool: Tool, fields: dict[str, object], named: str) -> None:
    """N1: refused with a sentence that names the field."""
    found = refusal(tool, Yard.under(tmp_path).ground(), **fields)
    assert found.reason == "bad_arguments"
    assert named in found.text


async def test_without_a_session_there_are_no_jobs(tmp_path: Path) -> None:
    """G1: the tools say so."""
    ground = Yard.under(tmp_path).ground()
    assert (await carried_out(RunCommand(), ground, command="x", background=True)).reason == "not_started"
    for tool in (CommandOutput(), StopCommand()):
        done = await carried_out(tool, ground, jobId=ID)
        assert (done.outcome, done.reason) == ("failed", "not_found")


# --- reading it -----------------------------------------------------------------------------------------------------


async def test_output_is_told_once(tmp_path: Path) -> None:
    """G1: what came since the last look; then nothing is new; a look is a read and asks nobody."""
    async with staged(tmp_path, processes=hanging(b"one\n", b"two\n")) as stage:
        owner, job_id = await begun(stage)
        assert await asked(stage, owner, "command_output", job_id) == "one\ntwo\n[it runs]"
        assert await asked(stage, owner, "command_output", job_id) == "(no new output)\n[it runs]"
        assert stage.editor.questions == []


async def test_a_look_waits_for_the_end(tmp_path: Path) -> None:
    """G1: it waits as long as it is told to; the end comes with its code, and the whole output is kept (J12)."""
    processes = FakeProcesses(otherwise=Script(output=(b"built\n",), finished=Finished(3, None, False, (), True)))
    async with staged(tmp_path, processes=processes) as stage:
        owner, job_id = await begun(stage)
        said = await asked(stage, owner, "command_output", job_id, waitMs=wait_ms_max)
        assert said == "built\n[exit code 3]\n[it has ended]"
        assert events(owner) == [("started", None), ("ended", None)]
        ended = owner.ledger.jobs[job_id]
        assert ended.exit_code == 3
        assert ended.output is not None
        assert Contents(system_disk(), owner.path, "outputs").read(ended.output, 100) == b"built\n"


async def test_a_job_of_nobody(tmp_path: Path) -> None:
    """G1: an id that this session does not know."""
    async with staged(tmp_path, processes=hanging()) as stage:
        owner, _ = await begun(stage)
        assert "no background command" in await asked(stage, owner, "command_output", ID)


def output(tmp_path: Path, disk: Disk | None = None) -> JobOutput:
    (tmp_path / "s").mkdir()
    return JobOutput(disk or system_disk(), str(tmp_path / "s"), "a" * 32)


def test_much_news_is_cut_in_the_middle_and_kept_whole(tmp_path: Path) -> None:
    """Case 65: memory holds beginning and end, the file all of it."""
    heard = output(tmp_path)
    for number in range(40):
        heard.take(b"%07d\n" % number * 1000)
    news = heard.news()
    assert news.cut
    assert news.bytes == 320_000
    assert news.text.startswith("0000000\n")
    assert news.text.endswith("0000039")
    assert len(news.text.encode()) <= shown_bytes_max + 200
    assert "the whole is kept" in news.note
    heard.take(b"more\n")
    assert heard.news().text == "more"
    kept = heard.finish()
    assert kept is not None
    assert kept.bytes == 320_005


def test_pictures_of_control_characters_do_not_burst_a_reply(tmp_path: Path) -> None:
    """I13: what is shown for a byte may be longer than it."""
    heard = output(tmp_path)
    heard.take(b"\x01" * shown_bytes_max)
    news = heard.news()
    assert news.cut
    assert len(news.text.encode()) <= shown_bytes_max + 200


def test_a_character_in_two_pieces_is_whole(tmp_path: Path) -> None:
    """G1: its beginning waits for its end, and is told at last if none comes."""
    heard = output(tmp_path)
    heard.take("a€".encode()[:2])
    assert heard.news().text == "a"
    heard.take("€".encode()[1:])
    assert heard.news().text == "€"
    heard.take("€".encode()[:1])
    heard.finish()
    assert heard.news().text == "\ufffd"


def test_a_full_disk_ends_no_job(tmp_path: Path) -> None:
    """J6: the output is told, only not kept."""
    heard = output(tmp_path, MatchingFault(system_disk(), lambda operation: operation.verb == "write", errno.ENOSPC))
    heard.take(b"x\n")
    assert heard.news().text == "x"
    assert heard.finish() is None


# --- its end --------------------------------------------------------------------------------------------------------


async def test_it_is_stopped_on_request(tmp_path: Path) -> None:
    """E5: its last output comes with the answer; it holds nothing back, and the mode's permission is asked for it."""
    async with staged(tmp_path, processes=hanging(b"up\n")) as stage:
        owner, job_id = await begun(stage)
        await owner.set_mode("ask")
        said = await asked(stage, owner, "stop_command", job_id)
        assert said == "up\n[ended by signal 15]\n[it has ended; it was stopped on request]"
        assert outcomes(owner)[-1] == ("returned", None)
        assert [question.tool for question in stage.editor.questions] == ["stop_command"]
        assert events(owner) == [("started", None), ("ended", "stopped")]
        assert owner.ledger.attempts[list(owner.ledger.attempts)[-1]].scope.plain() == {"paths": []}
        assert "it has ended" in await asked(stage, owner, "stop_command", job_id), "a second stop finds it ended"
        assert len(events(owner)) == 2


async def test_it_ends_with_its_session(tmp_path: Path) -> None:
    """Case 98: closing ends it, and says so in the journal before the lock is free."""
    async with staged(tmp_path, processes=hanging()) as stage:
        owner, _ = await begun(stage)
        await stage.house.close(owner.session_id)
        assert events(owner) == [("started", None), ("ended", "closed")]


async def test_it_ends_with_a_session_that_stays_held(tmp_path: Path) -> None:
    """Case 98, B1: a session with an uncertain effect stays held when it is closed; its jobs end all the same."""
    unknown = Done("unknown", "?", "error")

    async def body(_: Running) -> Done:
        return unknown

    doubtful = ScriptedTool("doubtful", body, "opaque")
    async with staged(tmp_path, processes=hanging(), tools=[doubtful]) as stage:
        owner, _ = await begun(stage)
        stage.model.answers.insert(0, asks(call("doubtful")))
        await stage.say(owner)
        await stage.house.close(owner.session_id)
        assert owner.session_id in stage.house.owners
        assert events(owner) == [("started", None), ("ended", "closed")]
        assert all(running.over.is_set() for running in owner.jobs.values())


async def test_it_ends_with_a_deleted_session(tmp_path: Path) -> None:
    """Case 98."""
    async with staged(tmp_path, processes=hanging()) as stage:
        owner, _ = await begun(stage)
        await stage.house.delete(owner.session_id, force=False)
        assert all(running.over.is_set() for running in owner.jobs.values())


async def test_it_ends_with_the_house(tmp_path: Path) -> None:
    """Case 98: on the way out too."""
    async with staged(tmp_path, processes=hanging()) as stage:
        owner, _ = await begun(stage)
    assert events(owner) == [("started", None), ("ended", "closed")]


async def test_ended_jobs_are_forgotten_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I13: the last output of the oldest is no longer at hand; that it ended still is."""
    monkeypatch.setattr(jobs, "ended_kept_max", 0)
    processes = FakeProcesses({"short": Script(), "long": Script(hangs=True)})
    async with staged(tmp_path, processes=processes) as stage:
        owner, first = await begun(stage, "short")
        await until(lambda: owner.jobs[first].over.is_set())
        stage.model.answers.insert(0, asks(run("long", background=True)))
        await stage.say(owner)
        assert first not in owner.jobs
        assert "no longer at hand" in await asked(stage, owner, "command_output", first)
        assert await typed(stage, owner, "/output") == "No output is kept beside this session."


async def test_looking_at_one_that_runs_is_no_loop(tmp_path: Path) -> None:
    """G7: the same look again and again, while it runs, ends no turn; once it has ended the guard counts."""
    async with staged(tmp_path, processes=hanging()) as stage:
        owner, job_id = await begun(stage)
        stage.model.answers = [*(asks(call("command_output", jobId=job_id)) for _ in range(20)), says("it runs")]
        assert (await stage.say(owner)).reason == "done"
        assert await typed(stage, owner, f"/jobs stop {job_id}")
        stage.model.answers = [asks(call("command_output", jobId=job_id)) for _ in range(20)]
        assert (await stage.say(owner)).reason == "bound"


@pytest.mark.parametrize("spoilt", ["", "missing", "damaged"])
async def test_what_was_kept_of_one_is_shown_again(tmp_path: Path, spoilt: str) -> None:
    """J12: in a later life, to the model by its look and to the person by `/output`; what is missing or damaged is
    told to both, and nothing is invented."""
    processes = FakeProcesses({"short": Script(output=[b"up\n"])})
    async with staged(tmp_path, processes=processes) as stage:
        owner, job_id = await begun(stage, "short")
        await until(lambda: owner.jobs[job_id].over.is_set())
        call_id = owner.ledger.jobs[job_id].call_id
    (file,) = (Path(owner.path) / "outputs").iterdir()
    if spoilt == "missing":
        file.unlink()
    elif spoilt:
        file.write_bytes(b"down\n")
    async with staged(tmp_path, life=2) as stage:
        owner = await stage.opened(owner.session_id)
        seen = await asked(stage, owner, "command_output", job_id)
        listed = await typed(stage, owner, "/output")
        shown = await typed(stage, owner, f"/output {call_id}")
        assert listed == f"{call_id[:8]} run_command: short"
        if spoilt:
            assert "is missing or damaged now" in seen
            assert "down" not in seen + shown
            assert "is missing or damaged now" in shown
        else:
            assert seen.startswith("up\n")
            assert "as it was kept" in seen
            assert shown == f"up\n[3 bytes, whole in {file}]"
        assert "No kept output" in await typed(stage, owner, "/output ffffffff")
        assert "at least 4" in await typed(stage, owner, "/output f")


# --- after a crash --------------------------------------------------------------------------------------------------


async def crashed(tmp_path: Path) -> tuple[Path, str, str, str]:
    """State directory, session, job and mark of a life that was killed with a job running."""
    async with staged(tmp_path, processes=hanging()) as stage:
        owner, job_id = await begun(stage)
        return stage.crashed(tmp_path / "later"), owner.session_id, job_id, owner.ledger.jobs[job_id].attempt_id


async def test_what_a_crash_left_is_listed_and_can_be_stopped(tmp_path: Path) -> None:
    """E5, case 98: told with pid and mark at opening; not uncertain; ended by its id, and by nothing else."""
    state, session_id, job_id, mark = await crashed(tmp_path)
    processes = FakeProcesses()
    mine, other = Survivor(4001, "s1", "serve"), Survivor(4002, "s2", "serve --other")
    processes.survivors_of = {mark: [mine], "f" * 32: [other]}
    async with staged(tmp_path, processes=processes, state=state, life=2) as stage:
        owner = await stage.opened(session_id)
        assert owner.snapshot().calls == ()
        (said,) = [text for text in stage.editor.messages() if "background" in text]
        assert all(word in said for word in ("4001", mark, job_id))
        assert "it still runs, unheard: 4001 serve" in await asked(stage, owner, "command_output", job_id)
        assert "it was stopped on request" in await asked(stage, owner, "stop_command", job_id)
        assert processes.ended == [mine]
        assert events(owner)[-1] == ("ended", "stopped")


async def test_what_a_crash_left_is_told_once(tmp_path: Path) -> None:
    """E5, A8: one notification in all of one process, whether a look at the folders or an opening finds it first, and
    however often the session is opened again."""
    state, session_id, _, mark = await crashed(tmp_path)
    processes = FakeProcesses()
    processes.survivors_of = {mark: [Survivor(4001, "s1", "serve")]}
    async with staged(tmp_path, processes=processes, state=state, life=2) as stage:
        await revive(stage.house, [stage.root.as_uri()])
        for _ in range(2):
            await stage.opened(session_id)
            await stage.house.close(session_id)
        (said,) = [text for text in stage.editor.messages() if "outlived a crash" in text]
        assert mark in said


async def test_a_person_lists_and_stops_what_a_crash_left(tmp_path: Path) -> None:
    """E5: without the model, by `/jobs`: listed with its mark, ended by mark with pid and start time and nothing else,
    recorded, and told to the model by a notice; the session shows it until then."""
    state, session_id, job_id, mark = await crashed(tmp_path)
    processes = FakeProcesses()
    mine, other = Survivor(4001, "s1", "serve"), Survivor(4002, "s2", "serve --other")
    processes.survivors_of = {mark: [mine], "f" * 32: [other]}
    async with staged(tmp_path, processes=processes, state=state, life=2) as stage:
        owner = await stage.opened(session_id)
        (shown,) = owner.view().jobs or ()
        assert (shown.job_id, shown.attempt_id, shown.state) == (job_id, mark, "left")
        listed = await typed(stage, owner, "/jobs")
        assert (
            listed == f"1. {job_id[:8]} run_command: serve: outlived a crash and runs, process 4001 serve, mark {mark}"
        )
        assert "Give at least 4" in await typed(stage, owner, "/jobs stop ab")
        assert "No background command begins" in await typed(stage, owner, "/jobs stop ffff")
        assert "Say /jobs" in await typed(stage, owner, "/jobs end")
        assert await typed(stage, owner, f"/jobs stop {job_id[:8]}") == "run_command: serve: stopped."
        assert processes.ended == [mine]
        assert events(owner)[-1] == ("ended", "stopped")
        assert any(isinstance(one, Notice) and "had the background command" in one.text for one in on_disk(owner))
        assert owner.view().jobs is None
        assert await typed(stage, owner, "/jobs") == "No background command runs."


@pytest.mark.parametrize("gone", [True, False])
async def test_a_session_is_deleted_with_what_it_left_running_named(tmp_path: Path, gone: bool) -> None:
    """E5, S3: after that nothing lists it any more, so its process is told with the deletion; what is gone is not."""
    state, session_id, _, mark = await crashed(tmp_path)
    processes = FakeProcesses()
    processes.survivors_of = {mark: [Survivor(4001, "s1", "serve")]}
    async with staged(tmp_path, processes=processes, state=state, life=2) as stage:
        await stage.opened(session_id)
        if gone:
            processes.survivors_of = {}
        await stage.house.delete(session_id, force=False)
        told = [text for text in stage.editor.messages() if "is listed no more" in text]
        assert ["process 4001 serve" in text and mark in text for text in told] == ([] if gone else [True])
        assert processes.ended == []
        assert not (state / "sessions" / session_id).exists()


async def test_a_deletion_with_a_job_that_cannot_be_told_says_so(tmp_path: Path) -> None:
    """E5: none is never claimed where it cannot be told."""
    state, session_id, _, mark = await crashed(tmp_path)
    processes = FakeProcesses()
    processes.survivors_of = {mark: None}
    async with staged(tmp_path, processes=processes, state=state, life=2) as stage:
        await stage.opened(session_id)
        await stage.house.delete(session_id, force=False)
        assert any("whether it runs cannot be told" in text for text in stage.editor.messages())


async def test_a_person_stops_one_that_runs(tmp_path: Path) -> None:
    """E5: beside a turn too; what it wrote is left for the model's next look."""
    async with staged(tmp_path, processes=hanging(b"up\n")) as stage:
        owner, job_id = await begun(stage)
        assert [(job.job_id, job.state) for job in owner.view().jobs or ()] == [(job_id, "runs")]
        assert "runs, process" in await typed(stage, owner, "/jobs")
        assert await typed(stage, owner, f"/jobs stop {job_id}") == "run_command: serve: stopped."
        assert owner.view().jobs is None
        assert (await asked(stage, owner, "command_output", job_id)).startswith("up")


async def test_what_will_not_end_is_said_to_the_person(tmp_path: Path) -> None:
    """E5: it stays listed, and nothing is recorded."""
    state, session_id, job_id, mark = await crashed(tmp_path)
    processes = FakeProcesses()
    processes.survivors_of, processes.immortal = {mark: [Survivor(4001, "s1", "serve")]}, {4001}
    async with staged(tmp_path, processes=processes, state=state, life=2) as stage:
        owner = await stage.opened(session_id)
        assert "it did not end: 4001 serve" in await typed(stage, owner, f"/jobs stop {job_id}")
        processes.untold = True
        assert "cannot be told here" in await typed(stage, owner, f"/jobs stop {job_id}")
        assert "whether it runs cannot be told" in await typed(stage, owner, "/jobs")
        assert events(owner) == [("started", None)]


async def test_what_will_not_end_is_said(tmp_path: Path) -> None:
    """E5: the job stays open, and the call failed."""
    state, session_id, job_id, mark = await crashed(tmp_path)
    processes = FakeProcesses()
    processes.survivors_of, processes.immortal = {mark: [Survivor(4001, "s1", "serve")]}, {4001}
    async with staged(tmp_path, processes=processes, state=state, life=2) as stage:
        owner = await stage.opened(session_id)
        assert "4001" in await asked(stage, owner, "stop_command", job_id)
        assert outcomes(owner)[-1] == ("failed", "not_ended")
        assert len(owner.ledger.open_jobs()) == 1


async def test_what_is_gone_is_noted_once(tmp_path: Path) -> None:
    """E5, C4: opening again finds nothing new, and nobody is told of what does not run."""
    state, session_id, job_id, _ = await crashed(tmp_path)
    for life in (2, 3):
        async with staged(tmp_path, state=state, life=life) as stage:
            owner = await stage.opened(session_id)
            assert events(owner) == [("started", None), ("ended", "gone")]
            assert [text for text in stage.editor.messages() if "background" in text] == []
            assert "found gone" in await asked(stage, owner, "command_output", job_id)


async def test_where_it_cannot_be_told(tmp_path: Path) -> None:
    """E5: gone is never claimed where it cannot be told."""
    state, session_id, job_id, _ = await crashed(tmp_path)
    processes = FakeProcesses()
    processes.untold = True
    async with staged(tmp_path, processes=processes, state=state, life=2) as stage:
        owner = await stage.opened(session_id)
        assert any("cannot be told here" in text for text in stage.editor.messages())
        assert "cannot be told here" in await asked(stage, owner, "stop_command", job_id)
        assert len(owner.ledger.open_jobs()) == 1


@pytest.mark.parametrize("alive", [True, False])
async def test_a_start_looks_for_jobs_of_its_folders(tmp_path: Path, alive: bool) -> None:
    """A8, case 98: nobody opened the session; what runs is told in the one notification, and it is let go again."""
    state, session_id, _, mark = await crashed(tmp_path)
    processes = FakeProcesses()
    processes.survivors_of = {mark: [Survivor(4001, "s1", "serve")] if alive else []}
    async with staged(tmp_path, processes=processes, state=state, life=2) as stage:
        await revive(stage.house, [stage.root.as_uri()])
        assert [mark in text for text in stage.editor.messages()] == [True] * alive
        assert session_id not in stage.house.owners
        await revive(stage.house, [stage.root.as_uri()])
        assert len(stage.editor.messages()) == alive, "told once in one process"


def test_an_end_in_a_doubtful_tail_counts_for_nothing() -> None:
    """J6: a start there counts, an end does not; an end is for good."""
    started = Job(ID, "a" * 32, "c" * 32, "started", 7, "t", "run_command: x")
    ended = Job(ID, "a" * 32, "c" * 32, "ended", 7, "t", "run_command: x", 0)
    tail = [Stamped(1, "", "", started), Stamped(2, "", "", ended), Stamped(3, "", "", Damage(0, unacknowledged=1))]
    assert fold(tail, ()).open_jobs() == [started]
    again = fold([Stamped(1, "", "", started), Stamped(2, "", "", ended), Stamped(3, "", "", started)], ())
    assert again.open_jobs() == []
    assert len(again.refused) == 1


# --- real processes -------------------------------------------------------------------------------------------------


@pytest.fixture
def nothing_is_left(tmp_path: Path) -> Iterator[list[str]]:
    """Marks whose processes have to be gone at the end."""
    marks: list[str] = []
    yield marks
    assert [process_list.survivors(mark) for mark in marks] == [[] for _ in marks]


@linux_only
async def test_a_real_job(tmp_path: Path, nothing_is_left: list[str]) -> None:
    """E5, case 97: it is heard while it runs; what left its group ends with it; pid and start time name its shell."""
    async with staged(tmp_path, processes=SystemProcesses()) as stage:
        owner, job_id = await begun(stage, "setsid sleep 300 & echo up; sleep 300")
        nothing_is_left.append(owner.ledger.jobs[job_id].attempt_id)
        job = owner.ledger.jobs[job_id]
        assert process_list.is_running(job.pid, job.started)
        with anyio.fail_after(20):
            while "up" not in (said := await asked(stage, owner, "command_output", job_id, waitMs=50)):
                assert said == "(no new output)\n[it runs]"
        said = await asked(stage, owner, "stop_command", job_id)
        assert "left running, and ended now" in said
        assert not process_list.is_running(job.pid, job.started)


@linux_only
async def test_a_real_job_at_its_limit(tmp_path: Path, nothing_is_left: list[str]) -> None:
    """E5: a limit is kept in the background too."""
    async with staged(tmp_path, processes=SystemProcesses()) as stage:
        owner, job_id = await begun(stage, "sleep 300", timeoutMs=50)
        nothing_is_left.append(owner.ledger.jobs[job_id].attempt_id)
        assert "time limit" in await asked(stage, owner, "command_output", job_id, waitMs=20_000)


@linux_only
async def test_a_real_job_ends_with_the_house(tmp_path: Path, nothing_is_left: list[str]) -> None:
    """Case 98: one that does not heed SIGTERM is killed."""
    async with staged(tmp_path, says("never asked"), processes=SystemProcesses()) as stage:
        owner, job_id = await begun(stage, "trap '' TERM; echo up; while :; do sleep 300; done")
        nothing_is_left.append(owner.ledger.jobs[job_id].attempt_id)
    assert events(owner)[-1] == ("ended", "closed")
