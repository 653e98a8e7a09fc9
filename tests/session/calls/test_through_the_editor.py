"""A change through the editor: its evidence, an edit that is refused, lost, answered late or for another version, saves
that the editor does or does not do, and the check after a restart (row V2).
"""

from __future__ import annotations

from pathlib import Path

import anyio
import attrs
import pytest

from steadyhand.domain.records.record import Started
from steadyhand.ports.editor import EditAnswer
from steadyhand.session.recovery.documents_again import check_documents_again
from steadyhand.session.service import prompt_queue
from steadyhand.session.session import Session
from steadyhand.tools.writes import buffer_write
from tests.support.buffers import Buffers
from tests.support.fakes import FakeProcesses, Script
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import asks, call, read, run, says, write
from tests.support.redo import inspect_attempt
from tests.support.session_state import calls_of, on_disk, outcomes, replies, states
from tests.support.waiting import until

pytestmark = pytest.mark.anyio

OLD, TYPED = "one\ntwo\n", "one\ntwo\nthree\n"
NEW = "ONE\ntwo\n"
EDITOR_PID = 4711


def edit(old: str = "one", new: str = "ONE") -> list[object]:
    return [call("edit_file", path="a.txt", edits=[{"old": old, "new": new}])]


async def opened(stage: InProcessServer, typed: str | None = None, **able: bool) -> tuple[Buffers, Session, Path]:
    path = stage.root / "a.txt"
    path.write_text(OLD)
    buffers = Buffers(stage.editor, **able)
    stage.editor.editor_pid = EDITOR_PID
    buffers.open(path)
    if typed is not None:
        buffers.type(path, typed)
    return buffers, await stage.session("auto"), path


def living(stage: InProcessServer) -> set[int]:
    """The processes that live."""
    processes = stage.registry.context.processes
    assert isinstance(processes, FakeProcesses)
    return processes.living


async def turn(stage: InProcessServer, session: Session, *proposed: object) -> str:
    stage.model.answers[:] = [asks(*proposed), says("ok")]  # type: ignore[arg-type]
    await stage.say(session)
    return replies(session)[-1]


async def test_evidence_has_both_halves_and_the_editor(tmp_path: Path) -> None:
    """V2, W1: *started* has the digests of file and text before and after, that it is saved, and whose process the
    editor is; `files` has what is on the disk."""
    async with scripted_server(tmp_path, processes=FakeProcesses()) as stage:
        living(stage).add(EDITOR_PID)
        buffers, session, path = await opened(stage)
        reply = await turn(stage, session, *edit())
        assert reply.startswith("a.txt was changed through the editor in 1 place and saved: 8 bytes on disk")
        assert (path.read_text(), buffers.text(path), buffers.saved) == (NEW, NEW, [2])
        (started,) = [record for record in on_disk(session) if isinstance(record, Started)]
        (evidence,) = started.evidence
        assert evidence.buffer is not None
        assert (evidence.before, evidence.intended) == (evidence.buffer.before, evidence.buffer.intended)
        assert (evidence.buffer.saves, evidence.temporary, evidence.checkpoint) == (True, None, evidence.before)
        assert started.editor is not None
        assert (started.editor.pid, started.editor.started) == (EDITOR_PID, f"start of {EDITOR_PID}")
        call = calls_of(session)[-1]
        assert call.attempt is not None
        assert call.attempt.result is not None
        assert [(file.path, file.after) for file in call.attempt.result.files] == [("a.txt", evidence.intended)]


async def test_edit_of_unsaved_text_stays_unsaved_and_every_reply_says_so(tmp_path: Path) -> None:
    """V1, V2: the disk half of the evidence is not to change, `files` is empty, and the next command's reply names the
    file."""
    async with scripted_server(tmp_path, processes=FakeProcesses(otherwise=Script())) as stage:
        buffers, session, path = await opened(stage, TYPED)
        reply = await turn(stage, session, *edit())
        assert reply.endswith("[not saved: the editor holds unsaved changes]")
        assert (path.read_text(), buffers.text(path)) == (OLD, "ONE\ntwo\nthree\n")
        (started,) = [record for record in on_disk(session) if isinstance(record, Started)]
        (evidence,) = started.evidence
        assert evidence.is_only_in_buffer
        assert evidence.before == evidence.intended
        attempt = calls_of(session)[-1].attempt
        assert attempt is not None
        assert attempt.result is not None
        assert attempt.result.files == ()
        reply = await turn(stage, session, run("true"))
        assert "[Not saved in the editor, so not seen by this command: a.txt]" in reply


async def test_model_knows_what_it_changed_in_the_editor(tmp_path: Path) -> None:
    """V3: its own change of unsaved text is no change of somebody else."""
    async with scripted_server(tmp_path) as stage:
        _, session, _ = await opened(stage, TYPED)
        await turn(stage, session, read("a.txt"))
        await turn(stage, session, *edit())
        reply = await turn(stage, session, *edit("three", "THREE"))
        assert reply.startswith("a.txt was changed in the editor")


async def test_editor_that_saves_only_by_hand_keeps_the_change_unsaved(tmp_path: Path) -> None:
    """V2: a client without `document/save`: not saved, and the reply says so."""
    async with scripted_server(tmp_path) as stage:
        buffers, session, path = await opened(stage, saves=False)
        reply = await turn(stage, session, *edit())
        assert reply.endswith("[not saved: this editor does not save on request]")
        assert (path.read_text(), buffers.text(path), states(session)) == (OLD, NEW, ["returned"])


@pytest.mark.parametrize("habit", ["refuses", "lies"])
async def test_save_that_does_not_happen_is_said(tmp_path: Path, habit: str) -> None:
    """V2: the edit is in the editor, the disk is as before; the reply says that it is not saved and `files` is
    empty."""
    async with scripted_server(tmp_path) as stage:
        buffers, session, path = await opened(stage)
        buffers.saves = habit
        reply = await turn(stage, session, *edit())
        assert reply.endswith("[not saved: the editor did not save it]")
        assert (path.read_text(), buffers.text(path), states(session)) == (OLD, NEW, ["returned"])
        attempt = calls_of(session)[-1].attempt
        assert attempt is not None
        assert attempt.result is not None
        assert attempt.result.files == ()


async def test_format_on_save_is_said_and_files_has_what_is_there(tmp_path: Path) -> None:
    """V2: the editor changes more while it saves; the reply says so, and the model has to read it again."""
    async with scripted_server(tmp_path) as stage:
        buffers, session, path = await opened(stage)
        buffers.format = "formatted\n"
        reply = await turn(stage, session, *edit())
        assert reply.endswith("The editor changed more of it while it was saved; read it again.")
        assert path.read_text() == NEW + "formatted\n"
        assert states(session) == ["returned"]
        await turn(stage, session, write("a.txt", "mine\n"))
        assert outcomes(session)[-1] == ("refused", "stale")


async def test_save_that_cannot_be_synced_is_uncertain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """V2, W5: what is told as saved outlasts a power loss, so the server syncs what the editor saved."""
    async with scripted_server(tmp_path) as stage:
        _, session, path = await opened(stage)
        monkeypatch.setattr(buffer_write, "make_durable", lambda *_: False)
        reply = await turn(stage, session, *edit())
        assert "what the editor saved could not be made durable" in reply
        assert (outcomes(session), path.read_text()) == ([("unknown", "error")], NEW)


async def test_edit_for_another_version_fails_and_changes_nothing(tmp_path: Path) -> None:
    """V2: the editor refuses an edit for a version that it no longer has; what the person typed stays."""
    async with scripted_server(tmp_path) as stage:
        buffers, session, path = await opened(stage)

        async def typed_meanwhile(name: str, version: int, text: str) -> EditAnswer:
            buffers.type(path, TYPED)
            return await buffers.apply(name, version, text)

        stage.editor.on_apply = typed_meanwhile
        reply = await turn(stage, session, *edit())
        assert "The editor did not change a.txt: the version is another one" in reply
        assert outcomes(session) == [("failed", "changed")]
        assert (path.read_text(), buffers.text(path)) == (OLD, TYPED)


@pytest.mark.parametrize("what", ["typed", "closed", "disk"])
async def test_change_between_start_and_edit_fails_without_a_request(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """V2, W9: document and file are compared directly before the request."""
    async with scripted_server(tmp_path) as stage:
        buffers, session, path = await opened(stage)
        append = session.log.append

        async def meanwhile(records: object, *arguments: object, **named: object) -> bool:
            done = await append(records, *arguments, **named)  # type: ignore[arg-type]
            if any(isinstance(record, Started) for record in records):  # type: ignore[attr-defined]
                match what:
                    case "typed":
                        buffers.type(path, TYPED)
                    case "closed":
                        buffers.close(path)
                    case _:
                        path.write_text(TYPED)
            return done

        monkeypatch.setattr(session.log, "append", meanwhile)
        await turn(stage, session, *edit())
        assert (outcomes(session), buffers.applied) == ([("failed", "changed")], [])
        assert path.read_text() == (TYPED if what == "disk" else OLD)


async def test_turn_stopped_during_the_edit_keeps_what_the_editor_did(tmp_path: Path) -> None:
    """V2, I2: from the request to the record nothing is cancelled."""
    async with scripted_server(tmp_path) as stage:
        buffers, session, path = await opened(stage)
        reached, go = anyio.Event(), anyio.Event()

        async def slow(name: str, version: int, text: str) -> EditAnswer:
            reached.set()
            await go.wait()
            return await buffers.apply(name, version, text)

        stage.editor.on_apply = slow
        stage.model.answers[:] = [asks(*edit()), says("ok")]  # type: ignore[arg-type]
        accepted = await stage.send(session, "one")
        await reached.wait()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prompt_queue.cancel, session, accepted.turn_id)
            await until(lambda: session.turn is not None and session.turn.stopping is not None)
            go.set()
        await stage.ended(session, accepted.turn_id)
        assert (outcomes(session), path.read_text()) == ([("returned", None)], NEW)


async def lost(stage: InProcessServer, habit: str, typed: str | None = None) -> tuple[Buffers, Session, Path]:
    buffers, session, path = await opened(stage, typed)
    buffers.habit = habit
    await turn(stage, session, *edit())
    return buffers, session, path


@pytest.mark.parametrize("habit", ["loses", "lies", "dead"])
async def test_edit_whose_answer_is_lost_is_uncertain(tmp_path: Path, habit: str) -> None:
    """V2: no answer, an error, or "applied" without the text: the outcome is unknown, and holds back later calls."""
    async with scripted_server(tmp_path) as stage:
        buffers, session, path = await lost(stage, habit)
        assert outcomes(session) == [("unknown", "error")]
        (attempt,) = session.ledger.uncertain()
        assert attempt.check == ("satisfied" if habit == "loses" else "unchanged")
        assert path.read_text() == OLD
        assert len(buffers.applied) == 1, "it is never sent again"


async def test_late_edit_is_settled_when_it_is_seen_and_saved(tmp_path: Path) -> None:
    """V2: the edit arrives after its answer was given up. While only the editor has it, it stays uncertain; the save
    settles it."""
    async with scripted_server(tmp_path, processes=FakeProcesses()) as stage:
        living(stage).add(EDITOR_PID)
        buffers, session, path = await lost(stage, "dead")
        await check_documents_again([session], str(path))
        assert len(session.ledger.uncertain()) == 1, "the editor lives and may make it yet"
        buffers.type(path, NEW)
        await check_documents_again([session], str(path))
        assert len(session.ledger.uncertain()) == 1, "it does not outlast the editor"
        path.write_text(NEW)
        await check_documents_again([session], str(path))
        assert session.ledger.uncertain() == []
        attempt = calls_of(session)[-1].attempt
        assert attempt is not None
        assert attempt.settlement is not None
        assert attempt.settlement.settled == "checked_present"


@pytest.mark.parametrize("lives", [True, False])
async def test_unchanged_is_settled_only_if_the_editor_of_that_time_has_ended(tmp_path: Path, lives: bool) -> None:
    """V2: while the editor process that *started* names lives, an edit that is not there may still come."""
    async with scripted_server(tmp_path, processes=FakeProcesses()) as stage:
        living(stage).add(EDITOR_PID)
        _, session, path = await lost(stage, "dead")
        if not lives:
            living(stage).discard(EDITOR_PID)
        await check_documents_again([session], str(path))
        assert len(session.ledger.uncertain()) == (1 if lives else 0)


CASES = {
    # (text of the document or None: closed, file) → the check
    "as before": (OLD, OLD, "unchanged"),
    "in the editor": (NEW, OLD, "satisfied"),
    "saved": (NEW, NEW, "satisfied"),
    "typed on": ("ONE\ntwo\n3\n", OLD, "conflict"),
    "text as before, file new": (OLD, NEW, "conflict"),
    "closed, as before": (None, OLD, "unknown"),
    "closed, saved": (None, NEW, "satisfied"),
    "closed, other": (None, TYPED, "conflict"),
}


@pytest.mark.parametrize("case", CASES)
async def test_check_after_a_restart_asks_the_buffer_then_the_disk(tmp_path: Path, case: str) -> None:
    """V2, I4: the path's answer is the buffer's while the document is open, else the disk's; a document that is closed
    over an unchanged file may come back with the editor's backup. Opening changes nothing."""
    text, disk, expected = CASES[case]
    async with scripted_server(tmp_path, processes=FakeProcesses()) as stage:
        living(stage).add(EDITOR_PID)
        _, session, _ = await lost(stage, "dead")
        state = stage.crashed(tmp_path / "later")
    async with scripted_server(tmp_path, state=state, run=2, processes=FakeProcesses()) as stage:
        living(stage).add(EDITOR_PID)
        path = stage.root / "a.txt"
        path.write_text(OLD)
        buffers = Buffers(stage.editor)
        if text is not None:
            buffers.open(path)
            buffers.type(path, text)
        path.write_text(disk)
        again = await stage.opened(session.session_id)
        await check_documents_again([again], str(path))
        left = again.ledger.uncertain()
        inspected = await inspect_attempt(again, left[0]) if left else None
        settled = expected == "satisfied" and disk == NEW
        assert (inspected is None) == settled
        if inspected is not None:
            assert inspected.check == expected
        assert (path.read_text(), buffers.applied) == (disk, [])


async def test_line_ends_of_the_document_are_kept(tmp_path: Path) -> None:
    """V2, W9: an editor that shows CRLF gets CRLF; a text with one kind of line end is compared without them."""
    async with scripted_server(tmp_path) as stage:
        path = stage.root / "a.txt"
        path.write_bytes(OLD.replace("\n", "\r\n").encode())
        buffers = Buffers(stage.editor)
        buffers.open(path)
        document = stage.editor.documents[str(path)]
        crlf = OLD.replace("\n", "\r\n")
        stage.editor.documents[str(path)] = attrs.evolve(document, text=crlf, saved_text=crlf)
        session = await stage.session("auto")
        await turn(stage, session, *edit())
        assert buffers.applied == [(1, NEW.replace("\n", "\r\n"))]
