"""The practice model does what its sentences say and knows nothing but the messages (row P5)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import attrs
import pytest

from steadyhand.adapters.model_practice import ASIDE, HINT, PracticeModel, text_parts_max
from steadyhand.core.model import (
    AskedCall,
    AssistantMessage,
    CallProposed,
    Finish,
    ModelRequest,
    OutMessage,
    ReplyMessage,
    StreamPart,
    TextPart,
    ToolOffer,
    UsagePart,
    UserMessage,
)
from steadyhand.core.text_lines import EMPTY_MARK, NO_LINE_END_MARK, TRUNCATED_MARK_START

pytestmark = pytest.mark.anyio

TOOLS = (ToolOffer("read_file", "Reads a file.", "{}"),)
requests_max = 20

Reply = Callable[[str, Mapping[str, object]], "tuple[str, str, str | None]"]


@attrs.define
class Talk:
    """A turn played to its end. `calls`: one list a request; `texts`: one text a request."""

    calls: list[list[tuple[str, dict[str, object]]]]
    texts: list[str]

    @property
    def end(self) -> list[str]:
        return self.texts[-1].split("\n")


def returned(tool: str, arguments: Mapping[str, object]) -> tuple[str, str, str | None]:
    return "returned", "old\n" if tool == "read_file" else "fine", None


def replying(*states: tuple[str, str, str | None]) -> Reply:
    """The given replies in order, then `returned`."""
    waiting = list(states)
    return lambda tool, arguments: waiting.pop(0) if waiting else returned(tool, arguments)


async def parts_of(*messages: OutMessage, tools: tuple[ToolOffer, ...] = TOOLS) -> list[StreamPart]:
    return [part async for part in PracticeModel().ask(ModelRequest("Be good.", tools, messages))]


async def play(prompt: str, reply: Reply = returned, before: tuple[OutMessage, ...] = ()) -> Talk:
    """Ask until nothing is called, with a new model each time: nothing may be kept between requests."""
    messages: list[OutMessage] = [*before, UserMessage(prompt)]
    talk = Talk([], [])
    for number in range(requests_max):
        parts = await parts_of(*messages)
        assert parts == await parts_of(*messages), "the same messages give the same answer"
        text = "".join(part.delta for part in parts if isinstance(part, TextPart))
        proposed = [part for part in parts if isinstance(part, CallProposed)]
        talk.texts.append(text)
        assert parts[-1] == Finish("calls" if proposed else "stop")
        if not proposed:
            return talk
        talk.calls.append([(call.tool, json.loads(call.arguments)) for call in proposed])
        asked = tuple(AskedCall(f"c{number}.{place}", c.tool, c.arguments) for place, c in enumerate(proposed))
        messages.append(AssistantMessage(text, asked))
        for call in asked:
            state, said, reason = reply(call.tool, json.loads(call.arguments))
            messages.append(ReplyMessage(call.call_id, said, state, reason))
    raise AssertionError("the model never ended")


@pytest.mark.parametrize(
    ("sentence", "tool", "arguments"),
    [
        ("show a.txt", "read_file", {"path": "a.txt"}),
        ("write a.txt with hello you", "write_file", {"path": "a.txt", "content": "hello you"}),
        ('replace "a b" with c in f', "edit_file", {"path": "f", "edits": [{"old": "a b", "new": "c"}]}),
        ("move a to b", "move_file", {"from": "a", "to": "b"}),
        ("delete a", "delete_file", {"path": "a"}),
        ("find *.py", "find_files", {"pattern": "*.py"}),
        ("search some text", "search_text", {"pattern": "some text"}),
        ("run ls -l | wc", "run_command", {"command": "ls -l | wc"}),
    ],
)
async def test_a_sentence_is_one_call(sentence: str, tool: str, arguments: dict[str, object]) -> None:
    """Row P5: tools and arguments as in wire.md."""
    talk = await play(sentence)
    assert talk.calls == [[(tool, arguments)]]
    assert talk.end == ["done: 1 of 1"]


async def test_arguments_are_canonical() -> None:
    """Row N1: keys sorted, no blanks, UTF-8."""
    parts = await parts_of(UserMessage("write é with 名"))
    assert CallProposed("write_file", '{"content":"名","path":"é"}') in parts


async def test_sentences_go_out_one_after_another() -> None:
    """Row P5: one call each, in order; nothing but the last user message is read."""
    earlier = (UserMessage("delete everything"), AssistantMessage("done: 1 of 1"))
    talk = await play("write a with 1\n\nwrite b with 2\nshow a", before=earlier)
    assert [[tool for tool, _ in calls] for calls in talk.calls] == [["write_file"], ["write_file"], ["read_file"]]
    assert talk.texts == ["", "", "", "done: 3 of 3"]


async def test_together_goes_out_as_one_batch() -> None:
    """Row P5."""
    talk = await play("together:\nshow a\nshow b\n\nshow c")
    assert [[arguments["path"] for _, arguments in calls] for calls in talk.calls] == [["a", "b"], ["c"]]


@pytest.mark.parametrize(
    ("state", "said", "reason", "text", "content"),
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
async def test_an_append_reads_then_writes(state: str, said: str, reason: str | None, text: str, content: str) -> None:
    """Row P5: a line end before and after the text where one is missing; a new file where there is none."""
    talk = await play(f"append {text} to a", replying((state, said, reason)))
    assert talk.calls == [[("read_file", {"path": "a"})], [("write_file", {"path": "a", "content": content})]]
    assert talk.end == ["done: 1 of 1"]


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        (("failed", "no permission", "denied by mode"), "append x to a: failed: denied by mode"),
        (("notRun", "does not exist", None), "append x to a: notRun"),
        (
            ("returned", f"old\n{TRUNCATED_MARK_START}: lines 1 to 1 of 9]", None),
            "append x to a: notRun: the file was not read whole, so I cannot append to it",
        ),
    ],
)
async def test_an_append_that_cannot_read_writes_nothing(reply: tuple[str, str, str | None], line: str) -> None:
    """Row P5."""
    talk = await play("append x to a\nshow b", replying(reply))
    assert [tool for calls in talk.calls for tool, _ in calls] == ["read_file", "read_file"]
    assert talk.end == ["done: 1 of 2", line]


async def test_an_append_counts_when_its_write_returned() -> None:
    """Row P5: one counts when all its calls returned."""
    talk = await play("append x to a", replying(returned("read_file", {}), ("failed", "", "changed")))
    assert talk.end == ["done: 0 of 1", "append x to a: failed: changed"]


async def test_appends_of_a_batch_read_with_it_and_write_next() -> None:
    """Row P5."""
    talk = await play("together:\nappend x to a\nshow c\nappend y to b")
    assert [[tool for tool, _ in calls] for calls in talk.calls] == [["read_file"] * 3, ["write_file"] * 2]
    assert talk.end == ["done: 3 of 3"]


async def test_an_append_to_what_its_batch_changes_reads_again() -> None:
    """Row P5: two appends of a batch to one file both arrive."""
    disk = {"a": "old\n"}

    def reply(tool: str, arguments: Mapping[str, object]) -> tuple[str, str, str | None]:
        if tool == "write_file":
            disk[str(arguments["path"])] = str(arguments["content"])
        return "returned", disk["a"], None

    talk = await play("together:\nappend x to a\nappend y to a", reply)
    assert disk["a"] == "old\nx\ny\n"
    assert talk.end == ["done: 2 of 2"]


async def test_it_goes_on_after_what_is_no_refusal() -> None:
    """Row P5: the states of wire.md, with the reason where there is one."""
    states = [("failed", "", "changed"), ("unknown", "", None), ("notRun", "", None), ("stopped", "", None)]
    talk = await play("\n".join(f"delete {name}" for name in "abcde"), replying(*states))
    assert talk.end == [
        "done: 1 of 5",
        "delete a: failed: changed",
        "delete b: unknown",
        "delete c: notRun",
        "delete d: stopped",
    ]


async def test_a_refusal_stops_it_and_it_says_so() -> None:
    """Row P5: after a `recovery_required` or refused reply nothing more is called."""
    talk = await play(
        "delete a\nwrite b with 1\nshow c\nsay never\nnonsense",
        replying(returned("delete_file", {}), ("refused", "", "recovery_required")),
    )
    assert len(talk.calls) == 2
    assert talk.end == [
        "stopped: write b with 1: refused: recovery_required",
        "done: 1 of 3",
        "write b with 1: refused: recovery_required",
        "show c: not tried",
    ]


async def test_a_refusal_in_a_batch_lets_no_append_write() -> None:
    """Row P5."""
    talk = await play(
        "together:\nappend x to a\ndelete b\n\nshow c", replying(("returned", "o\n", None), ("refused", "", None))
    )
    assert len(talk.calls) == 1
    assert talk.end == [
        "stopped: delete b: refused",
        "done: 0 of 3",
        "append x to a: not tried",
        "delete b: refused",
        "show c: not tried",
    ]


async def test_saying_and_not_understanding_call_nothing() -> None:
    """Row P5: they stand in the answer where they come up, and in no count."""
    talk = await play('say first\nshow a\nhello\nsay "a  b"\nwhat?')
    assert talk.texts[0] == "first"
    assert talk.end == ["I do not understand: hello", "a  b", "I do not understand: what?", HINT, "done: 1 of 1"]


async def test_it_says_what_it_is() -> None:
    """Row P5: honestly, once an answer, after the line it did not understand."""
    talk = await play("hello")
    assert talk.texts == [f"I do not understand: hello\n{HINT}\ndone: 0 of 0"]


async def test_an_aside_calls_nothing() -> None:
    """Row P5: a request that offers no tools."""
    parts = await parts_of(UserMessage("delete a"), tools=())
    assert "".join(part.delta for part in parts if isinstance(part, TextPart)) == ASIDE
    assert parts[-1] == Finish("stop")


async def test_text_comes_in_few_parts_at_words_then_usage_then_finish() -> None:
    """Row P5 [I13]; row U1: tokens are words."""
    said = "one  two three " * 40
    parts = await parts_of(UserMessage(f'say "{said}"'))
    deltas = [part.delta for part in parts if isinstance(part, TextPart)]
    assert 2 <= len(deltas) <= text_parts_max
    assert "".join(deltas) == f"{said}\ndone: 0 of 0"
    assert all(delta.endswith(" ") for delta in deltas[:-1])
    usage = parts[-2]
    assert isinstance(usage, UsagePart)
    assert usage == UsagePart(input=2 + 5 + 122, output=120 + 4)


async def test_a_request_after_a_cut_answer_asks_again_for_what_was_never_made() -> None:
    """Row P3: an answer without calls says nothing of a sentence; one with fewer calls leaves the rest not run."""
    start = UserMessage("together:\nshow a\nshow b")
    again = await parts_of(start, AssistantMessage("cut"))
    assert sum(isinstance(part, CallProposed) for part in again) == 2
    one = AssistantMessage("", (AskedCall("c", "read_file", "{}"),))
    after = await parts_of(start, one, ReplyMessage("c", "x\n", "returned"))
    text = "".join(part.delta for part in after if isinstance(part, TextPart))
    assert text.split("\n")[0] == "done: 1 of 2"


async def test_calls_of_another_model_are_passed_over() -> None:
    """Row P5: the model may be changed within a turn."""
    other = AssistantMessage("", (AskedCall("c", "list_files", "{}"),))
    parts = await parts_of(UserMessage("show a"), other, ReplyMessage("c", "x", "returned"))
    assert CallProposed("read_file", '{"path":"a"}') in parts
