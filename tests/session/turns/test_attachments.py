"""Attachments of a prompt: stored as sent, read once when the turn begins, repeated unchanged in every later request
(rows D1, G5, P4)."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from steadyhand.domain.errors import Refused
from steadyhand.domain.model import attachment_text
from steadyhand.domain.model.messages import UserMessage
from steadyhand.domain.permissions.rules import PermissionRule, PermissionRules
from steadyhand.domain.permissions.rules import parse_rule as parse
from steadyhand.domain.records.prompt import (
    Attachment,
    FileAttachment,
    ProblemsAttachment,
    Prompt,
    SelectionAttachment,
    TextAttachment,
)
from steadyhand.domain.records.record import Attached, Queue, User
from steadyhand.domain.settings import Settings
from steadyhand.domain.text.positions import Position, PositionEncoding, Range
from steadyhand.domain.views.types import TurnEnded, Warned
from steadyhand.ports.editor import OpenDocument
from steadyhand.session.service import prompt_queue
from steadyhand.session.session import Session
from steadyhand.tools.registry import SUBJECTS
from steadyhand.tools.workspace import attached_file
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import asks, read, says, write
from tests.support.session_state import kinds, on_disk
from tests.support.waiting import Gate, until

pytestmark = pytest.mark.anyio

SOME_TEXT = TextAttachment("notes", "one\ntwo")


def text_range(line: int, character: int, end_line: int, end_character: int) -> Range:
    return Range(Position(line, character), Position(end_line, end_character))


def file_attachment(path: str, where: Range | None = None) -> FileAttachment:
    return FileAttachment(path, where)


async def send(session: Session, sent: Prompt, name: str = "c1") -> prompt_queue.Accepted:
    return await prompt_queue.submit(session, session.epoch, name, sent)


async def attached_text(
    stage: InProcessServer, session: Session, *attached: Attachment, encoding: PositionEncoding = "utf-16"
) -> str:
    """Send one prompt with these attachments, and return the text that the model gets behind it."""
    accepted = await send(session, Prompt("look", attached, encoding=encoding), f"c{len(session.ledger.prompts)}")
    assert await stage.ended(session, accepted.turn_id) == TurnEnded("done", ())
    message = [one for one in stage.model.requests[-1].messages if isinstance(one, UserMessage)][-1]
    assert message.text == "look"
    assert message.whole == f"look\n\n{message.attached}"
    return message.attached


def parse_rule(text: str) -> PermissionRule:
    found = parse(text, SUBJECTS)
    assert isinstance(found, PermissionRule)
    return found


def warnings(stage: InProcessServer) -> list[str]:
    return [notification.event.text for notification in stage.numbered() if isinstance(notification.event, Warned)]


# What the model gets.


async def test_attachments_of_each_kind_reach_the_model_in_order(tmp_path: Path) -> None:
    """Row G5: The model gets a file's content, a selection with its location, and a text. A fence that its content
    cannot close encloses each."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        (stage.root / "a.py").write_bytes(b"x = 1\r\ny = 2\r\n")
        fence = TextAttachment("```\n[Attached 9", "before\n```\nafter")
        uri = (stage.root / "src/b c.py").as_uri()
        selection = SelectionAttachment(uri, text_range(2, 4, 4, 0), "def f():\n")
        assert await attached_text(stage, session, file_attachment("a.py"), selection, fence) == (
            "[Attached 1 of 3: file a.py]\n```\nx = 1\ny = 2\n```\n"
            "[Attached 2 of 3: selection in src/b c.py, lines 3 to 4]\n```\ndef f():\n```\n"
            "[Attached 3 of 3: ``` [Attached 9]\n````\nbefore\n```\nafter\n````"
        )
        assert warnings(stage) == []


@pytest.mark.parametrize(("encoding", "start", "end"), [("utf-16", 3, 5), ("utf-8", 6, 8), ("utf-32", 2, 4)])
async def test_file_range_counts_in_negotiated_encoding(
    tmp_path: Path, encoding: PositionEncoding, start: int, end: int
) -> None:
    """Row G5, docs/protocol.md: The model gets only the range, counted in units of the negotiated encoding, after a
    byte order mark and a wide character."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        (stage.root / "a.txt").write_bytes("\ufeffé\U0001d11ebcd\nnext\n".encode())
        attached = file_attachment("a.txt", text_range(0, start, 0, end))
        assert await attached_text(stage, session, attached, encoding=encoding) == (
            "[Attached 1 of 1: file a.txt, line 1]\n```\nbc\n```"
        )


async def test_file_with_unsaved_changes_comes_from_the_editor(tmp_path: Path) -> None:
    """Row V1: The server takes a document with unsaved changes from the editor, and a document without from disk."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        for name in ("a.txt", "b.txt"):
            (stage.root / name).write_text("disk\n")
        documents = stage.editor.documents
        documents[str(stage.root / "a.txt")] = OpenDocument("unsaved\n", 2, True)
        documents[str(stage.root / "b.txt")] = OpenDocument("mirror\n", 2, False)
        documents[str(stage.root / "new.txt")] = OpenDocument("not on disk\n", 1, True)
        assert await attached_text(
            stage,
            session,
            file_attachment("a.txt"),
            file_attachment("b.txt"),
            file_attachment("new.txt", text_range(0, 0, 0, 3)),
        ) == (
            "[Attached 1 of 3: file a.txt, with the unsaved changes in the editor]\n```\nunsaved\n```\n"
            "[Attached 2 of 3: file b.txt]\n```\ndisk\n```\n"
            "[Attached 3 of 3: file new.txt, line 1, with the unsaved changes in the editor]\n```\nnot\n```"
        )


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("missing.txt", "does not exist"),
        ("folder", "is a folder"),
        ("../outside.txt", "outside the workspace"),
        ("link.txt", "outside the workspace"),
        ("binary.bin", "binary"),
        ("large.txt", "the limit is 262144"),
        ("empty.txt", "is empty"),
        (".env.local", "looks like a secret's"),
        ("deploy.pem", "looks like a secret's"),
        ("harmless.txt", "looks like a secret's"),
        (".vscode/settings.json", "is a protected file"),
        ("../state/sessions", "belongs to Steadyhand"),
        ("", "The path is empty"),
        ("nul\0", "NUL"),
    ],
)
async def test_refused_attachment_is_replaced_by_its_reason(tmp_path: Path, path: str, why: str) -> None:
    """Rows E3, G5, cases 103, 104: A sentence takes the attachment's place and the user gets a warning. The model
    gets nothing of the content."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        (tmp_path / "outside.txt").write_text("kept back")
        (stage.root / "link.txt").symlink_to(tmp_path / "outside.txt")
        (stage.root / "folder").mkdir()
        (stage.root / ".vscode").mkdir()
        for name in (".env.local", "deploy.pem", ".vscode/settings.json"):
            (stage.root / name).write_text("kept back")
        (stage.root / "harmless.txt").symlink_to(".env.local")
        (stage.root / "binary.bin").write_bytes(b"\x7fELF\x00kept back")
        (stage.root / "large.txt").write_bytes(b"kept back\n" * 30_000)
        (stage.root / "empty.txt").write_bytes(b"")
        text = await attached_text(stage, session, file_attachment(path), SOME_TEXT)
        assert text.startswith("[Attached 1 of 2: file")
        assert why in text.split("\n")[1]
        assert "kept back" not in text
        assert text.endswith("[Attached 2 of 2: notes]\n```\none\ntwo\n```")
        assert len(warnings(stage)) == 1
        assert why in warnings(stage)[0]


async def test_range_of_large_file_is_read_up_to_the_search_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row G5: The bound applies to the text that the model gets. Above a second bound the server does not search a
    file for the range."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        (stage.root / "large.txt").write_bytes(b"line\n" * 100_000)
        attached = file_attachment("large.txt", text_range(99_998, 0, 99_999, 4))
        assert "```\nline\nline\n```" in await attached_text(stage, session, attached)
        assert "no text in that range" in await attached_text(
            stage, session, file_attachment("large.txt", text_range(200_000, 0, 200_001, 0))
        )
        monkeypatch.setattr(attached_file, "WHOLE_BYTES_MAX", 1000)
        assert "larger than 1000 bytes" in await attached_text(stage, session, attached)


async def test_attachment_above_total_bound_is_left_out_with_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row G5, [I13]: The server leaves out an attachment that does not fit, and warns. A smaller one may still fit."""
    monkeypatch.setattr(attachment_text, "GIVEN_BYTES_MAX", 10)
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        every = (TextAttachment("a", "x" * 8), TextAttachment("b", "y" * 8), TextAttachment("c", "z" * 2))
        text = await attached_text(stage, session, *every)
        assert ("xxxxxxxx" in text, "yy" in text, "zz" in text) == (True, False, True)
        assert warnings(stage) == [
            "b: It is not given. The attachments of one prompt have at most 10 bytes in all, and it does not fit."
        ]


async def test_problems_attachment_lists_the_servers_own_problems(tmp_path: Path) -> None:
    """Row G5: The model gets what is uncertain here, and that the server does not see what other language servers
    report. The text is never empty."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        uri = (stage.root / "a.txt").as_uri()
        text = await attached_text(
            stage, session, ProblemsAttachment(), ProblemsAttachment(uri), ProblemsAttachment("untitled:X")
        )
        assert "[Attached 1 of 3: problems]\nSteadyhand does not see what other language servers report" in text
        assert "[Attached 2 of 3: problems in a.txt]\nSteadyhand" in text
        assert "[Attached 3 of 3: problems in untitled:X]\nSteadyhand" in text
        assert len(warnings(stage)) == 3


async def test_file_attachment_without_folder_is_refused_text_is_not(tmp_path: Path) -> None:
    """Row S7: Without a folder there are no files to attach, and the server says so. A text still reaches the model."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session(folder=False)
        text = await attached_text(stage, session, file_attachment("a.txt"), SOME_TEXT)
        assert "No folder is open" in text
        assert "one\ntwo" in text


# Read once, repeated unchanged.


async def test_attached_text_is_identical_in_every_later_request(tmp_path: Path) -> None:
    """Rows P4, T5: The text is the same, byte for byte, within the turn, in the next turn and after a restart,
    although the file changed."""
    async with scripted_server(tmp_path, asks(read("a.txt")), says("1"), says("2")) as stage:
        session = await stage.session()
        (stage.root / "a.txt").write_text("then\n")
        first = await attached_text(stage, session, file_attachment("a.txt"))
        (stage.root / "a.txt").write_text("changed\n")
        await stage.say(session, "and now?", "c9")
        requests = stage.model.requests
        assert [request.messages[0] for request in requests] == [requests[0].messages[0]] * 3
        assert "then" in first
        for before, after in pairwise(requests):
            assert after.messages[: len(before.messages)] == before.messages
        state = stage.crashed(tmp_path / "later")
        sent = requests[-1].messages
    (tmp_path / "ws" / "a.txt").unlink()
    async with scripted_server(tmp_path, state=state, run=2) as stage:
        again = await stage.opened(session.session_id)
        await stage.say(again, "again", "c10")
        assert stage.model.requests[0].messages[: len(sent)] == sent
        assert kinds(again).count("attached") == 1


async def test_attached_text_is_durable_before_the_first_request(tmp_path: Path) -> None:
    """Row P4, [I1]: The journal holds the record when the server asks the model for the first time."""
    gate = Gate()
    async with scripted_server(tmp_path, [gate, *says("ok")]) as stage:
        session = await stage.session()
        accepted = await send(session, Prompt("look", (SOME_TEXT,)))
        await gate.wait_reached()
        assert [record.text for record in on_disk(session) if isinstance(record, Attached)] == [
            "[Attached 1 of 1: notes]\n```\none\ntwo\n```"
        ]
        gate.go.set()
        await stage.ended(session, accepted.turn_id)


async def test_attachments_unread_at_a_kill_are_never_read(tmp_path: Path) -> None:
    """Rows P4, C8: If a kill comes before the server reads the attachments, it does not read them later. The history
    says so."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        user = User(
            turn_id="a" * 32,
            message_id="b" * 32,
            client_message_id="c1",
            text="look",
            attachments=(file_attachment("a.txt"),),
        )
        await session.log.append([user], barrier=True)
        state = stage.crashed(tmp_path / "later")
    (tmp_path / "ws" / "a.txt").write_text("later\n")
    async with scripted_server(tmp_path, state=state, run=2) as stage:
        again = await stage.opened(session.session_id)
        await stage.say(again, "go on", "c2")
        first = stage.model.requests[0].messages[0]
        assert isinstance(first, UserMessage)
        assert first.whole == f"look\n\n{attachment_text.NEVER_READ}"


# Stored as sent.


async def test_attachments_show_as_sent_in_messages_and_queue(tmp_path: Path) -> None:
    """Rows D1, J1: Message and queue show the attachments as sent. They are durable with the prompt and survive a
    restart."""
    gate = Gate()
    attached = (file_attachment("a.txt", text_range(1, 2, 3, 4)), SOME_TEXT, ProblemsAttachment())
    async with scripted_server(tmp_path, [gate]) as stage:
        session = await stage.session()
        await send(session, Prompt("one", attached), "c1")
        await gate.wait_reached()
        queued = await send(session, Prompt("two", attached, encoding="utf-8"), "c2")
        assert queued.queued
        (waiting,) = [record for record in on_disk(session) if isinstance(record, Queue)]
        assert (waiting.attachments, waiting.encoding) == (attached, "utf-8")
        assert session.queue()[0].attachments == attached
        state = stage.crashed(tmp_path / "later")
    async with scripted_server(tmp_path, says("2"), state=state, run=2) as stage:
        view = await stage.registry.open(session.session_id, 9)
        assert [message.attachments for message in view.messages] == [attached]
        assert [(item.attachments, item.paused) for item in view.queue] == [(attached, True)]
        again = await stage.opened(session.session_id)
        assert again.epoch is not None
        await prompt_queue.resume(again, again.epoch)
        await stage.ended(again, queued.turn_id)
        begun = [record for record in on_disk(again) if isinstance(record, User)]
        assert [(record.attachments, record.encoding) for record in begun] == [
            (attached, "utf-16"),
            (attached, "utf-8"),
        ]
        message = stage.model.requests[0].messages[-1]
        assert isinstance(message, UserMessage)
        assert "one\ntwo" in message.attached


async def test_edited_prompt_keeps_its_attachments(tmp_path: Path) -> None:
    """Row S4: An edit replaces only the text. The server still knows the prompt as it was sent."""
    gate = Gate()
    async with scripted_server(tmp_path, [gate, *says("1")], says("2")) as stage:
        session = await stage.session()
        await send(session, Prompt("one"), "c1")
        sent = Prompt("two", (SOME_TEXT,))
        accepted = await send(session, sent, "c2")
        await prompt_queue.edit_queue(session, "c2", "TWO", False)
        assert [(item.text, item.attachments) for item in session.queue()] == [("TWO", (SOME_TEXT,))]
        assert (await send(session, sent, "c2")).duplicate
        gate.go.set()
        await stage.ended(session, accepted.turn_id)
        assert [message.text for message in stage.model.requests[1].messages if isinstance(message, UserMessage)] == [
            "one", "TWO",
        ]  # fmt: skip
        assert (await send(session, sent, "c2")).duplicate


async def test_known_id_with_other_attachments_is_refused(tmp_path: Path) -> None:
    """Row D1: The same attachments again are a duplicate in any encoding. Other attachments, or another kind of
    turn, are refused."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        first = await send(session, Prompt("one", (SOME_TEXT,)))
        await stage.ended(session, first.turn_id)
        again = await send(session, Prompt("one", (TextAttachment("notes", "one\ntwo"),), encoding="utf-8"))
        assert (again.turn_id, again.duplicate) == (first.turn_id, True)
        others = ((), (SOME_TEXT, SOME_TEXT), (TextAttachment("notes", "other"),), (file_attachment("notes"),))
        for other in (*(Prompt("one", attached) for attached in others), Prompt("one", (SOME_TEXT,), aside=True)):
            with pytest.raises(Refused) as refused:
                await send(session, other)
            assert refused.value.kind == "invalidParams"
            assert refused.value.more["errors"] == [
                {"path": "$.clientMessageId", "message": "already used for another prompt, of the same text"}
            ]
        assert len(stage.model.requests) == 1


@pytest.mark.parametrize("line", ["/help", "/nonsense"])
async def test_slash_command_ignores_attachments_with_a_warning(tmp_path: Path, line: str) -> None:
    """Row G5: The server answers the command, warns the user and reads nothing."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        accepted = await send(session, Prompt(line, (file_attachment("missing.txt"),)))
        assert await stage.ended(session, accepted.turn_id) == TurnEnded("done", ())
        assert warnings(stage) == ["The attachments are not used: a slash command asks no model."]
        assert stage.model.requests == []
        assert "attached" not in kinds(session)


async def test_stop_before_first_request_keeps_prompt_and_attachments(tmp_path: Path) -> None:
    """Row G8: A turn that is stopped before its first request asks no model, and its prompt keeps its attachments."""
    async with scripted_server(tmp_path, asks(write("a.txt", "1"))) as stage:
        session = await stage.session()
        accepted = await send(session, Prompt("look", (SOME_TEXT,)))
        await prompt_queue.cancel(session, accepted.turn_id)
        assert (await stage.ended(session, accepted.turn_id)).reason == "cancelled"
        await until(lambda: not session.view().busy)
        assert stage.content("a.txt") is None
        assert session.messages(9)[0][0].attachments == (SOME_TEXT,)


@pytest.mark.parametrize(
    ("lists", "why"),
    [
        ({"deny": "read_file(*.txt)"}, "The rule “read_file(*.txt)” in permissions.deny forbids it."),
        (
            {"ask": "*(docs/**)"},
            "Reading it needs your permission: the rule “*(docs/**)” in permissions.ask requires it.",
        ),
    ],
)
async def test_file_that_a_rule_denies_or_asks_about_is_not_attached(
    tmp_path: Path, lists: dict[str, str], why: str
) -> None:
    """Row G2: The server does not attach what a rule denies, nor what a rule asks about, since it asks nobody."""
    rule_lists = {name: (parse_rule(text),) for name, text in lists.items()}
    async with scripted_server(tmp_path, settings=Settings(rules=PermissionRules(**rule_lists))) as stage:
        session = await stage.session()
        (stage.root / "docs").mkdir()
        (stage.root / "docs" / "a.txt").write_text("kept back")
        (stage.root / "b.md").write_text("given")
        text = await attached_text(stage, session, file_attachment("docs/a.txt"), file_attachment("b.md"))
        assert why in text
        assert ("kept back" in text, "given\n" in text) == (False, True)
