"""Attachments of a prompt: kept as sent, read once when the turn begins, told the same for ever (rows D1, G5, P4)."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from steadyhand.core import given
from steadyhand.core.model import UserMessage
from steadyhand.core.prompt import (
    Attachment,
    FileAttachment,
    ProblemsAttachment,
    Prompt,
    SelectionAttachment,
    TextAttachment,
)
from steadyhand.core.record import Attached, Queue, User
from steadyhand.core.refusal import Refused
from steadyhand.core.rules import Rule, Rules, parse
from steadyhand.core.settings import Settings
from steadyhand.core.text_positions import Position, PositionEncoding, Range
from steadyhand.core.views import TurnEnded, Warned
from steadyhand.ports import OpenDocument
from steadyhand.session import desk, prompts
from steadyhand.session.owner import Owner
from steadyhand.tools import attached_file
from steadyhand.tools.catalogue import SUBJECTS
from tests.support.scripted import Gate, Stage, asks, kinds, on_disk, read, says, staged, until, write

pytestmark = pytest.mark.anyio

SOME_TEXT = TextAttachment("notes", "one\ntwo")


def place(line: int, character: int, end_line: int, end_character: int) -> Range:
    return Range(Position(line, character), Position(end_line, end_character))


def of_file(path: str, where: Range | None = None) -> FileAttachment:
    return FileAttachment(path, where)


async def send(owner: Owner, sent: Prompt, name: str = "c1") -> prompts.Accepted:
    return await prompts.prompt(owner, owner.epoch, name, sent)


async def told(stage: Stage, owner: Owner, *attached: Attachment, encoding: PositionEncoding = "utf-16") -> str:
    """What the model is given behind the text of one prompt with these."""
    accepted = await send(owner, Prompt("look", attached, encoding=encoding), f"c{len(owner.ledger.prompts)}")
    assert await stage.ended(owner, accepted.turn_id) == TurnEnded("done", ())
    message = [one for one in stage.model.requests[-1].messages if isinstance(one, UserMessage)][-1]
    assert message.text == "look"
    assert message.whole == f"look\n\n{message.attached}"
    return message.attached


def rule(text: str) -> Rule:
    found = parse(text, SUBJECTS)
    assert isinstance(found, Rule)
    return found


def warned(stage: Stage) -> list[str]:
    return [told.event.text for told in stage.numbered() if isinstance(told.event, Warned)]


# --- what the model is told ---------------------------------------------------------------------------------------


async def test_each_kind_in_the_order_it_was_sent(tmp_path: Path) -> None:
    """Row G5: a file's content, a selection with its place, a text; each in a fence that it cannot close."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        (stage.root / "a.py").write_bytes(b"x = 1\r\ny = 2\r\n")
        fence = TextAttachment("```\n[Attached 9", "before\n```\nafter")
        uri = (stage.root / "src/b c.py").as_uri()
        selection = SelectionAttachment(uri, place(2, 4, 4, 0), "def f():\n")
        assert await told(stage, owner, of_file("a.py"), selection, fence) == (
            "[Attached 1 of 3: file a.py]\n```\nx = 1\ny = 2\n```\n"
            "[Attached 2 of 3: selection in src/b c.py, lines 3 to 4]\n```\ndef f():\n```\n"
            "[Attached 3 of 3: ``` [Attached 9]\n````\nbefore\n```\nafter\n````"
        )
        assert warned(stage) == []


@pytest.mark.parametrize(("encoding", "start", "end"), [("utf-16", 3, 5), ("utf-8", 6, 8), ("utf-32", 2, 4)])
async def test_a_range_counts_as_the_editor_does(
    tmp_path: Path, encoding: PositionEncoding, start: int, end: int
) -> None:
    """Row G5, wire.md: the range alone is given, in units of the negotiated encoding, past a mark and a wide letter."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        (stage.root / "a.txt").write_bytes("\ufeffé\U0001d11ebcd\nnext\n".encode())
        attached = of_file("a.txt", place(0, start, 0, end))
        assert await told(stage, owner, attached, encoding=encoding) == (
            "[Attached 1 of 1: file a.txt, line 1]\n```\nbc\n```"
        )


async def test_unsaved_text_is_what_the_editor_shows(tmp_path: Path) -> None:
    """Row V1: a document with unsaved changes is given as the editor has it, one without from disk."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        for name in ("a.txt", "b.txt"):
            (stage.root / name).write_text("disk\n")
        documents = stage.editor.documents
        documents[str(stage.root / "a.txt")] = OpenDocument("unsaved\n", 2, True)
        documents[str(stage.root / "b.txt")] = OpenDocument("mirror\n", 2, False)
        documents[str(stage.root / "new.txt")] = OpenDocument("not on disk\n", 1, True)
        assert await told(stage, owner, of_file("a.txt"), of_file("b.txt"), of_file("new.txt", place(0, 0, 0, 3))) == (
            "[Attached 1 of 3: file a.txt, as it stands in the editor with unsaved changes]\n```\nunsaved\n```\n"
            "[Attached 2 of 3: file b.txt]\n```\ndisk\n```\n"
            "[Attached 3 of 3: file new.txt, line 1, as it stands in the editor with unsaved changes]\n```\nnot\n```"
        )


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("missing.txt", "does not exist"),
        ("folder", "is a folder"),
        ("../outside.txt", "outside the workspace"),
        ("link.txt", "outside the workspace"),
        ("binary.bin", "binary"),
        ("large.txt", "at most 262144 are given"),
        ("empty.txt", "is empty"),
        (".env.local", "looks like that of a secret"),
        ("deploy.pem", "looks like that of a secret"),
        ("harmless.txt", "looks like that of a secret"),
        (".vscode/settings.json", "is a protected file"),
        ("../state/sessions", "belongs to Steadyhand"),
        ("", "The path is empty"),
        ("nul\0", "NUL"),
    ],
)
async def test_what_is_not_given_says_why(tmp_path: Path, path: str, why: str) -> None:
    """Rows E3, G5, cases 103, 104: a sentence in its place and a warning to the person; nothing of it goes out."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
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
        text = await told(stage, owner, of_file(path), SOME_TEXT)
        assert text.startswith("[Attached 1 of 2: file")
        assert why in text.split("\n")[1]
        assert "kept back" not in text
        assert text.endswith("[Attached 2 of 2: notes]\n```\none\ntwo\n```")
        assert len(warned(stage)) == 1
        assert why in warned(stage)[0]


async def test_a_range_of_a_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row G5: the bound is of what is given; beyond another one a file is not searched for a range."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        (stage.root / "large.txt").write_bytes(b"line\n" * 100_000)
        attached = of_file("large.txt", place(99_998, 0, 99_999, 4))
        assert "```\nline\nline\n```" in await told(stage, owner, attached)
        assert "nothing at that place" in await told(stage, owner, of_file("large.txt", place(200_000, 0, 200_001, 0)))
        monkeypatch.setattr(attached_file, "whole_bytes_max", 1000)
        assert "larger than 1000 bytes" in await told(stage, owner, attached)


async def test_what_one_prompt_gives_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row G5, [I13]: what does not fit any more is left out and said; what is smaller may still fit."""
    monkeypatch.setattr(given, "given_bytes_max", 10)
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        every = (TextAttachment("a", "x" * 8), TextAttachment("b", "y" * 8), TextAttachment("c", "z" * 2))
        text = await told(stage, owner, *every)
        assert ("xxxxxxxx" in text, "yy" in text, "zz" in text) == (True, False, True)
        assert warned(stage) == [
            "b: It is not given. The attachments of one prompt give at most 10 bytes, and it does not fit any more."
        ]


async def test_problems_are_the_servers_own(tmp_path: Path) -> None:
    """Row G5: what is uncertain here is told, and that nothing of other language servers is seen; never silence."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        uri = (stage.root / "a.txt").as_uri()
        text = await told(stage, owner, ProblemsAttachment(), ProblemsAttachment(uri), ProblemsAttachment("untitled:X"))
        assert "[Attached 1 of 3: problems]\nWhat other language servers report is not seen here" in text
        assert "[Attached 2 of 3: problems in a.txt]\nWhat" in text
        assert "[Attached 3 of 3: problems in untitled:X]\nWhat" in text
        assert len(warned(stage)) == 3


async def test_without_a_folder(tmp_path: Path) -> None:
    """Row S7: there are no files to attach, and that is said; a text is given all the same."""
    async with staged(tmp_path) as stage:
        owner = await stage.session(folder=False)
        text = await told(stage, owner, of_file("a.txt"), SOME_TEXT)
        assert "No folder is open" in text
        assert "one\ntwo" in text


# --- once, and the same for ever ----------------------------------------------------------------------------------


async def test_every_later_request_repeats_it(tmp_path: Path) -> None:
    """Rows P4, T5: byte for byte within the turn, in the next one and after a restart, though the file changed."""
    async with staged(tmp_path, asks(read("a.txt")), says("1"), says("2")) as stage:
        owner = await stage.session()
        (stage.root / "a.txt").write_text("then\n")
        first = await told(stage, owner, of_file("a.txt"))
        (stage.root / "a.txt").write_text("changed\n")
        await stage.say(owner, "and now?", "c9")
        requests = stage.model.requests
        assert [request.messages[0] for request in requests] == [requests[0].messages[0]] * 3
        assert "then" in first
        for before, after in pairwise(requests):
            assert after.messages[: len(before.messages)] == before.messages
        state = stage.crashed(tmp_path / "later")
        sent = requests[-1].messages
    (tmp_path / "ws" / "a.txt").unlink()
    async with staged(tmp_path, state=state, life=2) as stage:
        again = await stage.opened(owner.session_id)
        await stage.say(again, "again", "c10")
        assert stage.model.requests[0].messages[: len(sent)] == sent
        assert kinds(again).count("attached") == 1


async def test_what_is_told_is_durable_before_it_goes_out(tmp_path: Path) -> None:
    """Row P4, [I1]: the record stands in the journal when the model is asked for the first time."""
    gate = Gate()
    async with staged(tmp_path, [gate, *says("ok")]) as stage:
        owner = await stage.session()
        accepted = await send(owner, Prompt("look", (SOME_TEXT,)))
        await gate.wait_reached()
        assert [record.text for record in on_disk(owner) if isinstance(record, Attached)] == [
            "[Attached 1 of 1: notes]\n```\none\ntwo\n```"
        ]
        gate.go.set()
        await stage.ended(owner, accepted.turn_id)


async def test_a_turn_that_asked_nobody(tmp_path: Path) -> None:
    """Rows P4, C8: killed before its attachments were read, nothing is read later; the history says so."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        user = User("a" * 32, "b" * 32, "c1", "look", attachments=(of_file("a.txt"),))
        await owner.append([user], barrier=True)
        state = stage.crashed(tmp_path / "later")
    (tmp_path / "ws" / "a.txt").write_text("later\n")
    async with staged(tmp_path, state=state, life=2) as stage:
        again = await stage.opened(owner.session_id)
        await stage.say(again, "go on", "c2")
        first = stage.model.requests[0].messages[0]
        assert isinstance(first, UserMessage)
        assert first.whole == f"look\n\n{given.NEVER_READ}"


# --- as it was sent -----------------------------------------------------------------------------------------------


async def test_attachments_are_shown_as_they_were_sent(tmp_path: Path) -> None:
    """Rows D1, J1: in the message, the queue and the export, durable with the prompt, over a restart."""
    gate = Gate()
    attached = (of_file("a.txt", place(1, 2, 3, 4)), SOME_TEXT, ProblemsAttachment())
    async with staged(tmp_path, [gate]) as stage:
        owner = await stage.session()
        await send(owner, Prompt("one", attached), "c1")
        await gate.wait_reached()
        queued = await send(owner, Prompt("two", attached, encoding="utf-8"), "c2")
        assert queued.queued
        (waiting,) = [record for record in on_disk(owner) if isinstance(record, Queue)]
        assert (waiting.attachments, waiting.encoding) == (attached, "utf-8")
        assert owner.queue()[0].attachments == attached
        state = stage.crashed(tmp_path / "later")
    async with staged(tmp_path, says("2"), state=state, life=2) as stage:
        view = await stage.house.open(owner.session_id, 9)
        assert [message.attachments for message in view.messages] == [attached]
        assert [(item.attachments, item.paused) for item in view.queue] == [(attached, True)]
        again = await stage.opened(owner.session_id)
        assert again.epoch is not None
        await prompts.resume(again, again.epoch)
        await stage.ended(again, queued.turn_id)
        begun = [record for record in on_disk(again) if isinstance(record, User)]
        assert [(record.attachments, record.encoding) for record in begun] == [
            (attached, "utf-16"),
            (attached, "utf-8"),
        ]
        message = stage.model.requests[0].messages[-1]
        assert isinstance(message, UserMessage)
        assert "one\ntwo" in message.attached


async def test_an_edited_prompt_keeps_its_attachments(tmp_path: Path) -> None:
    """Row S4: its text alone is another one; it is still known as it was sent."""
    gate = Gate()
    async with staged(tmp_path, [gate, *says("1")], says("2")) as stage:
        owner = await stage.session()
        await send(owner, Prompt("one"), "c1")
        sent = Prompt("two", (SOME_TEXT,))
        accepted = await send(owner, sent, "c2")
        await desk.edit_queue(owner, "c2", "TWO", False)
        assert [(item.text, item.attachments) for item in owner.queue()] == [("TWO", (SOME_TEXT,))]
        assert (await send(owner, sent, "c2")).duplicate
        gate.go.set()
        await stage.ended(owner, accepted.turn_id)
        assert [message.text for message in stage.model.requests[1].messages if isinstance(message, UserMessage)] == [
            "one", "TWO",
        ]  # fmt: skip
        assert (await send(owner, sent, "c2")).duplicate


async def test_the_same_id_with_other_attachments(tmp_path: Path) -> None:
    """Row D1: the same ones again are a duplicate in any encoding; others, or another kind of turn, are refused."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        first = await send(owner, Prompt("one", (SOME_TEXT,)))
        await stage.ended(owner, first.turn_id)
        again = await send(owner, Prompt("one", (TextAttachment("notes", "one\ntwo"),), encoding="utf-8"))
        assert (again.turn_id, again.duplicate) == (first.turn_id, True)
        others = ((), (SOME_TEXT, SOME_TEXT), (TextAttachment("notes", "other"),), (of_file("notes"),))
        for other in (*(Prompt("one", attached) for attached in others), Prompt("one", (SOME_TEXT,), aside=True)):
            with pytest.raises(Refused) as refused:
                await send(owner, other)
            assert refused.value.kind == "invalidParams"
            assert refused.value.more["errors"] == [
                {"path": "$.clientMessageId", "message": "already used for another prompt, of the same text"}
            ]
        assert len(stage.model.requests) == 1


@pytest.mark.parametrize("line", ["/help", "/nonsense"])
async def test_a_slash_command_uses_none(tmp_path: Path, line: str) -> None:
    """Row G5: it is answered all the same, the person is told, and nothing is read."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        accepted = await send(owner, Prompt(line, (of_file("missing.txt"),)))
        assert await stage.ended(owner, accepted.turn_id) == TurnEnded("done", ())
        assert warned(stage) == ["What is attached is not used: a slash command asks no model."]
        assert stage.model.requests == []
        assert "attached" not in kinds(owner)


async def test_stopping_while_attachments_are_read(tmp_path: Path) -> None:
    """Row G8: a turn stopped before its first request asks nobody, and its prompt stays with what was attached."""
    async with staged(tmp_path, asks(write("a.txt", "1"))) as stage:
        owner = await stage.session()
        accepted = await send(owner, Prompt("look", (SOME_TEXT,)))
        await prompts.cancel(owner, accepted.turn_id)
        assert (await stage.ended(owner, accepted.turn_id)).reason == "cancelled"
        await until(lambda: not owner.view().busy)
        assert stage.content("a.txt") is None
        assert owner.messages(9)[0][0].attachments == (SOME_TEXT,)


@pytest.mark.parametrize(
    ("lists", "why"),
    [
        ({"deny": "read_file(*.txt)"}, "The rule “read_file(*.txt)” in permissions.deny forbids it."),
        ({"ask": "*(docs/**)"}, "Reading it is asked about first: the rule “*(docs/**)” in permissions.ask wants it."),
    ],
)
async def test_rules_for_reading_hold(tmp_path: Path, lists: dict[str, str], why: str) -> None:
    """Row G2: what a rule denies or asks about is not attached either, since nobody is asked."""
    kept = {name: (rule(text),) for name, text in lists.items()}
    async with staged(tmp_path, settings=Settings(rules=Rules(**kept))) as stage:
        owner = await stage.session()
        (stage.root / "docs").mkdir()
        (stage.root / "docs" / "a.txt").write_text("kept back")
        (stage.root / "b.md").write_text("given")
        text = await told(stage, owner, of_file("docs/a.txt"), of_file("b.md"))
        assert why in text
        assert ("kept back" in text, "given\n" in text) == (False, True)
