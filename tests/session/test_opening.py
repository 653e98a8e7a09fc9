"""Opening a session: a pure read where nothing is open, one verdict a call where something is (rows C, J11, S5, S6)."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import anyio
import pytest

from steadyhand.adapters.disk import system_disk
from steadyhand.core.model import ReplyMessage
from steadyhand.core.record import Epoch, Record, Result
from steadyhand.core.refusal import Refused
from steadyhand.core.transcript import validate
from steadyhand.ports import Folder, Lock
from steadyhand.session import house as houses
from tests.support import journals
from tests.support.disks import MatchingFault, WatchedDisk
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
    read,
    run,
    says,
    staged,
    states,
    until,
    write,
)

pytestmark = pytest.mark.anyio


async def killed_with_three_open_calls(tmp_path: Path) -> tuple[str, Path]:
    """(session, state directory): one call started, two only proposed, killed in the first."""
    started = anyio.Event()
    processes = FakeProcesses(otherwise=Script(hangs=True, started=started))
    async with staged(tmp_path, asks(run("make"), write("a.txt", "1"), read("b.txt")), processes=processes) as stage:
        owner = await stage.session("auto")
        await stage.send(owner, "one", "c1")
        await started.wait()
        return owner.session_id, stage.crashed(tmp_path / "later")


# --- a pure read --------------------------------------------------------------------------------------------------


async def test_opening_a_healthy_session_writes_nothing(tmp_path: Path) -> None:
    """Case 10, rows C4, C8: opened three times its bytes are the same, and each reply goes out once."""
    async with staged(tmp_path, asks(read("a.txt")), says("ok")) as stage:
        owner = await stage.session()
        await stage.say(owner)
    path = journal_path(tmp_path / "state", owner.session_id)
    before = path.read_bytes()
    epochs = set()
    for life in (2, 3, 4):
        async with staged(tmp_path, says("ok"), life=life) as stage:
            opened = await stage.house.open(owner.session_id, 100)
            assert (opened.damaged, opened.queue, opened.snapshot.calls) == (0, (), ())
            assert stage.model.requests == []
            epochs.add(opened.session.epoch)
        assert path.read_bytes() == before
    assert len(epochs - {None}) == 3, "each life has an epoch of its own (S1)"
    async with staged(tmp_path, says("ok"), life=5) as stage:
        await stage.say(await stage.opened(owner.session_id))
        sent = stage.model.requests[0].messages
        assert sum(isinstance(m, ReplyMessage) for m in sent) == 1


async def test_messages_of_an_opened_session(tmp_path: Path) -> None:
    """wire.md, case 29: the last `tail` messages, oldest first, and whether there are more."""
    async with staged(tmp_path, says("1"), says("2")) as stage:
        owner = await stage.session()
        await stage.say(owner, "one")
        await stage.say(owner, "two")
        for tail, texts, more in ((0, [], True), (3, ["1", "two", "2"], True), (9, ["one", "1", "two", "2"], False)):
            opened = await stage.house.open(owner.session_id, tail)
            assert [message.text for message in opened.messages] == texts
            assert opened.more is more


async def test_an_open_session_keeps_its_epoch(tmp_path: Path) -> None:
    """Row S1: opened again while it is open it is the same owner, with the same epoch and the running turn."""
    gate = Gate()
    async with staged(tmp_path, [gate, *says("ok")]) as stage:
        owner = await stage.session()
        accepted = await stage.send(owner, "one")
        await gate.wait_reached()
        opened = await stage.house.open(owner.session_id, 10)
        assert (opened.session.epoch, opened.session.busy) == (owner.epoch, True)
        gate.go.set()
        assert (await stage.ended(owner, accepted.turn_id)).reason == "done"
        assert sum(isinstance(r, Epoch) for r in on_disk(owner)) == 1


# --- verdicts -----------------------------------------------------------------------------------------------------


async def test_verdicts_are_recorded_once(tmp_path: Path) -> None:
    """Rows C1-C4, C7, cases 4, 11: one verdict a call, by the table, and opening again finds nothing new [I4]."""
    session_id, state = await killed_with_three_open_calls(tmp_path)
    path = journal_path(state, session_id)
    for life in (2, 3):
        async with staged(tmp_path, state=state, life=life) as stage:
            owner = await stage.opened(session_id)
            assert states(owner) == ["unknown", "notRun", "notRun"]
            assert [outcome for outcome, _ in outcomes(owner)] == [
                "unknown_after_restart", "interrupted_before_execution", "interrupted",
            ]  # fmt: skip
            assert all(r.by == "recovery" for r in on_disk(owner) if isinstance(r, Result))
            assert owner.view().uncertain == 1
            assert stage.model.requests == []
            assert stage.editor.questions == []
        if life == 2:
            once = path.read_bytes()
    assert path.read_bytes() == once


async def test_two_openings_at_once(tmp_path: Path) -> None:
    """Case 11, row C4: two recoveries at the same moment, in one process and in two, record one verdict a call."""
    session_id, state = await killed_with_three_open_calls(tmp_path)
    async with staged(tmp_path, state=state, life=2) as stage, staged(tmp_path, state=state, life=3) as other:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(houses, "owner_wait_s_max", 0.1)
            async with anyio.create_task_group() as tasks:
                for house in (stage.house, other.house, stage.house, other.house):
                    tasks.start_soon(house.open, session_id, 10)
        owners = [stage.house.owners[session_id], other.house.owners[session_id]]
        assert sorted(owner.read_only is None for owner in owners) == [False, True]
        held = next(owner for owner in owners if owner.read_only is None)
        assert sum(isinstance(r, Result) for r in on_disk(held)) == 3


async def test_history_after_a_crash_is_valid(tmp_path: Path) -> None:
    """Cases 1, 2, row T2: one reply each, in order, with words that follow the verdicts; unknown says do not repeat."""
    session_id, state = await killed_with_three_open_calls(tmp_path)
    async with staged(tmp_path, says("ok"), state=state, life=2) as stage:
        await stage.say(await stage.opened(session_id), "go on")
        sent = stage.model.requests[0].messages
        validate(sent)
        told = [m for m in sent if isinstance(m, ReplyMessage)]
        assert [m.state for m in told] == ["unknown", "notRun", "notRun"]
        assert "unknown" in told[0].text
        assert "Do not repeat it" in told[0].text
        assert "did not run" in told[1].text
        assert "Read again" in told[2].text
        assert type(sent[-1]).__name__ == "UserMessage"


async def test_verdicts_that_cannot_be_recorded_are_shown(tmp_path: Path) -> None:
    """Rows C4, J7: on a full disk the verdicts are shown, nothing is recorded or run, and it is said why."""
    session_id, state = await killed_with_three_open_calls(tmp_path)
    before = journal_path(state, session_id).read_bytes()
    disk = MatchingFault(system_disk(), lambda op: "result" in op.kinds, errno.ENOSPC, times=None)
    async with staged(tmp_path, state=state, life=2, disk=disk) as stage:
        owner = await stage.opened(session_id)
        assert states(owner) == ["unknown", "notRun", "notRun"]
        view = owner.view()
        assert view.read_only is not None
        assert view.read_only.reason == "disk"
        assert view.epoch is None
        assert "full" in view.read_only.text
        with pytest.raises(Refused) as refused:
            await stage.send(owner, "go on")
        assert refused.value.kind == "journalBroken"
        assert refused.value.more["readOnly"] == {"reason": "disk", "text": view.read_only.text}
        assert journal_path(state, session_id).read_bytes() == before
        disk.matches = lambda op: False
        again = await stage.opened(session_id)
        assert again.view().read_only is None
        assert len(outcomes(again)) == 3


# --- faults that stay with one session ----------------------------------------------------------------------------


async def test_a_bad_session_fails_alone(tmp_path: Path) -> None:
    """Row S6, case 5: one that cannot be read is shown so, while another's turn runs on to its end."""
    gate = Gate()
    async with staged(tmp_path, [gate, *says("ok")]) as stage:
        good, bad = await stage.session(), await stage.session()
        await stage.house.close(bad.session_id)
        accepted = await stage.send(good, "one")
        await gate.wait_reached()
        path = journal_path(stage.state, bad.session_id)
        path.unlink()
        path.mkdir()
        opened = await stage.house.open(bad.session_id, 10)
        assert opened.session.read_only is not None
        assert opened.session.read_only.reason == "disk"
        assert opened.messages == ()
        listed = {view.session_id: view for view in await stage.house.listed()}
        assert set(listed) == {good.session_id, bad.session_id}
        gate.go.set()
        assert (await stage.ended(good, accepted.turn_id)).reason == "done"


async def test_a_journal_of_garbage(tmp_path: Path) -> None:
    """Rows J9, S6, cases 20, 101: no line of it is readable; it opens, says how much is damaged, and lives on."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
    journal_path(tmp_path / "state", owner.session_id).write_bytes(b"\0\xff{\n" * 50)
    async with staged(tmp_path, says("ok"), life=2) as stage:
        opened = await stage.house.open(owner.session_id, 10)
        assert opened.damaged == 50
        assert any("50 damaged" in text for text in stage.editor.messages())
        assert [view.session_id for view in await stage.house.listed()] == [owner.session_id]
        again = stage.house.owners[owner.session_id]
        assert (await stage.say(again)).reason == "done"


async def test_a_session_of_a_newer_version(tmp_path: Path) -> None:
    """Row J13: shown read-only with the reason, and not a byte of it is touched."""
    from steadyhand.journal import format as lines

    async with staged(tmp_path) as stage:
        owner = await stage.session()
    path = journal_path(tmp_path / "state", owner.session_id)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "VERSION", 2)
        content, _, _ = lines.write_lines((Epoch("e" * 32, 1, "h"),), 3, last_sum(path), "2026-01-02T03:04:05.678Z")
    path.write_bytes(path.read_bytes() + content)
    before = path.read_bytes()
    async with staged(tmp_path, life=2) as stage:
        opened = await stage.house.open(owner.session_id, 10)
        assert opened.session.read_only is not None
        assert opened.session.read_only.reason == "newer"
        with pytest.raises(Refused) as refused:
            await stage.send(stage.house.owners[owner.session_id], "hello")
        assert refused.value.kind == "journalBroken"
    assert path.read_bytes() == before


def last_sum(path: Path) -> str:
    """The checksum of the last line."""
    return path.read_bytes().split(b"\n")[-2][8:16].decode()


async def test_there_is_no_such_session(tmp_path: Path) -> None:
    """wire.md: unknownSession for an id nobody gave, one whose folder is empty, and one that was removed."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        await stage.house.close(owner.session_id)
        shutil.rmtree(owner.path)
        (stage.state / "sessions" / ("d" * 32)).mkdir()
        for session_id in (owner.session_id, "d" * 32, "e" * 32, "../sessions"):
            for ask in (stage.house.open(session_id, 1), stage.house.owner(session_id), stage.house.close(session_id)):
                with pytest.raises(Refused) as refused:
                    await ask
                assert refused.value.kind == "unknownSession"
        assert await stage.house.listed() == ()


# --- one owner at a time (row J11) --------------------------------------------------------------------------------


async def test_a_session_that_another_process_owns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows J11, A8: read-only with the owner named, an open call shown as there, nothing written; told when free."""
    monkeypatch.setattr(houses, "owner_wait_s_max", 0.05)
    monkeypatch.setattr(houses, "watch_poll_s", 0.01)
    park = Park()
    async with staged(tmp_path, life=2) as second:
        async with staged(tmp_path, asks(write("a.txt", "1")), editor=ScriptedEditor(park)) as first:
            owner = await first.session()
            await first.send(owner, "one")
            await park.wait_open()
            before = journal_path(first.state, owner.session_id).read_bytes()
            opened = await second.house.open(owner.session_id, 10)
            shown = opened.session.read_only
            assert shown is not None
            assert shown.reason == "owned"
            assert shown.owner is not None
            assert (shown.owner.pid, shown.owner.host) == (1, "here")
            assert opened.session.epoch is None
            assert states(second.house.owners[owner.session_id]) == ["waiting"]
            assert opened.messages[1].calls is not None
            assert journal_path(first.state, owner.session_id).read_bytes() == before
            with pytest.raises(Refused) as refused:
                await second.house.owners[owner.session_id].set_mode("auto")
            assert refused.value.kind == "notOwner"
        await until(lambda: any("is free now" in text for text in second.editor.messages()))
        theirs = second.house.owners[owner.session_id]
        assert theirs.view().read_only is None
        assert theirs.view().epoch is None
        assert sum("is free now" in text for text in second.editor.messages()) == 1
        again = await second.house.owner(owner.session_id)
        assert again.epoch is not None, "whatever is asked of it next takes it over"
        assert states(again) == ["notRun"]
        assert (await second.say(again, "two")).reason == "done"


async def test_an_opening_that_waits_for_a_reloading_window(tmp_path: Path) -> None:
    """Row J11: the lock is waited for, so a window that reloads finds its session writable."""
    async with staged(tmp_path) as first, staged(tmp_path, life=2) as second:
        owner = await first.session()
        views = []

        async def open_there() -> None:
            views.append((await second.house.open(owner.session_id, 1)).session)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(open_there)
            await anyio.sleep(0.1)
            assert views == []
            await first.house.close(owner.session_id)
        assert views[0].read_only is None
        assert views[0].epoch is not None


async def test_an_opening_that_is_given_up(tmp_path: Path) -> None:
    """Row J11: a request that is cancelled while it opens leaves no lock behind that nobody holds."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
    for steps in range(1, 25):
        async with staged(tmp_path, life=1 + steps) as stage:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stage.house.open, owner.session_id, 1)
                for _ in range(steps):
                    await anyio.sleep(0.0005)
                tasks.cancel_scope.cancel()
            with anyio.fail_after(3):
                opened = await stage.house.open(owner.session_id, 1)
            assert opened.session.read_only is None
            assert opened.session.epoch is not None
    assert not [kind for kind in kinds(owner) if kind not in ("session", "epoch")]
    assert_closed(owner)


# --- histories from elsewhere (cases 2, 13) -----------------------------------------------------------------------


def written(tmp_path: Path, *records: Record) -> Path:
    """A state directory with a session of these records; the path of its journal."""
    path = journal_path(tmp_path / "state", journals.ident("session"))
    path.parent.mkdir(parents=True)
    path.write_bytes(journals.journal([*journals.begun(), *records]))
    return path


async def test_a_call_without_a_reply_in_the_middle(tmp_path: Path) -> None:
    """Cases 2, 5, rows T2, T3: mended in what goes out, told as not run, and the stored records stay as they are."""
    path = written(
        tmp_path,
        journals.prompt("one", "do it"),
        journals.proposes("one", "make", "look"),
        journals.prompt("two", "hi"),
        journals.says("two", "hello"),
    )
    before = path.read_bytes()
    async with staged(tmp_path, says("ok"), says("ok")) as stage:
        owner = await stage.opened(journals.ident("session"))
        assert states(owner) == ["notRun", "notRun"]
        for text in ("three", "four"):
            assert (await stage.say(owner, text)).reason == "done"
        first, second = (request.messages for request in stage.model.requests)
        validate(first)
        names = ["UserMessage", "AssistantMessage", "ReplyMessage", "ReplyMessage", "UserMessage", "AssistantMessage"]
        assert [type(message).__name__ for message in first] == [*names, "UserMessage"]
        assert second[: len(first)] == first
    assert path.read_bytes().startswith(before)


async def test_a_reply_without_its_call(tmp_path: Path) -> None:
    """Case 13, rows T1, T3: a reply whose call stands nowhere does not go out, and stays in the journal."""
    path = written(
        tmp_path,
        journals.prompt("one", "do it"),
        journals.says("one", "ok"),
        journals.replies("ghost", "refused", "no", turn="one", admitted=False),
        journals.prompt("two", "hi"),
    )
    before = path.read_bytes()
    async with staged(tmp_path, says("ok")) as stage:
        owner = await stage.opened(journals.ident("session"))
        assert (await stage.say(owner, "three")).reason == "done"
        sent = stage.model.requests[0].messages
        validate(sent)
        assert not [message for message in sent if isinstance(message, ReplyMessage)]
    assert path.read_bytes().startswith(before)


async def test_locks_that_do_not_hold(tmp_path: Path) -> None:
    """Row J11: where the file system has no such locks a session is shown read-only, and it is said why."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
    before = journal_path(tmp_path / "state", owner.session_id).read_bytes()

    class NoLocks(WatchedDisk):
        def lock(self, folder: Folder, name: str) -> Lock | None:
            raise OSError(errno.ENOLCK, "No locks available")

    async with staged(tmp_path, disk=NoLocks(system_disk()), life=2) as stage:
        opened = await stage.house.open(owner.session_id, 1)
        shown = opened.session.read_only
        assert shown is not None
        assert (shown.reason, opened.session.epoch) == ("disk", None)
        assert "Locks do not hold" in shown.text
        with pytest.raises(Refused) as refused:
            await stage.send(stage.house.owners[owner.session_id], "hello")
        assert refused.value.kind == "journalBroken"
    assert journal_path(tmp_path / "state", owner.session_id).read_bytes() == before
