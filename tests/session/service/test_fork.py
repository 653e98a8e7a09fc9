"""Forks: what is copied, what is not, and in which order a fork is refused (row S3)."""

from __future__ import annotations

import errno
import zlib
from pathlib import Path

import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.errors import Refused
from steadyhand.domain.model.messages import ReplyMessage
from steadyhand.domain.model.transcript import outgoing_messages
from steadyhand.domain.records.record import Compaction, Mode, ModeSet, ToolResult
from steadyhand.journal.format import read_journal, write_line
from steadyhand.session.changes.review import list_review
from steadyhand.session.changes.rewind import rewind
from steadyhand.session.service import prompt_queue
from steadyhand.session.service.fork import fork
from steadyhand.session.service.session_settings import checkpoints
from steadyhand.session.session import Session
from steadyhand.session.storage import forked
from steadyhand.session.storage.directory import names
from tests.support.editor import Park, ScriptedEditor
from tests.support.faults import MatchingFault, carries
from tests.support.in_process_server import InProcessServer, practice_server, scripted_server
from tests.support.killed_runs import SESSION, kill_in_turn
from tests.support.model import asks, read, says, write
from tests.support.session_state import journal_path, on_disk, states
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [pytest.mark.anyio, linux_only]

NOBODY = "0" * 32


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    place = Workspace.under(tmp_path / "place")
    place.write("a.txt", "old\n")
    return place


async def forked_from(server: InProcessServer, session: Session | str, turn_id: str | None = None) -> Session:
    session_id = session if isinstance(session, str) else session.session_id
    view = await fork(server.registry, session_id, turn_id, None)
    return server.registry.sessions[view.session_id]


async def refusal(
    server: InProcessServer, session_id: str, turn_id: str | None = None, title: str | None = None
) -> str:
    """The word with which a fork is refused; nothing is made then."""
    before = sorted((server.state / "sessions").iterdir())
    with pytest.raises(Refused) as refused:
        await fork(server.registry, session_id, turn_id, title)
    assert sorted((server.state / "sessions").iterdir()) == before
    return refused.value.kind


def turns(session: Session) -> list[str]:
    return [one.turn_id for one in session.ledger.turns.values()]


def prompts(session: Session) -> list[str]:
    return [one.text for one in session.messages(99)[0] if one.role == "user"]


async def test_fork_sends_the_same_messages_and_holds_nothing_else_of_the_origin(place: Workspace) -> None:
    """S3, T5: a provider gets the same bytes from the fork; attempts, permissions, usage, client ids, review and
    checkpoints stay in the origin."""
    async with practice_server(place, mode="ask", editor=ScriptedEditor("session", "once")) as server:
        origin = await server.session()
        await server.say(origin, "replace old with new in a.txt")
        await server.say(origin, "run exit 3")
        await server.say(origin, "/recovery")
        copy = await forked_from(server, origin)
        assert outgoing_messages(copy.ledger) == outgoing_messages(origin.ledger)
        assert origin.ledger.attempts
        assert not copy.ledger.attempts
        assert origin.ledger.grants
        assert not copy.ledger.grants
        assert not copy.ledger.usage
        assert not copy.ledger.queue
        assert not set(copy.ledger.prompts) & set(origin.ledger.prompts)
        assert (await list_review(origin)).files
        assert (await list_review(copy)).files == ()
        assert await checkpoints(copy) == ()
        assert prompts(copy) == ["replace old with new in a.txt", "run exit 3"]
        assert states(copy) == states(origin)
        assert all(one.attempt_id is None for message in copy.messages(99)[0] for one in message.calls or ())
        assert {one.kind for one in on_disk(copy)} == {
            "session",
            "epoch",
            "origin",
            "user",
            "assistant",
            "tool",
            "ended",
        }
        assert all(one.ended is not None and one.ended.reason == "done" for one in copy.ledger.turns.values())


async def test_fork_is_a_session_of_its_own_that_survives_a_restart(place: Workspace) -> None:
    """S3: it names its origin in view and list, goes on by itself, and leaves the origin as it was."""
    async with practice_server(place) as server:
        origin = await server.session()
        await server.say(origin, "show a.txt")
        before = place.journal(origin.session_id)
        copy = await forked_from(server, origin)
        await server.say(copy, "append more to a.txt")
        assert place.journal(origin.session_id) == before
        name = copy.session_id
    async with practice_server(place, run=2) as server:
        (listed,) = [one for one in await server.registry.list_sessions() if one.session_id == name]
        assert listed.origin is not None
        assert (listed.origin.session_id, listed.origin.turn_id) == (origin.session_id, None)
        assert listed.title == "show a.txt (fork)"
        again = await server.opened(name)
        assert again.view().origin == listed.origin
        assert prompts(again) == ["show a.txt", "append more to a.txt"]
        assert again.ledger.refused == []


async def test_fork_up_to_a_turn_ends_with_that_turn(place: Workspace) -> None:
    """S3: the history up to and including the turn; what was told about it before the next prompt belongs to it."""
    async with practice_server(place) as server:
        origin = await server.session()
        for text in ("say one", "say two", "say three"):
            await server.say(origin, text)
        copy = await forked_from(server, origin, turns(origin)[1])
        assert prompts(copy) == ["say one", "say two"]
        view = copy.view().origin
        assert view is not None
        assert view.turn_id == turns(origin)[1]
        again = await forked_from(server, copy, turns(copy)[0])
        assert prompts(again) == ["say one"]


async def test_running_turn_and_its_calls_are_left_out(place: Workspace) -> None:
    """S3: a turn that is parked or runs is not copied, and cannot be named. A closed one is."""
    editor = ScriptedEditor(park := Park())
    async with practice_server(place, mode="ask", editor=editor) as server:
        origin = await server.session()
        await server.say(origin, "say one")
        accepted = await server.send(origin, "write b.txt with text")
        await park.wait_open()
        copy = await forked_from(server, origin)
        assert prompts(copy) == ["say one"]
        assert await refusal(server, origin.session_id, accepted.turn_id) == "invalidParams"
        park.answer_with("once")
        await server.ended(origin, accepted.turn_id)
        assert prompts(await forked_from(server, origin)) == ["say one", "write b.txt with text"]


async def test_turn_that_runs_in_another_process_is_left_out(place: Workspace) -> None:
    """S3: an origin that another process owns is read without its lock; its open turn runs there."""
    kill_in_turn(place, "say one\nwrite b.txt with text", carries("started"))
    async with practice_server(place, run=2) as server:
        with server.owned_elsewhere(SESSION):
            copy = await forked_from(server, SESSION)
            assert prompts(copy) == []
        copy = await forked_from(server, SESSION)
        assert prompts(copy) == ["say one\nwrite b.txt with text"]
        assert states(copy) == ["failed", "notRun"]


async def test_interrupted_call_has_the_words_of_its_verdict(place: Workspace) -> None:
    """S3, T2, C3: an origin that nobody opened since a kill is forked with what recovery would say; the fork has no
    uncertain attempt of its own and names the origin's [I3]. The origin's journal is not written."""
    kill_in_turn(place, "run echo hi", carries("result"))
    before = place.journal(SESSION)
    async with practice_server(place, run=2) as server:
        copy = await forked_from(server, SESSION)
        assert place.journal(SESSION) == before
        assert states(copy) == ["unknown"]
        assert copy.ledger.uncertain() == []
        (origin,) = copy.ledger.origins
        assert len(origin.attempts) == 1
        (reply,) = [one for one in outgoing_messages(copy.ledger) if isinstance(one, ReplyMessage)]
        assert origin.attempts[0] in reply.text


async def test_what_was_rewound_is_not_copied_and_cannot_be_named(place: Workspace) -> None:
    """S3, G4: the fork has the conversation as it is now."""
    async with practice_server(place) as server:
        origin = await server.session()
        await server.say(origin, "say one")
        await server.say(origin, "say two")
        second = turns(origin)[1]
        await rewind(origin, origin.epoch, second, "conversation")
        assert prompts(await forked_from(server, origin)) == ["say one"]
        assert await refusal(server, origin.session_id, second) == "invalidParams"


@pytest.mark.parametrize(
    ("origin_mode", "default", "expected"),
    [("auto", "ask", "ask"), ("plan", "auto", "plan"), ("edits", "auto", "edits"), ("auto", "plan", "plan")],
)
async def test_mode_is_the_stricter_of_the_origin_and_the_default(
    place: Workspace, origin_mode: Mode, default: Mode, expected: Mode
) -> None:
    """S3: plan before ask before edits before auto."""
    async with practice_server(place, mode=default) as server:
        origin = await server.session(origin_mode)
        assert (await forked_from(server, origin)).ledger.mode == expected


async def test_fork_knows_the_files_that_the_origin_read_and_wrote(place: Workspace) -> None:
    """V3, S3: a fork takes the readings that it copies: it may overwrite what the model wrote or read whole, and is
    refused where somebody changed it since. What was rewound in the fork counts no more."""
    place.write("b.txt", "b\n")
    place.write("c.txt", "c\n")
    answers = (
        asks(read("b.txt"), write("new.txt", "1\n")),
        says("done"),
        asks(write("b.txt", "b2\n")),
        asks(write("new.txt", "2\n")),
        says("done"),
        asks(write("a.txt", "never read\n")),
        says("done"),
    )
    editor = ScriptedEditor(somebody=False)
    async with scripted_server(place.base, *answers, editor=editor) as server:
        origin = await server.session("auto")
        await server.say(origin, "read and write")
        place.write("new.txt", "somebody's\n")
        copy = await forked_from(server, origin)
        await copy.set_mode("auto")
        await server.say(copy, "write both")
        assert states(copy) == ["returned", "returned", "returned", "refused"]
        assert place.content("b.txt") == "b2\n"
        assert place.content("new.txt") == "somebody's\n"
        await server.say(copy, "write a file that was never shown")
        assert states(copy)[-1] == "refused"


async def test_long_reply_is_stored_beside_the_fork_too(place: Workspace) -> None:
    """S3, J12: the whole reply stays readable when the origin is deleted. One that is missing is passed over."""
    async with practice_server(place) as server:
        origin = await server.session()
        await server.say(origin, "run seq 1 20000")
        (reply,) = [one for one in on_disk(origin) if isinstance(one, ToolResult)]
        assert reply.output is not None
        copy = await forked_from(server, origin)
        kept = Path(copy.path) / "outputs" / reply.output
        assert kept.read_bytes() == (Path(origin.path) / "outputs" / reply.output).read_bytes()
        (Path(origin.path) / "outputs" / reply.output).unlink()
        second = await forked_from(server, origin)
        assert not (Path(second.path) / "outputs").exists()


async def test_compaction_is_copied_and_cut_behind_the_forks_own_record(place: Workspace) -> None:
    """S3, K4: the fork of a compacted session sends what the origin sends, in a restart too; the cut names a record of
    the fork. A slash command stands at the cut and is not copied."""
    async with practice_server(place) as server:
        origin = await server.session()
        for text in ("show a.txt", "say two", "/help"):
            await server.say(origin, text)
        assert origin.epoch is not None
        done = await prompt_queue.compact(origin, origin.epoch, None)
        assert done.compacted
        await server.say(origin, "say three")
        copy = await forked_from(server, origin)
        sent = outgoing_messages(copy.ledger)
        assert sent == outgoing_messages(origin.ledger)
        assert "Summary" in sent[0].text
        (record,) = [one for one in on_disk(copy) if isinstance(one, Compaction)]
        assert record.epoch == copy.ledger.turns[turns(copy)[0]].epoch
        assert prompts(copy) == ["show a.txt", "say two", "say three"]
        early = await forked_from(server, origin, turns(origin)[0])
        assert not any(isinstance(one, Compaction) for one in on_disk(early))
        assert prompts(early) == ["show a.txt"]
    async with practice_server(place, run=2) as server:
        again = await server.opened(copy.session_id)
        assert outgoing_messages(again.ledger) == sent
        await rewind(again, again.epoch, turns(again)[0], "conversation")
        assert again.ledger.standing.record is None


# Refusals, in their order.


async def test_refusals_come_in_their_order(place: Workspace) -> None:
    """S3: params, unknownSession, journalBroken, then invalid params for the turn."""
    async with practice_server(place) as server:
        origin = await server.create()
        journal = journal_path(place.state, origin)
        assert await refusal(server, NOBODY, NOBODY, "x" * 201) == "invalidParams"
        assert await refusal(server, NOBODY, NOBODY) == "unknownSession"
        await server.registry.close(origin)
        content = journal.read_bytes()
        journal.unlink()
        journal.symlink_to("elsewhere")
        assert await refusal(server, origin, NOBODY) == "journalBroken"
        journal.unlink()
        journal.write_bytes(content[50:])
        assert await refusal(server, origin, NOBODY) == "journalBroken"
        journal.write_bytes(content)
        assert await refusal(server, origin, NOBODY) == "invalidParams"


async def test_disk_that_cannot_be_written_comes_before_a_turn_that_is_not_there(place: Workspace) -> None:
    """S3, J7: nothing can be written → journalBroken, whatever the turn."""
    full = MatchingFault(
        system_disk(), lambda one: one.verb == "make_folder" and ".fork" in one.target, errno.ENOSPC, times=None
    )
    async with practice_server(place) as server:
        origin = await server.create()
        await server.say(origin, "say one")
    async with practice_server(place, run=2, disk=full) as server:
        assert await refusal(server, origin, NOBODY) == "journalBroken"
        assert await refusal(server, origin) == "journalBroken"


def newer(content: bytes) -> bytes:
    """The journal with one more line, of a newer version."""
    loaded = read_journal(content)
    line, _ = write_line(ModeSet(mode="ask"), loaded.next_seq, loaded.last_sum, "2026-01-01T00:00:00.000Z")
    body = line[18:-1].replace(b'"v":1', b'"v":2')
    return content + b'{"sum":"%08x",' % zlib.crc32(body) + body + b"\n"


async def test_origin_of_a_newer_version_is_not_forked(place: Workspace) -> None:
    """S3, J13: what a newer version recorded is not understood, so no copy of it is made."""
    async with practice_server(place) as server:
        origin = await server.create()
        await server.registry.close(origin)
        path = journal_path(place.state, origin)
        path.write_bytes(newer(path.read_bytes()))
        assert await refusal(server, origin) == "journalBroken"


async def test_history_above_the_bound_is_refused_and_an_earlier_turn_is_not(
    place: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3, [I13]: 64 MiB of journal and stored replies together."""
    assert forked.FORK_BYTES_MAX == 64 * 1024 * 1024
    monkeypatch.setattr(forked, "FORK_BYTES_MAX", 40_000)
    async with practice_server(place) as server:
        origin = await server.session()
        await server.say(origin, "say one")
        await server.say(origin, "run seq 1 20000")
        assert await refusal(server, origin.session_id) == "invalidParams"
        assert prompts(await forked_from(server, origin, turns(origin)[0])) == ["say one"]


async def test_what_a_killed_maker_left_is_not_listed_and_is_removed_by_the_next_fork(place: Workspace) -> None:
    """S3: a folder beside is no session. One whose maker lives is left alone."""
    left = place.state / "sessions" / f".{NOBODY}.fork"
    async with practice_server(place) as server:
        origin = await server.create()
        (left / "outputs").mkdir(parents=True)
        (left / "outputs" / "half").write_bytes(b"x")
        assert names(server.registry.context) == [origin]
        await forked_from(server, origin)
        assert not left.exists()
        left.mkdir()
        disk = server.registry.context.disk
        folder = disk.open_folder(str(left))
        lock = disk.lock(folder, "owner.lock")
        assert lock is not None
        await forked_from(server, origin)
        assert left.exists()
        lock.release()
        disk.close(folder)


async def test_title_of_the_user_is_kept(place: Workspace) -> None:
    """S3: a given title is the user's; an untitled origin gives an untitled fork."""
    async with practice_server(place) as server:
        origin = await server.create()
        named = await fork(server.registry, origin, None, " Another \n way ")
        assert (named.title, named.title_source) == ("Another way", "user")
        plain = await fork(server.registry, origin, None, None)
        assert (plain.title, plain.title_source) == ("", "none")
