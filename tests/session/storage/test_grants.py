"""Grants beyond the session: stored before the call starts, for a workspace or for all, and revocable (row G2)."""

from __future__ import annotations

import errno
import json
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.permissions import grants as core_grants
from steadyhand.domain.permissions.grants import StandingGrant, decode_grants, encode_grants
from steadyhand.domain.records.record import Forget, Permission
from steadyhand.domain.views.types import TextDelta
from steadyhand.ports.disk import Disk
from steadyhand.session.private_state import PrivateState
from steadyhand.session.session import Session
from steadyhand.session.storage import grants as session_grants
from steadyhand.session.storage.grants import Grants
from tests.support.editor import Park, ScriptedEditor
from tests.support.fakes import FakeIds, FakeProcesses, Script
from tests.support.faults import GatedDisk, between
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import asks, call, run, says, write
from tests.support.session_state import kinds, on_disk, outcomes, states
from tests.support.users import OTHER, give, root_only

pytestmark = pytest.mark.anyio


def stored_grants(folder: Path) -> tuple[StandingGrant, ...]:
    found = decode_grants((folder / "state" / "permissions.json").read_bytes())
    assert isinstance(found, tuple)
    return found


def recorded_answers(session: Session) -> list[str]:
    return [record.answer for record in on_disk(session) if isinstance(record, Permission)]


def shell_processes() -> FakeProcesses:
    return FakeProcesses(otherwise=Script(), environment={"PATH": "/usr/bin:/bin"})


def command_grant(number: int) -> StandingGrant:
    return StandingGrant(f"{number:032x}", "then", "run_command", "/w", f"make {number}", ".")


def grants_in(state: Path, disk: Disk | None = None, editor: ScriptedEditor | None = None) -> Grants:
    state.mkdir(exist_ok=True)
    in_thread = anyio.to_thread.run_sync
    disk = disk or system_disk()
    return Grants(disk, FakeIds(7), editor or ScriptedEditor(), PrivateState(disk, str(state)), str(state), in_thread)


async def slash_answer(stage: InProcessServer, session: Session, text: str) -> str:
    accepted = await stage.send(session, text)
    await stage.ended(session, accepted.turn_id)
    return "".join(event.delta for event in stage.events(accepted.turn_id) if isinstance(event, TextDelta))


# What a grant permits.


async def test_workspace_grant_permits_its_tool_in_that_workspace_only(tmp_path: Path) -> None:
    """Row G2: Other sessions of the workspace are not asked, now and after a restart. Another tool, `.env` and
    another workspace are asked. The answer is a permission record as well."""
    turns = [asks(write(name, "x")) for name in ("a", "b")]
    async with scripted_server(tmp_path, turns[0], says("ok"), editor=ScriptedEditor("workspace")) as stage:
        session = await stage.session("ask")
        await stage.say(session)
        assert recorded_answers(session) == ["workspace"]
        assert kinds(session).index("permission") < kinds(session).index("started")
        (grant,) = stored_grants(tmp_path)
        assert (grant.tool, grant.workspace, grant.command) == ("write_file", str(stage.root), None)
    later = asks(write("b", "x"), call("delete_file", path="b"), write(".env", "x"), write("../ws/../out", "x"))
    async with scripted_server(tmp_path, later, says("ok"), editor=ScriptedEditor(*["reject"] * 3), run=2) as stage:
        session = await stage.session("ask")
        await stage.say(session)
        assert [question.tool for question in stage.editor.questions] == ["delete_file", "write_file", "write_file"]
        assert states(session) == ["returned", "refused", "refused", "refused"]
    (tmp_path / "other").mkdir()
    state = tmp_path / "state"
    async with scripted_server(
        tmp_path / "other", turns[1], says("ok"), editor=ScriptedEditor("reject"), state=state, run=3
    ) as stage:
        session = await stage.session("ask")
        await stage.say(session)
        assert len(stage.editor.questions) == 1


async def test_user_grant_permits_that_command_in_every_workspace(tmp_path: Path) -> None:
    """Row G2: The grant permits exactly this command in the same folder of every workspace. A longer command and
    another folder ask."""
    first = asks(run("make", cwd="sub"))
    async with scripted_server(
        tmp_path, first, says("ok"), editor=ScriptedEditor("user"), processes=shell_processes()
    ) as stage:
        (stage.root / "sub").mkdir()
        await stage.say(session := await stage.session("ask"))
        assert recorded_answers(session) == ["user"]
        (grant,) = stored_grants(tmp_path)
        assert (grant.workspace, grant.command, grant.cwd) == (None, "make", "sub")
    (tmp_path / "other").mkdir()
    later = asks(run("make", cwd="sub"), run("make all", cwd="sub"), run("make"))
    editor = ScriptedEditor("reject", "reject")
    state = tmp_path / "state"
    async with scripted_server(
        tmp_path / "other", later, says("ok"), editor=editor, processes=shell_processes(), state=state, run=2
    ) as stage:
        (stage.root / "sub").mkdir()
        await stage.say(session := await stage.session("ask"))
        assert states(session) == ["returned", "refused", "refused"]
        assert len(stage.editor.questions) == 2


async def test_grant_is_not_offered_for_protected_or_outside_paths(tmp_path: Path) -> None:
    """Row G2: For a protected path and a path outside the workspace the question has two answers. An answer that was
    not offered counts as none."""
    answer = asks(write(".env", "x"), write(str(tmp_path / "out.txt"), "x"))
    async with scripted_server(tmp_path, answer, says("ok"), editor=ScriptedEditor("workspace", "user")) as stage:
        session = await stage.session("ask")
        await stage.say(session)
        assert {tuple(o.id for o in question.options) for question in stage.editor.questions} == {("once", "reject")}
        assert outcomes(session) == [("refused", "not_answered")] * 2, "an answer that was not offered counts as none"
        assert not (tmp_path / "state" / "permissions.json").exists()


async def test_grant_permits_nothing_that_plan_mode_refuses(tmp_path: Path) -> None:
    """Row G2: A stored grant does not override the mode `plan`."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "permissions.json").write_bytes(
        encode_grants([StandingGrant("1" * 32, "then", "write_file", None)])
    )
    async with scripted_server(tmp_path, asks(write("a", "x")), says("no"), asks(write("a", "x")), says("ok")) as stage:
        session = await stage.session("plan")
        await stage.say(session)
        await session.set_mode("ask")
        await stage.say(session)
        assert states(session) == ["refused", "returned"]
        assert stage.editor.questions == []


# The file.


async def test_grants_file_is_private_and_durable_before_the_call(tmp_path: Path) -> None:
    """Rows J10, C5: The file has mode 0600. The call waits for it, and nothing has started by then."""
    disk = GatedDisk(lambda operation: operation.verb == "rename" and operation.target.endswith("permissions.json"))
    async with scripted_server(
        tmp_path, asks(write("a", "x")), says("ok"), editor=ScriptedEditor("user"), disk=disk
    ) as stage:
        session = await stage.session("ask")
        accepted = await stage.send(session, "one")
        await disk.wait_reached()
        assert "permission" not in kinds(session)
        assert stage.content("a") is None
        disk.go.set()
        await stage.ended(session, accepted.turn_id)
        path = tmp_path / "state" / "permissions.json"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert sorted(p.name for p in path.parent.iterdir()) == ["permissions.json", "permissions.lock", "sessions"]


async def test_grant_that_the_disk_refuses_counts_once(tmp_path: Path) -> None:
    """Row J7: A disk that fails gives one sentence. The call runs, the record says `once`, and the next call is
    asked about."""
    full = OSError(errno.ENOSPC, "No space left on device")
    disk = GatedDisk(lambda operation: operation.verb == "sync" and "permissions" in operation.target, full, held=False)
    answer = asks(write("a", "x"), write("b", "x"))
    editor = ScriptedEditor("workspace", "reject")
    async with scripted_server(tmp_path, answer, says("ok"), editor=editor, disk=disk) as stage:
        session = await stage.session("ask")
        await stage.say(session)
        assert recorded_answers(session) == ["once", "reject"]
        assert states(session) == ["returned", "refused"]
        (message,) = editor.messages
        assert "the permission may not be stored (No space left" in message
        assert [p.name for p in (tmp_path / "state").iterdir() if "json" in p.name] == []


async def test_grants_file_after_any_disk_fault_is_the_old_or_the_new(tmp_path: Path) -> None:
    """Rows J7, S6: Whichever operation fails, the file is whole, and what it held before is still in it."""
    done = False
    number = 0
    while not done:
        number += 1
        state = tmp_path / str(number)
        state.mkdir()
        (state / "permissions.json").write_bytes(encode_grants([command_grant(1)]))

        def fail(count: int, name: str, at: int = number) -> None:
            if count == at:
                raise OSError(errno.EIO, "Input/output error")

        done = await grants_in(state, between(fail)).remember(command_grant(2)) is None
        found = decode_grants((state / "permissions.json").read_bytes())
        assert found in ((command_grant(1),), (command_grant(1), command_grant(2)))
        assert await grants_in(state).remember(command_grant(3)) is None
        left = sorted(path.name for path in state.iterdir())
        assert left == ["permissions.json", "permissions.lock"], "the next write removes the leftovers of a failure"
    assert number > 8
    assert found == (command_grant(1), command_grant(2))


async def test_concurrent_writers_lose_no_grant(tmp_path: Path) -> None:
    """Row G2: Each writer holds the lock of the system from its read to its rename."""
    state = tmp_path / "state"
    writers = [grants_in(state) for _ in range(4)]
    async with anyio.create_task_group() as tasks:
        for first, writer in enumerate(writers):

            async def remember_several(writer: Grants = writer, first: int = first) -> None:
                for number in range(8):
                    assert await writer.remember(command_grant(first * 8 + number)) is None

            tasks.start_soon(remember_several)
    assert sorted(one.grant_id for one in stored_grants(tmp_path)) == [
        command_grant(number).grant_id for number in range(32)
    ]


async def test_grants_lock_held_elsewhere_ends_the_wait_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[I13]: If another process keeps the lock, the server says so and writes nothing."""
    monkeypatch.setattr(session_grants, "LOCK_WAIT_S_MAX", 0.05)
    state = tmp_path / "state"
    state.mkdir()
    disk = system_disk()
    folder = disk.open_folder(str(state))
    lock = disk.lock(folder, "permissions.lock")
    assert lock is not None
    grants = grants_in(state)
    error = await grants.remember(command_grant(1))
    assert error is not None
    assert "another process" in error
    lock.release()
    disk.close(folder)
    assert await grants.remember(command_grant(1)) is None


async def test_grant_is_stored_once_and_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """[I13]: The same grant again adds nothing. Above a bound the server says so."""
    grants = grants_in(tmp_path / "state")
    assert await grants.remember(command_grant(1)) is None
    assert await grants.remember(StandingGrant("f" * 32, "later", "run_command", "/w", "make 1", ".")) is None
    assert stored_grants(tmp_path) == (command_grant(1),)
    monkeypatch.setattr(session_grants, "GRANTS_MAX", 1)
    assert "1 are already remembered" in (await grants.remember(command_grant(2)) or "")
    monkeypatch.setattr(session_grants, "GRANTS_MAX", core_grants.GRANTS_MAX)
    monkeypatch.setattr(session_grants, "GRANTS_BYTES_MAX", 10)
    assert "forget some" in (await grants.remember(command_grant(2)) or "")


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"garbage", "damaged"), (encode_grants([command_grant(1)])[:-2], "damaged"), (b"", "damaged")],
)
async def test_damaged_grants_file_counts_as_empty_and_is_kept(tmp_path: Path, content: bytes, said: str) -> None:
    """Row S6: The server reports the damage once, however often it reads the file. The next grant keeps the damaged
    file beside the new one."""
    state, editor = tmp_path / "state", ScriptedEditor()
    grants = grants_in(state, editor=editor)
    (state / "permissions.json").write_bytes(content)
    assert await grants.load_all() == await grants.load_all() == ()
    (message,) = editor.messages
    assert said in message
    assert await grants.remember(command_grant(2)) is None
    assert stored_grants(tmp_path) == await grants.load_all() == (command_grant(2),)
    (kept,) = [path for path in state.iterdir() if "damaged" in path.name]
    assert kept.read_bytes() == content
    assert len(editor.messages) == 1


async def test_grants_file_of_a_newer_version_is_not_changed(tmp_path: Path) -> None:
    """Row X1: Nothing in the file counts here, and the server does not overwrite it."""
    state, editor = tmp_path / "state", ScriptedEditor()
    grants = grants_in(state, editor=editor)
    newer = newer_file([])
    (state / "permissions.json").write_bytes(newer)
    assert await grants.load_all() == ()
    assert "newer version" in editor.messages[0]
    assert "newer version" in (await grants.remember(command_grant(1)) or "")
    assert (state / "permissions.json").read_bytes() == newer


def newer_file(grants: Sequence[object]) -> bytes:
    from tests.domain.permissions.test_grants import lined

    return lined({"v": 2, "grants": list(grants)})


async def test_unreadable_grants_file_is_reported_and_stops_no_turn(tmp_path: Path) -> None:
    """Row S6: A folder in the file's place counts as no grants, is reported, and stops no turn."""
    (tmp_path / "state" / "permissions.json").mkdir(parents=True)
    async with scripted_server(tmp_path, asks(write("a", "x")), says("ok"), editor=ScriptedEditor("once")) as stage:
        session = await stage.session("ask")
        assert (await stage.say(session)).reason == "done"
        assert states(session) == ["returned"]
        assert "cannot be read" in stage.editor.messages[0]


# Revocation.


async def test_permissions_command_lists_and_revokes_grants(tmp_path: Path) -> None:
    """Row G2: `/permissions` works beside a parked turn. What was revoked is asked about again, after a restart too."""
    park = Park()
    first = asks(write("a", "x"), call("delete_file", path="a"))
    turns = (first, says("ok"), asks(write("b", "x"), call("move_file", **{"from": "b", "to": "c"})), says("ok"))
    editor = ScriptedEditor("session", "workspace", park)
    async with scripted_server(tmp_path, *turns, editor=editor) as stage:
        session = await stage.session("ask")
        await stage.say(session)
        accepted = await stage.send(session, "two")
        await park.wait_open()
        listed = await slash_answer(stage, session, "/permissions")
        assert "write_file (in session" in listed
        assert f"delete_file (in {stage.root})" in listed
        for grant_id in (session.ledger.grants[0].attempt_id, stored_grants(tmp_path)[0].grant_id):
            assert (await slash_answer(stage, session, f"/permissions forget {grant_id}")).startswith(
                f"Forgotten: {grant_id[:8]}"
            )
        park.answer_with("once")
        await stage.ended(session, accepted.turn_id)
        assert (await slash_answer(stage, session, "/permissions")).startswith("No remembered permissions")
        assert session.ledger.grants == []
        assert sum(isinstance(record, Forget) for record in on_disk(session)) == 1
        assert stored_grants(tmp_path) == ()
    again = asks(write("d", "x"), call("delete_file", path="c"))
    async with scripted_server(tmp_path, again, says("ok"), editor=ScriptedEditor("once", "once"), run=2) as stage:
        session = await stage.opened(session.session_id)
        await stage.say(session)
        assert len(stage.editor.questions) == 2


@pytest.mark.parametrize(
    ("line", "begins"),
    [
        ("/permissions", "No remembered permissions"),
        ("/permissions forget all", "No remembered permissions"),
        ("/permissions forget", "Say /permissions"),
        ("/permissions drop x", "Say /permissions"),
        ("/permissions forget ab", "Not done: ID: give at least 4 digits"),
        ("/permissions forget abcd", "Not done: ID: no remembered permission"),
    ],
)
async def test_permissions_command_answers_any_line(tmp_path: Path, line: str, begins: str) -> None:
    """Row G5: The answer to a line that is not understood says what is."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        assert (await slash_answer(stage, session, line)).startswith(begins)


async def test_permissions_forget_all_spares_other_workspaces(tmp_path: Path) -> None:
    """Row G2: `forget all` leaves the grants of another workspace alone."""
    (tmp_path / "state").mkdir()
    elsewhere, everywhere = command_grant(1), StandingGrant("2" * 32, "then", "write_file", None)
    (tmp_path / "state" / "permissions.json").write_bytes(encode_grants([elsewhere, everywhere]))
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        assert (await slash_answer(stage, session, "/permissions forget all")).count("Forgotten") == 1
        assert stored_grants(tmp_path) == (elsewhere,)


def test_grants_file_has_the_documented_form(tmp_path: Path) -> None:
    """The line drawn in docs/protocol.md is one that the server writes."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "protocol.md").read_text(encoding="utf-8")
    (example,) = [line for line in page.split("\n") if line.startswith('{"sum":"') and '"grants"' in line]
    found = decode_grants(example.encode() + b"\n")
    assert isinstance(found, tuple)
    assert json.loads(example)["grants"]
    assert encode_grants(found) == example.encode() + b"\n"


# A file that other users control.


def unsafe_mode(path: Path) -> None:
    path.chmod(0o666)


def unsafe_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def unsafe_owner(path: Path) -> None:
    give(path, OTHER)


@pytest.mark.parametrize("spoil", [unsafe_mode, unsafe_link, pytest.param(unsafe_owner, marks=root_only)])
async def test_forged_grants_are_not_believed(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    """Row O5, case 147: a grant in a file that another user made, linked or could write counts as none, and this is
    said once. The next grant that the user gives is stored in a file of its own, and the old one is kept."""
    state = tmp_path / "state"
    state.mkdir()
    forged = StandingGrant("f" * 32, "then", "write_file", str(tmp_path / "ws"))
    (state / "permissions.json").write_bytes(encode_grants([forged]))
    spoil(state / "permissions.json")
    turns = asks(write("a", "x"), write("b", "x"))
    async with scripted_server(tmp_path, turns, says("ok"), editor=ScriptedEditor("reject", "workspace")) as stage:
        session = await stage.session("ask")
        await stage.say(session)
        assert recorded_answers(session) == ["reject", "workspace"]
        (told,) = [text for text in stage.editor.messages if "permissions.json" in text]
        assert "do not apply" in told
    (given,) = stored_grants(tmp_path)
    assert given.grant_id != forged.grant_id
    assert stat.S_IMODE((state / "permissions.json").lstat().st_mode) == 0o600
    assert len(list(state.glob("permissions.damaged-*.json"))) == 1


async def test_grants_in_a_readable_file_are_believed(tmp_path: Path) -> None:
    """Row O5: an own file that only its user can write counts, as before."""
    state = tmp_path / "state"
    grants = grants_in(state)
    assert await grants.remember(command_grant(1)) is None
    (state / "permissions.json").chmod(0o644)
    assert await grants.load_all() == (command_grant(1),)
