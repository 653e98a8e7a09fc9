"""Grants beyond the session: remembered before the start, for a workspace or for all, and taken back (row G2)."""

from __future__ import annotations

import errno
import json
import stat
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from steadyhand.adapters.disk import system_disk
from steadyhand.core import grants as core_grants
from steadyhand.core.grants import Standing, read_grants, written
from steadyhand.core.record import Forget, Permission
from steadyhand.core.views import TextDelta
from steadyhand.ports import Disk
from steadyhand.session import grants as session_grants
from steadyhand.session.grants import Grants
from steadyhand.session.owner import Owner
from tests.support.fakes import FakeIds, FakeProcesses, Script
from tests.support.ground import between
from tests.support.scripted import (
    GatedDisk,
    Park,
    ScriptedEditor,
    Stage,
    asks,
    call,
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


def remembered(folder: Path) -> tuple[Standing, ...]:
    found = read_grants((folder / "state" / "permissions.json").read_bytes())
    assert isinstance(found, tuple)
    return found


def answers(owner: Owner) -> list[str]:
    return [record.answer for record in on_disk(owner) if isinstance(record, Permission)]


def shell() -> FakeProcesses:
    return FakeProcesses(otherwise=Script(), environment={"PATH": "/usr/bin:/bin"})


def some(number: int) -> Standing:
    return Standing(f"{number:032x}", "then", "run_command", "/w", f"make {number}", ".")


def grants_on(state: Path, disk: Disk | None = None, editor: ScriptedEditor | None = None) -> Grants:
    state.mkdir(exist_ok=True)
    in_thread = anyio.to_thread.run_sync
    return Grants(disk or system_disk(), FakeIds(7), editor or ScriptedEditor(), str(state), in_thread)


async def said(stage: Stage, owner: Owner, text: str) -> str:
    accepted = await stage.send(owner, text)
    await stage.ended(owner, accepted.turn_id)
    return "".join(event.delta for event in stage.events(accepted.turn_id) if isinstance(event, TextDelta))


# --- what they let pass -------------------------------------------------------------------------------------------


async def test_for_the_workspace(tmp_path: Path) -> None:
    """G2: other sessions of the workspace are not asked, now and after a restart; another tool, `.env`, and another
    workspace are; the answer is a permission record as well."""
    turns = [asks(write(name, "x")) for name in ("a", "b")]
    async with staged(tmp_path, turns[0], says("ok"), editor=ScriptedEditor("workspace")) as stage:
        owner = await stage.session("ask")
        await stage.say(owner)
        assert answers(owner) == ["workspace"]
        assert kinds(owner).index("permission") < kinds(owner).index("started")
        (grant,) = remembered(tmp_path)
        assert (grant.tool, grant.workspace, grant.command) == ("write_file", str(stage.root), None)
    later = asks(write("b", "x"), call("delete_file", path="b"), write(".env", "x"), write("../ws/../out", "x"))
    async with staged(tmp_path, later, says("ok"), editor=ScriptedEditor(*["reject"] * 3), life=2) as stage:
        owner = await stage.session("ask")
        await stage.say(owner)
        assert [question.tool for question in stage.editor.questions] == ["delete_file", "write_file", "write_file"]
        assert states(owner) == ["returned", "refused", "refused", "refused"]
    (tmp_path / "other").mkdir()
    state = tmp_path / "state"
    async with staged(
        tmp_path / "other", turns[1], says("ok"), editor=ScriptedEditor("reject"), state=state, life=3
    ) as stage:
        owner = await stage.session("ask")
        await stage.say(owner)
        assert len(stage.editor.questions) == 1


async def test_for_all_workspaces(tmp_path: Path) -> None:
    """G2: that very command in the same folder of every workspace; a longer one and another folder ask."""
    first = asks(run("make", cwd="sub"))
    async with staged(tmp_path, first, says("ok"), editor=ScriptedEditor("user"), processes=shell()) as stage:
        (stage.root / "sub").mkdir()
        await stage.say(owner := await stage.session("ask"))
        assert answers(owner) == ["user"]
        (grant,) = remembered(tmp_path)
        assert (grant.workspace, grant.command, grant.cwd) == (None, "make", "sub")
    (tmp_path / "other").mkdir()
    later = asks(run("make", cwd="sub"), run("make all", cwd="sub"), run("make"))
    editor = ScriptedEditor("reject", "reject")
    state = tmp_path / "state"
    async with staged(
        tmp_path / "other", later, says("ok"), editor=editor, processes=shell(), state=state, life=2
    ) as stage:
        (stage.root / "sub").mkdir()
        await stage.say(owner := await stage.session("ask"))
        assert states(owner) == ["returned", "refused", "refused"]
        assert len(stage.editor.questions) == 2


async def test_it_is_not_offered_where_it_would_not_last(tmp_path: Path) -> None:
    """G2: a protected path, what leaves the workspace, and what a person confirmed before have two answers."""
    answer = asks(write(".env", "x"), write(str(tmp_path / "out.txt"), "x"))
    async with staged(tmp_path, answer, says("ok"), editor=ScriptedEditor("workspace", "user")) as stage:
        owner = await stage.session("ask")
        await stage.say(owner)
        assert {tuple(o.id for o in question.options) for question in stage.editor.questions} == {("once", "reject")}
        assert outcomes(owner) == [("refused", "not_answered")] * 2, "an answer that was not offered is none"
        assert not (tmp_path / "state" / "permissions.json").exists()


async def test_plan_and_distrust_stand_above(tmp_path: Path) -> None:
    """G2: what is remembered lets nothing pass that the mode `plan` refuses."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "permissions.json").write_bytes(written([Standing("1" * 32, "then", "write_file", None)]))
    async with staged(tmp_path, asks(write("a", "x")), says("no"), asks(write("a", "x")), says("ok")) as stage:
        owner = await stage.session("plan")
        await stage.say(owner)
        await owner.set_mode("ask")
        await stage.say(owner)
        assert states(owner) == ["refused", "returned"]
        assert stage.editor.questions == []


# --- the file -----------------------------------------------------------------------------------------------------


async def test_the_file_is_private_and_durable_before_the_start(tmp_path: Path) -> None:
    """J10, C5: 0600; the call waits for it, and nothing has started by then."""
    disk = GatedDisk(lambda operation: operation.verb == "rename" and operation.target.endswith("permissions.json"))
    async with staged(tmp_path, asks(write("a", "x")), says("ok"), editor=ScriptedEditor("user"), disk=disk) as stage:
        owner = await stage.session("ask")
        accepted = await stage.send(owner, "one")
        await disk.wait_reached()
        assert "permission" not in kinds(owner)
        assert stage.content("a") is None
        disk.go.set()
        await stage.ended(owner, accepted.turn_id)
        path = tmp_path / "state" / "permissions.json"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert sorted(p.name for p in path.parent.iterdir()) == ["permissions.json", "permissions.lock", "sessions"]


async def test_what_cannot_be_remembered_counts_once(tmp_path: Path) -> None:
    """J7: a disk that fails is one sentence; the call runs, the record says `once`, and the next one is asked about."""
    full = OSError(errno.ENOSPC, "No space left on device")
    disk = GatedDisk(lambda operation: operation.verb == "sync" and "permissions" in operation.target, full, held=False)
    answer = asks(write("a", "x"), write("b", "x"))
    editor = ScriptedEditor("workspace", "reject")
    async with staged(tmp_path, answer, says("ok"), editor=editor, disk=disk) as stage:
        owner = await stage.session("ask")
        await stage.say(owner)
        assert answers(owner) == ["once", "reject"]
        assert states(owner) == ["returned", "refused"]
        (message,) = editor.messages()
        assert "not remembered for certain (No space left" in message
        assert [p.name for p in (tmp_path / "state").iterdir() if "json" in p.name] == []


async def test_a_disk_that_fails_anywhere_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    """J7, S6: whichever operation fails, the file is whole, and what was there before is still there."""
    done = False
    number = 0
    while not done:
        number += 1
        state = tmp_path / str(number)
        state.mkdir()
        (state / "permissions.json").write_bytes(written([some(1)]))

        def fail(count: int, name: str, at: int = number) -> None:
            if count == at:
                raise OSError(errno.EIO, "Input/output error")

        done = await grants_on(state, between(fail)).remember(some(2)) is None
        found = read_grants((state / "permissions.json").read_bytes())
        assert found in ((some(1),), (some(1), some(2)))
        assert await grants_on(state).remember(some(3)) is None
        left = sorted(path.name for path in state.iterdir())
        assert left == ["permissions.json", "permissions.lock"], "what a failure left is swept"
    assert number > 8
    assert found == (some(1), some(2))


async def test_two_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    """G2: each holds the lock of the system from its reading to its rename."""
    state = tmp_path / "state"
    writers = [grants_on(state) for _ in range(4)]
    async with anyio.create_task_group() as tasks:
        for first, writer in enumerate(writers):

            async def several(writer: Grants = writer, first: int = first) -> None:
                for number in range(8):
                    assert await writer.remember(some(first * 8 + number)) is None

            tasks.start_soon(several)
    assert sorted(one.grant_id for one in remembered(tmp_path)) == [some(number).grant_id for number in range(32)]


async def test_the_lock_is_waited_for_and_no_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I13: another process that keeps the lock is said, and nothing is written."""
    monkeypatch.setattr(session_grants, "lock_wait_s_max", 0.05)
    state = tmp_path / "state"
    state.mkdir()
    disk = system_disk()
    folder = disk.open_folder(str(state))
    held = disk.lock(folder, "permissions.lock")
    assert held is not None
    grants = grants_on(state)
    trouble = await grants.remember(some(1))
    assert trouble is not None
    assert "another process" in trouble
    held.release()
    disk.close(folder)
    assert await grants.remember(some(1)) is None


async def test_the_same_is_remembered_once_and_so_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I13: the bound on their number is said; the same grant again is none."""
    grants = grants_on(tmp_path / "state")
    assert await grants.remember(some(1)) is None
    assert await grants.remember(Standing("f" * 32, "later", "run_command", "/w", "make 1", ".")) is None
    assert remembered(tmp_path) == (some(1),)
    monkeypatch.setattr(session_grants, "grants_max", 1)
    assert "1 are remembered already" in (await grants.remember(some(2)) or "")
    monkeypatch.setattr(session_grants, "grants_max", core_grants.grants_max)
    monkeypatch.setattr(session_grants, "grants_bytes_max", 10)
    assert "forget some" in (await grants.remember(some(2)) or "")


@pytest.mark.parametrize(
    ("content", "said"), [(b"garbage", "damaged"), (written([some(1)])[:-2], "damaged"), (b"", "damaged")]
)
async def test_a_damaged_file_counts_as_none_and_is_kept(tmp_path: Path, content: bytes, said: str) -> None:
    """S6: said once, however often it is read; the next grant keeps it beside."""
    state, editor = tmp_path / "state", ScriptedEditor()
    grants = grants_on(state, editor=editor)
    (state / "permissions.json").write_bytes(content)
    assert await grants.known() == await grants.known() == ()
    (message,) = editor.messages()
    assert said in message
    assert await grants.remember(some(2)) is None
    assert remembered(tmp_path) == await grants.known() == (some(2),)
    (kept,) = [path for path in state.iterdir() if "damaged" in path.name]
    assert kept.read_bytes() == content
    assert len(editor.messages()) == 1


async def test_a_file_of_a_newer_version_is_not_touched(tmp_path: Path) -> None:
    """X1: nothing of it counts here, and nothing is written over it."""
    state, editor = tmp_path / "state", ScriptedEditor()
    grants = grants_on(state, editor=editor)
    newer = newer_file([])
    (state / "permissions.json").write_bytes(newer)
    assert await grants.known() == ()
    assert "newer version" in editor.messages()[0]
    assert "newer version" in (await grants.remember(some(1)) or "")
    assert (state / "permissions.json").read_bytes() == newer


def newer_file(grants: Sequence[object]) -> bytes:
    from tests.core.test_grants import lined

    return lined({"v": 2, "grants": list(grants)})


async def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """S6: what is no file counts as none, is said, and stops no turn."""
    (tmp_path / "state" / "permissions.json").mkdir(parents=True)
    async with staged(tmp_path, asks(write("a", "x")), says("ok"), editor=ScriptedEditor("once")) as stage:
        owner = await stage.session("ask")
        assert (await stage.say(owner)).reason == "done"
        assert states(owner) == ["returned"]
        assert "cannot be read" in stage.editor.messages()[0]


# --- taken back ---------------------------------------------------------------------------------------------------


async def test_listed_and_taken_back_in_the_chat(tmp_path: Path) -> None:
    """G2: `/permissions` stands beside a parked turn; what is taken back is asked about again, after a restart too."""
    park = Park()
    first = asks(write("a", "x"), call("delete_file", path="a"))
    turns = (first, says("ok"), asks(write("b", "x"), call("move_file", **{"from": "b", "to": "c"})), says("ok"))
    editor = ScriptedEditor("session", "workspace", park)
    async with staged(tmp_path, *turns, editor=editor) as stage:
        owner = await stage.session("ask")
        await stage.say(owner)
        accepted = await stage.send(owner, "two")
        await park.wait_open()
        listed = await said(stage, owner, "/permissions")
        assert "write_file (in session" in listed
        assert f"delete_file (in {stage.root})" in listed
        for given in (owner.ledger.grants[0].attempt_id, remembered(tmp_path)[0].grant_id):
            assert (await said(stage, owner, f"/permissions forget {given}")).startswith(f"Forgotten: {given[:8]}")
        park.answer_with("once")
        await stage.ended(owner, accepted.turn_id)
        assert (await said(stage, owner, "/permissions")).startswith("Nothing is remembered")
        assert owner.ledger.grants == []
        assert sum(isinstance(record, Forget) for record in on_disk(owner)) == 1
        assert remembered(tmp_path) == ()
    again = asks(write("d", "x"), call("delete_file", path="c"))
    async with staged(tmp_path, again, says("ok"), editor=ScriptedEditor("once", "once"), life=2) as stage:
        owner = await stage.opened(owner.session_id)
        await stage.say(owner)
        assert len(stage.editor.questions) == 2


@pytest.mark.parametrize(
    ("line", "begins"),
    [
        ("/permissions", "Nothing is remembered"),
        ("/permissions forget all", "Nothing is remembered"),
        ("/permissions forget", "Say /permissions"),
        ("/permissions drop x", "Say /permissions"),
        ("/permissions forget ab", "Not done: ID: give at least 4 digits"),
        ("/permissions forget abcd", "Not done: ID: no remembered permission"),
    ],
)
async def test_what_the_command_answers(tmp_path: Path, line: str, begins: str) -> None:
    """G5: a line that is not understood says what is."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        assert (await said(stage, owner, line)).startswith(begins)


async def test_only_what_counts_here_is_shown_in_the_chat(tmp_path: Path) -> None:
    """G2: another workspace's grants are left alone by `forget all`."""
    (tmp_path / "state").mkdir()
    elsewhere, everywhere = some(1), Standing("2" * 32, "then", "write_file", None)
    (tmp_path / "state" / "permissions.json").write_bytes(written([elsewhere, everywhere]))
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        assert (await said(stage, owner, "/permissions forget all")).count("Forgotten") == 1
        assert remembered(tmp_path) == (elsewhere,)


def test_the_file_is_what_its_page_says(tmp_path: Path) -> None:
    """The line drawn in docs/protocol.md is one of ours."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "protocol.md").read_text(encoding="utf-8")
    (drawn,) = [line for line in page.split("\n") if line.startswith('{"sum":"') and '"grants"' in line]
    found = read_grants(drawn.encode() + b"\n")
    assert isinstance(found, tuple)
    assert json.loads(drawn)["grants"]
    assert written(found) == drawn.encode() + b"\n"
