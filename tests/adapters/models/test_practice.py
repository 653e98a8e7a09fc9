"""The practice model does what its sentences say and uses nothing but the messages of the request (row P5)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import attrs
import pytest

from steadyhand.adapters.models.practice import HINT, NO_TOOLS_ANSWER, TEXT_PARTS_MAX, PracticeModel
from steadyhand.domain.model.messages import (
    AssistantMessage,
    CallProposed,
    Finish,
    ModelRequest,
    OutgoingCall,
    OutMessage,
    ReplyMessage,
    StreamPart,
    TextPart,
    ToolOffer,
    UsagePart,
    UserMessage,
)
from steadyhand.domain.text.lines import EMPTY_MARK, NO_LINE_END_MARK, TRUNCATED_MARK_START

pytestmark = pytest.mark.anyio

TOOLS = (ToolOffer("read_file", "Reads a file.", "{}"),)
REQUESTS_MAX = 20

Reply = Callable[[str, Mapping[str, object]], "tuple[str, str, str | None]"]


@attrs.define
class PlayedTurn:
    """A turn played to its end. `calls` has one list for each request, and `texts` one text for each request."""

    calls: list[list[tuple[str, dict[str, object]]]]
    texts: list[str]

    @property
    def end(self) -> list[str]:
        return self.texts[-1].split("\n")


def reply_returned(tool: str, arguments: Mapping[str, object]) -> tuple[str, str, str | None]:
    return "returned", "old\n" if tool == "read_file" else "fine", None


def replies_in_order(*states: tuple[str, str, str | None]) -> Reply:
    """The given replies in order, and then `returned`."""
    pending = list(states)
    return lambda tool, arguments: pending.pop(0) if pending else reply_returned(tool, arguments)


async def parts_of(*messages: OutMessage, tools: tuple[ToolOffer, ...] = TOOLS) -> list[StreamPart]:
    return [part async for part in PracticeModel().ask(ModelRequest("Be good.", tools, messages))]


async def play(prompt: str, reply: Reply = reply_returned, before: tuple[OutMessage, ...] = ()) -> PlayedTurn:
    """Ask until nothing is called, with a new model each time: the model may keep nothing between requests."""
    messages: list[OutMessage] = [*before, UserMessage(prompt)]
    turn = PlayedTurn([], [])
    for number in range(REQUESTS_MAX):
        parts = await parts_of(*messages)
        assert parts == await parts_of(*messages), "the same messages must give the same answer"
        text = "".join(part.delta for part in parts if isinstance(part, TextPart))
        proposed = [part for part in parts if isinstance(part, CallProposed)]
        turn.texts.append(text)
        assert parts[-1] == Finish("calls" if proposed else "stop")
        if not proposed:
            return turn
        turn.calls.append([(call.tool, json.loads(call.arguments)) for call in proposed])
        asked_calls = tuple(OutgoingCall(f"c{number}.{place}", c.tool, c.arguments) for place, c in enumerate(proposed))
        messages.append(AssistantMessage(text, asked_calls))
        for call in asked_calls:
            state, reply_text, reason = reply(call.tool, json.loads(call.arguments))
            messages.append(ReplyMessage(call.call_id, reply_text, state, reason))
    raise AssertionError("the model never ended")


@pytest.mark.parametrize(
    ("sentence", "tool", "arguments"),
    [
        ("show a.txt", "read_file", {"path": "a.txt"}),
        ('replace "a b" with c in f', "edit_file", {"path": "f", "edits": [{"old": "a b", "new": "c"}]}),
        ("move a to b", "move_file", {"from": "a", "to": "b"}),
        ("delete a", "delete_file", {"path": "a"}),
        ("find *.py", "find_files", {"pattern": "*.py"}),
        ("search some text", "search_text", {"pattern": "some text"}),
        ("run ls -l | wc", "run_command", {"command": "ls -l | wc"}),
        ("crash", "crash", {}),
    ],
)
async def test_practice_sentence_makes_one_tool_call(sentence: str, tool: str, arguments: dict[str, object]) -> None:
    """Row P5: tools and arguments as in docs/protocol.md."""
    turn = await play(sentence)
    assert turn.calls == [[(tool, arguments)]]
    assert turn.end == ["done: 1 of 1"]


async def test_practice_call_arguments_are_canonical_json() -> None:
    """Row N1: keys sorted, no blanks, UTF-8."""
    parts = await parts_of(UserMessage("move é to 名"))
    assert CallProposed("move_file", '{"from":"é","to":"名"}') in parts


async def test_practice_sentences_are_called_in_order_one_per_request() -> None:
    """Row P5: one call each, in order. The model reads only the last user message."""
    earlier = (UserMessage("delete everything"), AssistantMessage("done: 1 of 1"))
    turn = await play("write a with 1\n\ndelete b\nshow a", before=earlier)
    called = [[tool for tool, _ in calls] for calls in turn.calls]
    assert called == [["read_file"], ["write_file"], ["delete_file"], ["read_file"]]
    assert turn.texts == ["", "", "", "", "done: 3 of 3"]


@pytest.mark.parametrize(
    "reply",
    [
        ("returned", "old", None),
        ("returned", f"old\n{TRUNCATED_MARK_START}: lines 1 to 1 of 9]", None),
        ("failed", "", "not_found"),
    ],
)
async def test_practice_write_reads_the_file_first(reply: tuple[str, str, str | None]) -> None:
    """Rows P5, V3: a file that is not there counts as read; the text is written as it is given."""
    turn = await play("write a.txt with hello you", replies_in_order(reply))
    written = ("write_file", {"path": "a.txt", "content": "hello you"})
    assert turn.calls == [[("read_file", {"path": "a.txt"})], [written]]
    assert turn.end == ["done: 1 of 1"]


async def test_practice_write_of_a_file_that_cannot_be_read_writes_nothing() -> None:
    """Rows P5, V3: as for an append."""
    turn = await play("write a with x", replies_in_order(("failed", "It is a folder.", "not_a_file")))
    assert turn.calls == [[("read_file", {"path": "a"})]]
    assert turn.end == ["done: 0 of 1", "write a with x: failed: not_a_file"]


async def test_practice_together_block_is_one_batch() -> None:
    """Row P5."""
    turn = await play("together:\nshow a\nshow b\n\nshow c")
    assert [[arguments["path"] for _, arguments in calls] for calls in turn.calls] == [["a", "b"], ["c"]]


@pytest.mark.parametrize(
    ("state", "reply_text", "reason", "text", "content"),
    [
        ("returned", "old\n", None, "new", "old\nnew\n"),
        ("returned", f"old\n{NO_LINE_END_MARK}", None, "new", "old\nnew\n"),
        ("returned", EMPTY_MARK, None, "new", "new\n"),
        ("returned", "a\r\nb\nc\r\n", None, "new", "a\r\nb\nc\r\nnew\r\n"),
        ("returned", "it does not exist\n", None, '"new\\n"', "it does not exist\nnew\n"),
        ("returned", "old\n", None, '""', "old\n\n"),
        ("failed", "no such thing", "not_found", "new", "new\n"),
        ("failed", "The file a does not exist.", None, "new", "new\n"),
    ],
)
async def test_practice_append_reads_the_file_and_then_writes_it(
    state: str, reply_text: str, reason: str | None, text: str, content: str
) -> None:
    """Row P5: a line end is added before and after the text where one is missing. A missing file is created."""
    turn = await play(f"append {text} to a", replies_in_order((state, reply_text, reason)))
    assert turn.calls == [[("read_file", {"path": "a"})], [("write_file", {"path": "a", "content": content})]]
    assert turn.end == ["done: 1 of 1"]


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        (("failed", "no permission", "denied by mode"), "append x to a: failed: denied by mode"),
        (("notRun", "does not exist", None), "append x to a: notRun"),
        (
            ("returned", f"old\n{TRUNCATED_MARK_START}: lines 1 to 1 of 9]", None),
            "append x to a: notRun: I did not read the whole file, so I cannot append to it",
        ),
    ],
)
async def test_practice_append_without_a_whole_read_writes_nothing(
    reply: tuple[str, str, str | None], line: str
) -> None:
    """Row P5."""
    turn = await play("append x to a\nshow b", replies_in_order(reply))
    assert [tool for calls in turn.calls for tool, _ in calls] == ["read_file", "read_file"]
    assert turn.end == ["done: 1 of 2", line]


async def test_practice_append_with_a_failed_write_is_not_done() -> None:
    """Row P5: a sentence counts as done when all its calls returned."""
    turn = await play("append x to a", replies_in_order(reply_returned("read_file", {}), ("failed", "", "changed")))
    assert turn.end == ["done: 0 of 1", "append x to a: failed: changed"]


async def test_practice_appends_in_a_batch_read_together_and_then_write() -> None:
    """Row P5."""
    turn = await play("together:\nappend x to a\nshow c\nappend y to b")
    assert [[tool for tool, _ in calls] for calls in turn.calls] == [["read_file"] * 3, ["write_file"] * 2]
    assert turn.end == ["done: 3 of 3"]


async def test_practice_two_appends_to_one_file_in_a_batch_both_arrive() -> None:
    """Row P5: the second append reads the file again."""
    disk = {"a": "old\n"}

    def reply(tool: str, arguments: Mapping[str, object]) -> tuple[str, str, str | None]:
        if tool == "write_file":
            disk[str(arguments["path"])] = str(arguments["content"])
        return "returned", disk["a"], None

    turn = await play("together:\nappend x to a\nappend y to a", reply)
    assert disk["a"] == "old\nx\ny\n"
    assert turn.end == ["done: 2 of 2"]


async def test_practice_continues_after_a_failure_that_is_no_refusal() -> None:
    """Row P5: the states of docs/protocol.md, with the reason where there is one."""
    states = [("failed", "", "changed"), ("unknown", "", None), ("notRun", "", None), ("stopped", "", None)]
    turn = await play("\n".join(f"delete {name}" for name in "abcde"), replies_in_order(*states))
    assert turn.end == [
        "done: 1 of 5",
        "delete a: failed: changed",
        "delete b: unknown",
        "delete c: notRun",
        "delete d: stopped",
    ]


async def test_practice_refusal_stops_the_turn_and_is_reported() -> None:
    """Row P5: after a `recovery_required` or refused reply the model calls nothing more."""
    turn = await play(
        "delete a\nwrite b with 1\nshow c\nsay never\nnonsense",
        replies_in_order(reply_returned("delete_file", {}), ("refused", "", "recovery_required")),
    )
    assert len(turn.calls) == 2
    assert turn.end == [
        "I stopped after this call was refused: write b with 1",
        "done: 1 of 3",
        "write b with 1: refused: recovery_required",
        "show c: not tried",
    ]


async def test_practice_refusal_in_a_batch_stops_its_appends() -> None:
    """Row P5."""
    turn = await play(
        "together:\nappend x to a\ndelete b\n\nshow c",
        replies_in_order(("returned", "o\n", None), ("refused", "", None)),
    )
    assert len(turn.calls) == 1
    assert turn.end == [
        "I stopped after this call was refused: delete b",
        "done: 0 of 3",
        "append x to a: not tried",
        "delete b: refused",
        "show c: not tried",
    ]


async def test_practice_say_and_unknown_lines_call_nothing() -> None:
    """Row P5: both appear in the answer at their position, and in no count."""
    turn = await play('say first\nshow a\nhello\nsay "a  b"\nwhat?')
    assert turn.texts[0] == "first"
    assert turn.end == ["I do not understand: hello", "a  b", "I do not understand: what?", HINT, "done: 1 of 1"]


async def test_practice_unknown_line_gives_the_hint_once() -> None:
    """Row P5: the model says what it is, once in an answer, after the line that it does not understand."""
    turn = await play("hello")
    assert turn.texts == [f"I do not understand: hello\n{HINT}\ndone: 0 of 0"]


async def test_practice_request_without_tools_calls_nothing() -> None:
    """Row P5: a quick question offers no tools."""
    parts = await parts_of(UserMessage("delete a"), tools=())
    assert "".join(part.delta for part in parts if isinstance(part, TextPart)) == NO_TOOLS_ANSWER
    assert parts[-1] == Finish("stop")


async def test_practice_stream_is_bounded_text_parts_then_usage_then_finish() -> None:
    """Row P5 [I13]; row U1: tokens are words."""
    reply_text = "one  two three " * 40
    parts = await parts_of(UserMessage(f'say "{reply_text}"'))
    deltas = [part.delta for part in parts if isinstance(part, TextPart)]
    assert 2 <= len(deltas) <= TEXT_PARTS_MAX
    assert "".join(deltas) == f"{reply_text}\ndone: 0 of 0"
    assert all(delta.endswith(" ") for delta in deltas[:-1])
    usage = parts[-2]
    assert isinstance(usage, UsagePart)
    assert usage == UsagePart(input=2 + 5 + 122, output=120 + 4)


async def test_practice_truncated_answer_repeats_only_calls_that_were_not_made() -> None:
    """Row P3: an answer without calls does not count for a sentence. An answer with fewer calls leaves the rest as not
    run.
    """
    start = UserMessage("together:\nshow a\nshow b")
    again = await parts_of(start, AssistantMessage("cut"))
    assert sum(isinstance(part, CallProposed) for part in again) == 2
    one = AssistantMessage("", (OutgoingCall("c", "read_file", "{}"),))
    after = await parts_of(start, one, ReplyMessage("c", "x\n", "returned"))
    text = "".join(part.delta for part in after if isinstance(part, TextPart))
    assert text.split("\n")[0] == "done: 1 of 2"


async def test_practice_calls_of_another_model_are_ignored() -> None:
    """Row P5: the user may change the model within a turn."""
    other = AssistantMessage("", (OutgoingCall("c", "list_files", "{}"),))
    parts = await parts_of(UserMessage("show a"), other, ReplyMessage("c", "x", "returned"))
    assert CallProposed("read_file", '{"path":"a"}') in parts
