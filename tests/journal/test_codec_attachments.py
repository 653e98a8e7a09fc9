"""Attachments of a prompt in a record: each kind by its word, later kinds passed over, wrong ones refused (row X1)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steadyhand.domain.records.prompt import (
    Attachment,
    FileAttachment,
    ProblemsAttachment,
    SelectionAttachment,
    TextAttachment,
)
from steadyhand.domain.records.record import Unknown, User
from steadyhand.domain.text.positions import Position, Range
from steadyhand.journal.codec import UnreadableRecord, decode, encode

PLACE = Range(Position(1, 2), Position(3, 4))
PLAIN_PLACE = {"start": {"line": 1, "character": 2}, "end": {"line": 3, "character": 4}}
EACH: list[tuple[Attachment, dict[str, Any]]] = [
    (FileAttachment("a.txt"), {"kind": "file", "path": "a.txt"}),
    (FileAttachment("a.txt", PLACE), {"kind": "file", "path": "a.txt", "range": PLAIN_PLACE}),
    (
        SelectionAttachment("file:///a", PLACE, "text"),
        {"kind": "selection", "uri": "file:///a", "range": PLAIN_PLACE, "text": "text"},
    ),
    (ProblemsAttachment(), {"kind": "problems"}),
    (ProblemsAttachment("file:///a"), {"kind": "problems", "uri": "file:///a"}),
    (TextAttachment("n", "t"), {"kind": "text", "name": "n", "text": "t"}),
]


def user(*attachments: Attachment) -> User:
    return User(turn_id="t", message_id="m", client_message_id="c", text="x", attachments=attachments)


def members(*attachments: object) -> dict[str, object]:
    return {"turnId": "t", "messageId": "m", "clientMessageId": "c", "text": "x", "attachments": list(attachments)}


@pytest.mark.parametrize(("attached", "plain"), EACH)
def test_attachment_is_written_with_its_kind_and_without_defaults(attached: Attachment, plain: dict[str, Any]) -> None:
    """docs/journal-format.md: the kind selects the class, so it is always there."""
    assert json.loads(json.dumps(encode(user(attached)))) == members(plain)
    assert decode("user", members(plain)) == user(attached)


def test_attachments_keep_their_order_and_a_later_kind_is_passed_over() -> None:
    """X1: a program of today reads the rest of a prompt that a later one wrote."""
    later = {"kind": "image", "mime": "image/png", "digest": "d"}
    plain = [later, *(one for _, one in EACH), later]
    found = decode("user", members(*plain))
    assert not isinstance(found, Unknown)
    assert found == user(*(attached for attached, _ in EACH))
    assert decode("user", members({**EACH[0][1], "added": 1})) == user(EACH[0][0])


@pytest.mark.parametrize(
    "wrong", ["text", 5, None, [], {}, {"kind": 5}, {"kind": ["file"]}, {"kind": "file"}, {"kind": "file", "path": 5}]
)
def test_attachment_that_does_not_fit_makes_the_record_unreadable(wrong: object) -> None:
    """J9: it counts as damage and never as a prompt without attachments."""
    for plain in (members(wrong), members(EACH[0][1], wrong), {**members(), "attachments": wrong}):
        if plain["attachments"] == []:
            continue
        with pytest.raises(UnreadableRecord):
            decode("user", plain)
