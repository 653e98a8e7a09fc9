"""All sessions of a process: created, listed, closed, side by side, stopped (rows S2, S3, S7)."""

from __future__ import annotations

import errno
from pathlib import Path

import anyio
import pytest

from steadyhand.adapters.disk import system_disk
from steadyhand.core.record import Epoch, ModelName, Session
from steadyhand.core.refusal import Refused
from steadyhand.core.told import SessionTold
from steadyhand.session import desk, prompts
from tests.support.disks import MatchingFault
from tests.support.fakes import FakeProcesses, Script
from tests.support.scripted import (
    Gate,
    Park,
    ScriptedEditor,
    asks,
    assert_closed,
    journal_path,
    kinds,
    on_disk,
    outcomes,
    run,
    says,
    staged,
    states,
    write,
)

pytestmark = pytest.mark.anyio


async def test_a_new_session(tmp_path: Path) -> None:
    """Row S3: open and durable with its first records when it is answered, told once, and bound to its folder."""
    async with staged(tmp_path) as stage:
        view = await stage.house.create("Notes", stage.root.as_uri())
        assert (view.title, view.title_source, view.workspace) == ("Notes", "user", stage.root.as_uri())
        assert view.epoch is not None
        assert not view.busy
        assert view.read_only is None
        assert view.path == str(stage.state / "sessions" / view.session_id)
        owner = stage.house.owners[view.session_id]
        assert [type(r) for r in on_disk(owner)] == [Session, Epoch]
        assert [told.session for told in stage.editor.told if isinstance(told, SessionTold)] == [view]
        modes = [(Path(view.path) / name).stat().st_mode & 0o777 for name in ("", "journal.jsonl", "owner.json")]
        assert modes == [0o700, 0o600, 0o600], "nobody else reads them (J10)"
        untitled = await stage.house.create(None, None)
        assert (untitled.title, untitled.title_source, untitled.workspace) == ("", "none", None)


async def test_sessions_are_listed_from_their_files(tmp_path: Path) -> None:
    """Row S3, case 28: newest first, open or not, without an index that could be wrong."""
    async with staged(tmp_path) as stage:
        made = [(await stage.house.create(f"n{number}", None)).session_id for number in range(3)]
        await stage.say(stage.house.owners[made[0]], "hello")
        assert [view.title for view in await stage.house.listed()] == ["n0", "n2", "n1"]
        before = {view.session_id: view for view in await stage.house.listed()}
    (tmp_path / "state" / "sessions" / "not-a-session").mkdir()
    (tmp_path / "state" / "sessions" / ("c" * 32)).mkdir()
    for path in (tmp_path / "state" / "sessions").glob("*/summary.json"):
        path.write_bytes(b"garbage")
    async with staged(tmp_path, life=2) as stage:
        listed = await stage.house.listed()
        assert [view.title for view in listed] == ["n0", "n2", "n1"]
        for view in listed:
            was = before[view.session_id]
            assert (view.created, view.updated, view.mode, view.model) == (
                was.created,
                was.updated,
                was.mode,
                was.model,
            )
            assert view.epoch is None
        assert stage.house.owners == {}


async def test_a_state_directory_that_cannot_be_written(tmp_path: Path) -> None:
    """Rows J7, C4: no session can be created, which is said with what to do; the house lives on."""
    disk = MatchingFault(system_disk(), lambda op: op.verb in ("make_folder", "create"), errno.ENOSPC)
    async with staged(tmp_path, says("ok"), disk=disk) as stage:
        with pytest.raises(Refused) as refused:
            await stage.session()
        assert refused.value.kind == "journalBroken"
        assert "No space left" in refused.value.message or "full" in refused.value.message
        assert (await stage.say(await stage.session())).reason == "done"


async def test_two_sessions_at_once(tmp_path: Path) -> None:
    """Row S2: a turn each, side by side; what is told names its session, and neither waits for the other."""
    gates = [Gate(), Gate()]
    async with staged(tmp_path, [gates[0], *says("1")], [gates[1], *says("2")]) as stage:
        owners = [await stage.session(), await stage.session()]
        sent = [await stage.send(owner, "one", "same-id") for owner in owners]
        for gate in gates:
            await gate.wait_reached()
        assert [owner.view().busy for owner in owners] == [True, True]
        gates[1].go.set()
        assert (await stage.ended(owners[1], sent[1].turn_id)).reason == "done"
        assert owners[0].view().busy
        gates[0].go.set()
        assert (await stage.ended(owners[0], sent[0].turn_id)).reason == "done"
        for owner in owners:
            told = [each for each in stage.numbered() if each.session_id == owner.session_id]
            assert [each.number for each in told] == list(range(1, len(told) + 1))


async def test_closing_ends_the_turn(tmp_path: Path) -> None:
    """Row S2, case 98: it is cancelled and waited for, its command ended, its calls answered, and the lock is free."""
    started = anyio.Event()
    processes = FakeProcesses(otherwise=Script(hangs=True, started=started))
    async with staged(tmp_path, asks(run("serve"), write("a.txt", "1")), processes=processes) as stage:
        owner = await stage.session("auto")
        accepted = await stage.send(owner, "one", "c1")
        await started.wait()
        await stage.house.close(owner.session_id)
        assert stage.events(accepted.turn_id)[-1].kind == "ended"
        last = [told.session for told in stage.editor.told if isinstance(told, SessionTold)][-1]
        assert (last.epoch, last.busy) == (None, False)
        assert owner.session_id not in stage.house.owners
        assert outcomes(owner) == [("stopped", "cancelled")]
        assert_closed(owner)
        await stage.house.close(owner.session_id)
        async with staged(tmp_path, life=2) as other:
            again = await other.opened(owner.session_id)
            assert again.read_only is None
            assert prompts.status(again, "c1").reason == "closed"
            assert states(again) == ["stopped", "notRun"]


async def test_stopping_the_house(tmp_path: Path) -> None:
    """Rows S2, E5: every turn ends `closed`, every child is ended, and nothing is left to be recovered."""
    parks = [Park(), Park()]
    answers = [asks(write("a.txt", "1")), asks(write("b.txt", "2"))]
    async with staged(tmp_path, *answers, editor=ScriptedEditor(*parks)) as stage:
        owners = [await stage.session(), await stage.session()]
        for owner, park in zip(owners, parks, strict=True):
            await stage.send(owner, "go", "c1")
            await park.wait_open()
        await stage.house.stop()
        assert stage.house.owners == {}
        assert list(stage.root.iterdir()) == []
    async with staged(tmp_path, life=2) as stage:
        for owner in owners:
            before = journal_path(stage.state, owner.session_id).read_bytes()
            again = await stage.opened(owner.session_id)
            assert prompts.status(again, "c1").reason == "closed"
            assert journal_path(stage.state, owner.session_id).read_bytes() == before


async def test_a_stop_that_is_given_up_still_stops(tmp_path: Path) -> None:
    """Row G8: whoever asked for the stop and went away before it was recorded has stopped the turn all the same."""
    from tests.support.scripted import GatedDisk

    disk = GatedDisk(lambda op: "cancel" in op.kinds)
    gate = Gate()
    async with staged(tmp_path, [gate], disk=disk) as stage:
        owner = await stage.session()
        accepted = await stage.send(owner, "one")
        await gate.wait_reached()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prompts.cancel, owner, accepted.turn_id)
            await disk.wait_reached()
            tasks.cancel_scope.cancel()
            disk.go.set()
        assert (await stage.ended(owner, accepted.turn_id)).reason == "cancelled"


async def test_doctor_tries_the_state_directory(tmp_path: Path) -> None:
    """wire.md, doctor: whether syncs and locks hold there, one sentence each, and nothing is left behind."""
    async with staged(tmp_path) as stage:
        found = await stage.house.diagnose()
        assert found["sync"] == "Files and folders can be synced."
        assert found["lock"] == "Owner locks hold."
        assert list(stage.state.iterdir()) == []


async def test_a_model_without_a_name(tmp_path: Path) -> None:
    """wire.md, `session/setModel`: an empty name is the model that the provider has where none is named; where it has
    none, and for a word that is no provider, it is refused and nothing is recorded."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        for provider, path in (("compatible", "$.name"), ("ollama", "$.name"), ("nobody", "$.provider")):
            with pytest.raises(Refused) as raised:
                await desk.set_model(owner, provider, " ")
            assert raised.value.kind == "invalidParams"
            assert [error["path"] for error in raised.value.more["errors"]] == [path]  # type: ignore[attr-defined]  # JSON
        assert "model" not in kinds(owner)
        for provider in ("deepseek", "practice"):
            assert (await desk.set_model(owner, provider, "")).model == ModelName(provider, provider)
