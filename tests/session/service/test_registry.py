"""All sessions of a process: created, listed, closed, side by side, stopped (rows S2, S3, S7)."""

from __future__ import annotations

import errno
from pathlib import Path

import anyio
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.errors import Refused
from steadyhand.domain.records.record import Epoch, ModelName, SessionHeader
from steadyhand.domain.views.notifications import SessionNotification
from steadyhand.session.service import prompt_queue, session_settings
from steadyhand.session.storage import directory
from tests.support.editor import Park, ScriptedEditor
from tests.support.fakes import FakeProcesses, Script
from tests.support.faults import MatchingFault
from tests.support.in_process_server import scripted_server
from tests.support.model import asks, run, says, write
from tests.support.session_state import assert_closed, journal_path, kinds, on_disk, outcomes, states
from tests.support.waiting import Gate

pytestmark = pytest.mark.anyio


async def test_create_returns_an_open_durable_private_session(tmp_path: Path) -> None:
    """Row S3: When the server answers, the session is open and durable with its first records. It is notified once
    and bound to its folder."""
    async with scripted_server(tmp_path) as stage:
        view = await stage.registry.create("Notes", stage.root.as_uri())
        assert (view.title, view.title_source, view.workspace) == ("Notes", "user", stage.root.as_uri())
        assert view.epoch is not None
        assert not view.busy
        assert view.read_only is None
        assert view.path == str(stage.state / "sessions" / view.session_id)
        session = stage.registry.sessions[view.session_id]
        assert [type(r) for r in on_disk(session)] == [SessionHeader, Epoch]
        assert [
            notification.session for notification in stage.editor.told if isinstance(notification, SessionNotification)
        ] == [view]
        modes = [(Path(view.path) / name).stat().st_mode & 0o777 for name in ("", "journal.jsonl", "owner.json")]
        assert modes == [0o700, 0o600, 0o600], "no other user can read them (J10)"
        untitled = await stage.registry.create(None, None)
        assert (untitled.title, untitled.title_source, untitled.workspace) == ("", "none", None)


async def test_list_comes_from_the_session_files_newest_first(tmp_path: Path) -> None:
    """Row S3, case 28: The list holds the newest first, open or not, without an index that could be wrong."""
    async with scripted_server(tmp_path) as stage:
        made = [(await stage.registry.create(f"n{number}", None)).session_id for number in range(3)]
        await stage.say(stage.registry.sessions[made[0]], "hello")
        assert [view.title for view in await stage.registry.list_sessions()] == ["n0", "n2", "n1"]
        before = {view.session_id: view for view in await stage.registry.list_sessions()}
    (tmp_path / "state" / "sessions" / "not-a-session").mkdir()
    (tmp_path / "state" / "sessions" / ("c" * 32)).mkdir()
    for path in (tmp_path / "state" / "sessions").glob("*/summary.json"):
        path.write_bytes(b"garbage")
    async with scripted_server(tmp_path, run=2) as stage:
        listed = await stage.registry.list_sessions()
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
        assert stage.registry.sessions == {}


async def test_create_in_a_full_state_directory_is_refused(tmp_path: Path) -> None:
    """Rows J7, C4: The server cannot create a session and says what to do. It continues to work."""
    disk = MatchingFault(system_disk(), lambda op: op.verb in ("make_folder", "create"), errno.ENOSPC)
    async with scripted_server(tmp_path, says("ok"), disk=disk) as stage:
        with pytest.raises(Refused) as refused:
            await stage.session()
        assert refused.value.kind == "journalBroken"
        assert "No space left" in refused.value.message or "full" in refused.value.message
        assert (await stage.say(await stage.session())).reason == "done"


async def test_two_sessions_run_turns_side_by_side(tmp_path: Path) -> None:
    """Row S2: Each session runs a turn. A notification names its session, and neither session waits for the other."""
    gates = [Gate(), Gate()]
    async with scripted_server(tmp_path, [gates[0], *says("1")], [gates[1], *says("2")]) as stage:
        sessions = [await stage.session(), await stage.session()]
        sent = []
        for session, gate in zip(sessions, gates, strict=True):  # the model answers requests in their order
            sent.append(await stage.send(session, "one", "same-id"))
            await gate.wait_reached()
        assert [session.view().busy for session in sessions] == [True, True]
        gates[1].go.set()
        assert (await stage.ended(sessions[1], sent[1].turn_id)).reason == "done"
        assert sessions[0].view().busy
        gates[0].go.set()
        assert (await stage.ended(sessions[0], sent[0].turn_id)).reason == "done"
        for session in sessions:
            events = [each for each in stage.numbered() if each.session_id == session.session_id]
            assert [each.number for each in events] == list(range(1, len(events) + 1))


async def test_close_cancels_the_turn_and_releases_the_lock(tmp_path: Path) -> None:
    """Row S2, case 98: The server cancels the turn and waits for it, ends its command, replies to its calls and
    releases the lock."""
    started = anyio.Event()
    processes = FakeProcesses(otherwise=Script(hangs=True, started=started))
    async with scripted_server(tmp_path, asks(run("serve"), write("a.txt", "1")), processes=processes) as stage:
        session = await stage.session("auto")
        accepted = await stage.send(session, "one", "c1")
        await started.wait()
        await stage.registry.close(session.session_id)
        assert stage.events(accepted.turn_id)[-1].kind == "ended"
        last = [
            notification.session for notification in stage.editor.told if isinstance(notification, SessionNotification)
        ][-1]
        assert (last.epoch, last.busy) == (None, False)
        assert session.session_id not in stage.registry.sessions
        assert outcomes(session) == [("stopped", "cancelled")]
        assert_closed(session)
        await stage.registry.close(session.session_id)
        async with scripted_server(tmp_path, run=2) as other:
            again = await other.opened(session.session_id)
            assert again.read_only is None
            assert prompt_queue.status_of(again, "c1").reason == "closed"
            assert states(again) == ["stopped", "notRun"]


async def test_stop_ends_every_turn_and_leaves_nothing_to_recover(tmp_path: Path) -> None:
    """Rows S2, E5: Every turn ends `closed`, every child is ended, and recovery has nothing to do."""
    parks = [Park(), Park()]
    answers = [asks(write("a.txt", "1")), asks(write("b.txt", "2"))]
    async with scripted_server(tmp_path, *answers, editor=ScriptedEditor(*parks)) as stage:
        sessions = [await stage.session(), await stage.session()]
        for session, park in zip(sessions, parks, strict=True):
            await stage.send(session, "go", "c1")
            await park.wait_open()
        await stage.registry.stop()
        assert stage.registry.sessions == {}
        assert list(stage.root.iterdir()) == []
    async with scripted_server(tmp_path, run=2) as stage:
        for session in sessions:
            before = journal_path(stage.state, session.session_id).read_bytes()
            again = await stage.opened(session.session_id)
            assert prompt_queue.status_of(again, "c1").reason == "closed"
            assert journal_path(stage.state, session.session_id).read_bytes() == before


async def test_cancel_whose_caller_goes_away_still_stops_the_turn(tmp_path: Path) -> None:
    """Row G8: If the caller goes away before the stop is recorded, the turn still stops."""
    from tests.support.faults import GatedDisk

    disk = GatedDisk(lambda op: "cancel" in op.kinds)
    gate = Gate()
    async with scripted_server(tmp_path, [gate], disk=disk) as stage:
        session = await stage.session()
        accepted = await stage.send(session, "one")
        await gate.wait_reached()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prompt_queue.cancel, session, accepted.turn_id)
            await disk.wait_reached()
            tasks.cancel_scope.cancel()
            disk.go.set()
        assert (await stage.ended(session, accepted.turn_id)).reason == "cancelled"


async def test_doctor_checks_syncs_and_locks_of_the_state_directory(tmp_path: Path) -> None:
    """docs/protocol.md, doctor: The doctor says in one sentence each whether syncs and locks hold, and leaves
    nothing behind."""
    async with scripted_server(tmp_path) as stage:
        found = await stage.registry.context.in_thread(directory.diagnose, stage.registry.context)
        assert found["sync"] == "Files and folders can be synced."
        assert found["lock"] == "Session locks work."
        assert list(stage.state.iterdir()) == []


async def test_set_model_without_a_name_takes_the_providers_default(tmp_path: Path) -> None:
    """docs/protocol.md, `session/setModel`: An empty name is the provider's default model. Without a default, and
    for an unknown provider, the server refuses and records nothing."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        for provider, path in (("compatible", "$.name"), ("ollama", "$.name"), ("nobody", "$.provider")):
            with pytest.raises(Refused) as raised:
                await session_settings.set_model(session, provider, " ")
            assert raised.value.kind == "invalidParams"
            assert [error["path"] for error in raised.value.more["errors"]] == [path]  # type: ignore[attr-defined]  # JSON
        assert "model" not in kinds(session)
        for provider in ("deepseek", "practice"):
            assert (await session_settings.set_model(session, provider, "")).model == ModelName(provider, provider)
