"""Opening a session: a pure read if nothing is open, one verdict for each open call otherwise (rows C, J11, S5, S6)."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import anyio
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.errors import Refused
from steadyhand.domain.model.messages import ReplyMessage
from steadyhand.domain.model.transcript import validate
from steadyhand.domain.records.record import Epoch, Record, Result
from steadyhand.ports.disk import Folder, Lock
from steadyhand.session.service import acquire
from tests.support import journals
from tests.support.editor import Park, ScriptedEditor
from tests.support.fakes import FakeProcesses, Script
from tests.support.faults import MatchingFault, WatchedDisk
from tests.support.in_process_server import scripted_server
from tests.support.model import asks, read, run, says, write
from tests.support.session_state import assert_closed, journal_path, kinds, on_disk, outcomes, states
from tests.support.waiting import Gate, until

pytestmark = pytest.mark.anyio


async def kill_with_three_open_calls(tmp_path: Path) -> tuple[str, Path]:
    """(session, state directory): one call started, two only proposed, a kill during the first."""
    started = anyio.Event()
    processes = FakeProcesses(otherwise=Script(hangs=True, started=started))
    async with scripted_server(
        tmp_path, asks(run("make"), write("a.txt", "1"), read("b.txt")), processes=processes
    ) as stage:
        session = await stage.session("auto")
        await stage.send(session, "one", "c1")
        await started.wait()
        return session.session_id, stage.crashed(tmp_path / "later")


# A pure read.


async def test_opening_a_healthy_session_writes_nothing(tmp_path: Path) -> None:
    """Case 10, rows C4, C8: After three openings the journal's bytes are the same, and each reply goes out once."""
    async with scripted_server(tmp_path, asks(read("a.txt")), says("ok")) as stage:
        session = await stage.session()
        await stage.say(session)
    path = journal_path(tmp_path / "state", session.session_id)
    before = path.read_bytes()
    epochs = set()
    for process_number in (2, 3, 4):
        async with scripted_server(tmp_path, says("ok"), run=process_number) as stage:
            snapshot = await stage.registry.open(session.session_id, 100)
            assert (snapshot.damaged, snapshot.queue, snapshot.snapshot.calls) == (0, (), ())
            assert stage.model.requests == []
            epochs.add(snapshot.session.epoch)
        assert path.read_bytes() == before
    assert len(epochs - {None}) == 3, "each process has an epoch of its own (S1)"
    async with scripted_server(tmp_path, says("ok"), run=5) as stage:
        await stage.say(await stage.opened(session.session_id))
        sent = stage.model.requests[0].messages
        assert sum(isinstance(m, ReplyMessage) for m in sent) == 1


async def test_opening_returns_the_last_messages_oldest_first(tmp_path: Path) -> None:
    """docs/protocol.md, case 29: The snapshot holds the last `tail` messages, oldest first, and whether there are
    more."""
    async with scripted_server(tmp_path, says("1"), says("2")) as stage:
        session = await stage.session()
        await stage.say(session, "one")
        await stage.say(session, "two")
        for tail, texts, more in ((0, [], True), (3, ["1", "two", "2"], True), (9, ["one", "1", "two", "2"], False)):
            snapshot = await stage.registry.open(session.session_id, tail)
            assert [message.text for message in snapshot.messages] == texts
            assert snapshot.more is more


async def test_opening_an_open_session_keeps_its_epoch(tmp_path: Path) -> None:
    """Row S1: A session that is opened again while it is open is the same, with the same epoch and the running turn."""
    gate = Gate()
    async with scripted_server(tmp_path, [gate, *says("ok")]) as stage:
        session = await stage.session()
        accepted = await stage.send(session, "one")
        await gate.wait_reached()
        snapshot = await stage.registry.open(session.session_id, 10)
        assert (snapshot.session.epoch, snapshot.session.busy) == (session.epoch, True)
        gate.go.set()
        assert (await stage.ended(session, accepted.turn_id)).reason == "done"
        assert sum(isinstance(r, Epoch) for r in on_disk(session)) == 1


# Verdicts.


async def test_open_calls_get_one_recorded_verdict_each(tmp_path: Path) -> None:
    """Rows C1-C4, C7, cases 4, 11 [I4]: The table gives one verdict a call, and another opening finds nothing new."""
    session_id, state = await kill_with_three_open_calls(tmp_path)
    path = journal_path(state, session_id)
    for process_number in (2, 3):
        async with scripted_server(tmp_path, state=state, run=process_number) as stage:
            session = await stage.opened(session_id)
            assert states(session) == ["unknown", "notRun", "notRun"]
            assert [outcome for outcome, _ in outcomes(session)] == [
                "unknown_after_restart", "interrupted_before_execution", "interrupted",
            ]  # fmt: skip
            assert all(r.by == "recovery" for r in on_disk(session) if isinstance(r, Result))
            assert session.view().uncertain == 1
            assert stage.model.requests == []
            assert stage.editor.questions == []
        if process_number == 2:
            once = path.read_bytes()
    assert path.read_bytes() == once


async def test_concurrent_openings_record_one_verdict_a_call(tmp_path: Path) -> None:
    """Case 11, row C4: Two recoveries at the same moment, in one process and in two, record one verdict a call."""
    session_id, state = await kill_with_three_open_calls(tmp_path)
    async with (
        scripted_server(tmp_path, state=state, run=2) as stage,
        scripted_server(tmp_path, state=state, run=3) as other,
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(acquire, "OWNER_WAIT_S_MAX", 0.1)
            async with anyio.create_task_group() as tasks:
                for registry in (stage.registry, other.registry, stage.registry, other.registry):
                    tasks.start_soon(registry.open, session_id, 10)
        sessions = [stage.registry.sessions[session_id], other.registry.sessions[session_id]]
        assert sorted(session.read_only is None for session in sessions) == [False, True]
        writable = next(session for session in sessions if session.read_only is None)
        assert sum(isinstance(r, Result) for r in on_disk(writable)) == 3


async def test_history_after_a_crash_has_one_reply_a_call(tmp_path: Path) -> None:
    """Cases 1, 2, row T2: Each call has one reply, in order, with words that follow its verdict. The reply of an
    unknown outcome says not to repeat the call."""
    session_id, state = await kill_with_three_open_calls(tmp_path)
    async with scripted_server(tmp_path, says("ok"), state=state, run=2) as stage:
        await stage.say(await stage.opened(session_id), "go on")
        sent = stage.model.requests[0].messages
        validate(sent)
        sent_replies = [m for m in sent if isinstance(m, ReplyMessage)]
        assert [m.state for m in sent_replies] == ["unknown", "notRun", "notRun"]
        assert "unknown" in sent_replies[0].text
        assert "Do not repeat it" in sent_replies[0].text
        assert "did not run" in sent_replies[1].text
        assert "Read again" in sent_replies[2].text
        assert type(sent[-1]).__name__ == "UserMessage"


async def test_verdicts_on_a_full_disk_are_shown_and_not_recorded(tmp_path: Path) -> None:
    """Rows C4, J7: On a full disk the session shows the verdicts, records and runs nothing, and says why."""
    session_id, state = await kill_with_three_open_calls(tmp_path)
    before = journal_path(state, session_id).read_bytes()
    disk = MatchingFault(system_disk(), lambda op: "result" in op.kinds, errno.ENOSPC, times=None)
    async with scripted_server(tmp_path, state=state, run=2, disk=disk) as stage:
        session = await stage.opened(session_id)
        assert states(session) == ["unknown", "notRun", "notRun"]
        view = session.view()
        assert view.read_only is not None
        assert view.read_only.reason == "disk"
        assert view.epoch is None
        assert "full" in view.read_only.text
        with pytest.raises(Refused) as refused:
            await stage.send(session, "go on")
        assert refused.value.kind == "journalBroken"
        assert refused.value.more["readOnly"] == {"reason": "disk", "text": view.read_only.text}
        assert journal_path(state, session_id).read_bytes() == before
        disk.matches = lambda op: False
        again = await stage.opened(session_id)
        assert again.view().read_only is None
        assert len(outcomes(again)) == 3


# Faults of one session.


async def test_unreadable_session_fails_alone(tmp_path: Path) -> None:
    """Row S6, case 5: A session that cannot be read is shown so, while the turn of another one runs to its end."""
    gate = Gate()
    async with scripted_server(tmp_path, [gate, *says("ok")]) as stage:
        good, bad = await stage.session(), await stage.session()
        await stage.registry.close(bad.session_id)
        accepted = await stage.send(good, "one")
        await gate.wait_reached()
        path = journal_path(stage.state, bad.session_id)
        path.unlink()
        path.mkdir()
        snapshot = await stage.registry.open(bad.session_id, 10)
        assert snapshot.session.read_only is not None
        assert snapshot.session.read_only.reason == "disk"
        assert snapshot.messages == ()
        listed = {view.session_id: view for view in await stage.registry.list_sessions()}
        assert set(listed) == {good.session_id, bad.session_id}
        gate.go.set()
        assert (await stage.ended(good, accepted.turn_id)).reason == "done"


async def test_journal_without_a_readable_line_opens_and_works_on(tmp_path: Path) -> None:
    """Rows J9, S6, cases 20, 101: No line is readable. The session opens, says how much is damaged, and works on."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
    journal_path(tmp_path / "state", session.session_id).write_bytes(b"\0\xff{\n" * 50)
    async with scripted_server(tmp_path, says("ok"), run=2) as stage:
        snapshot = await stage.registry.open(session.session_id, 10)
        assert snapshot.damaged == 50
        assert any("50 damaged" in text for text in stage.editor.messages)
        assert [view.session_id for view in await stage.registry.list_sessions()] == [session.session_id]
        again = stage.registry.sessions[session.session_id]
        assert (await stage.say(again)).reason == "done"


async def test_session_of_a_newer_version_is_read_only_and_unchanged(tmp_path: Path) -> None:
    """Row J13: The session is read-only with the reason, and not a byte of its journal changes."""
    from steadyhand.journal import format as lines

    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
    path = journal_path(tmp_path / "state", session.session_id)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "VERSION", 2)
        content, _, _ = lines.write_lines(
            (Epoch(epoch="e" * 32, pid=1, host="h"),), 3, last_sum(path), "2026-01-02T03:04:05.678Z"
        )
    path.write_bytes(path.read_bytes() + content)
    before = path.read_bytes()
    async with scripted_server(tmp_path, run=2) as stage:
        snapshot = await stage.registry.open(session.session_id, 10)
        assert snapshot.session.read_only is not None
        assert snapshot.session.read_only.reason == "newer"
        with pytest.raises(Refused) as refused:
            await stage.send(stage.registry.sessions[session.session_id], "hello")
        assert refused.value.kind == "journalBroken"
    assert path.read_bytes() == before


def last_sum(path: Path) -> str:
    """The checksum of the last line."""
    return path.read_bytes().split(b"\n")[-2][8:16].decode()


async def test_unknown_session_is_refused(tmp_path: Path) -> None:
    """docs/protocol.md: unknownSession for an id that nobody assigned, one whose folder is empty, and one that was
    removed."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        await stage.registry.close(session.session_id)
        shutil.rmtree(session.path)
        (stage.state / "sessions" / ("d" * 32)).mkdir()
        for session_id in (session.session_id, "d" * 32, "e" * 32, "../sessions"):
            for ask in (
                stage.registry.open(session_id, 1),
                stage.registry.open_session(session_id),
                stage.registry.close(session_id),
            ):
                with pytest.raises(Refused) as refused:
                    await ask
                assert refused.value.kind == "unknownSession"
        assert await stage.registry.list_sessions() == ()


# One process owns a session (row J11).


async def test_session_owned_elsewhere_is_read_only_until_it_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows J11, A8: The session is read-only and names its owner. It shows an open call as it is, and nothing is
    written. A message follows when the session is free."""
    monkeypatch.setattr(acquire, "OWNER_WAIT_S_MAX", 0.05)
    monkeypatch.setattr(acquire, "WATCH_POLL_S", 0.01)
    park = Park()
    async with scripted_server(tmp_path, run=2) as second:
        async with scripted_server(tmp_path, asks(write("a.txt", "1")), editor=ScriptedEditor(park)) as first:
            session = await first.session()
            await first.send(session, "one")
            await park.wait_open()
            before = journal_path(first.state, session.session_id).read_bytes()
            snapshot = await second.registry.open(session.session_id, 10)
            read_only = snapshot.session.read_only
            assert read_only is not None
            assert read_only.reason == "owned"
            assert read_only.owner is not None
            assert (read_only.owner.pid, read_only.owner.host) == (1, "here")
            assert snapshot.session.epoch is None
            assert states(second.registry.sessions[session.session_id]) == ["waiting"]
            assert snapshot.messages[1].calls is not None
            assert journal_path(first.state, session.session_id).read_bytes() == before
            with pytest.raises(Refused) as refused:
                await second.registry.sessions[session.session_id].set_mode("auto")
            assert refused.value.kind == "notOwner"
        await until(lambda: any("is free now" in text for text in second.editor.messages))
        read_only_session = second.registry.sessions[session.session_id]
        assert read_only_session.view().read_only is None
        assert read_only_session.view().epoch is None
        assert sum("is free now" in text for text in second.editor.messages) == 1
        again = await second.registry.open_session(session.session_id)
        assert again.epoch is not None, "the next request takes the session over"
        assert states(again) == ["notRun"]
        assert (await second.say(again, "two")).reason == "done"


async def test_opening_waits_for_the_lock_of_a_reloading_window(tmp_path: Path) -> None:
    """Row J11: The server waits for the lock, so a window that reloads finds its session writable."""
    async with scripted_server(tmp_path) as first, scripted_server(tmp_path, run=2) as second:
        session = await first.session()
        views = []

        async def open_there() -> None:
            views.append((await second.registry.open(session.session_id, 1)).session)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(open_there)
            await anyio.sleep(0.1)
            assert views == []
            await first.registry.close(session.session_id)
        assert views[0].read_only is None
        assert views[0].epoch is not None


async def test_cancelled_opening_leaves_no_lock(tmp_path: Path) -> None:
    """Row J11: A request that is cancelled while it opens a session leaves no lock without a holder."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
    for steps in range(1, 25):
        async with scripted_server(tmp_path, run=1 + steps) as stage:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stage.registry.open, session.session_id, 1)
                for _ in range(steps):
                    await anyio.sleep(0.0005)
                tasks.cancel_scope.cancel()
            with anyio.fail_after(60):
                snapshot = await stage.registry.open(session.session_id, 1)
            assert snapshot.session.read_only is None
            assert snapshot.session.epoch is not None
    assert not [kind for kind in kinds(session) if kind not in ("session", "epoch")]
    assert_closed(session)


# Incomplete histories (cases 2, 13).


def write_session(tmp_path: Path, *records: Record) -> Path:
    """Write a session of these records into a state directory, and return the path of its journal."""
    path = journal_path(tmp_path / "state", journals.ident("session"))
    path.parent.mkdir(parents=True)
    path.write_bytes(journals.journal([*journals.begun(), *records]))
    return path


async def test_call_without_a_reply_is_mended_in_requests_only(tmp_path: Path) -> None:
    """Cases 2, 5, rows T2, T3: The request holds a reply that says that the call did not run. The stored records
    stay as they are."""
    path = write_session(
        tmp_path,
        journals.prompt("one", "do it"),
        journals.proposes("one", "make", "look"),
        journals.prompt("two", "hi"),
        journals.says("two", "hello"),
    )
    before = path.read_bytes()
    async with scripted_server(tmp_path, says("ok"), says("ok")) as stage:
        session = await stage.opened(journals.ident("session"))
        assert states(session) == ["notRun", "notRun"]
        for text in ("three", "four"):
            assert (await stage.say(session, text)).reason == "done"
        first, second = (request.messages for request in stage.model.requests)
        validate(first)
        names = ["UserMessage", "AssistantMessage", "ReplyMessage", "ReplyMessage", "UserMessage", "AssistantMessage"]
        assert [type(message).__name__ for message in first] == [*names, "UserMessage"]
        assert second[: len(first)] == first
    assert path.read_bytes().startswith(before)


async def test_reply_without_its_call_is_left_out_of_requests(tmp_path: Path) -> None:
    """Case 13, rows T1, T3: A reply whose call is recorded nowhere does not go out, and stays in the journal."""
    path = write_session(
        tmp_path,
        journals.prompt("one", "do it"),
        journals.says("one", "ok"),
        journals.replies("ghost", "refused", "no", turn="one", admitted=False),
        journals.prompt("two", "hi"),
    )
    before = path.read_bytes()
    async with scripted_server(tmp_path, says("ok")) as stage:
        session = await stage.opened(journals.ident("session"))
        assert (await stage.say(session, "three")).reason == "done"
        sent = stage.model.requests[0].messages
        validate(sent)
        assert not [message for message in sent if isinstance(message, ReplyMessage)]
    assert path.read_bytes().startswith(before)


async def test_session_without_working_locks_is_read_only(tmp_path: Path) -> None:
    """Row J11: If the file system has no such locks, the session is read-only and says why."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
    before = journal_path(tmp_path / "state", session.session_id).read_bytes()

    class NoLocks(WatchedDisk):
        def lock(self, folder: Folder, name: str) -> Lock | None:
            raise OSError(errno.ENOLCK, "No locks available")

    async with scripted_server(tmp_path, disk=NoLocks(system_disk()), run=2) as stage:
        snapshot = await stage.registry.open(session.session_id, 1)
        read_only = snapshot.session.read_only
        assert read_only is not None
        assert (read_only.reason, snapshot.session.epoch) == ("disk", None)
        assert "Locks do not work" in read_only.text
        with pytest.raises(Refused) as refused:
            await stage.send(stage.registry.sessions[session.session_id], "hello")
        assert refused.value.kind == "journalBroken"
    assert journal_path(tmp_path / "state", session.session_id).read_bytes() == before
