"""What goes out to the model: always valid, and byte for byte what went out before, plus its tail."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.core.ledger import Ledger
from steadyhand.core.model import AskedCall, AssistantMessage, OutMessage, ReplyMessage, UserMessage
from steadyhand.core.record import (
    Assistant,
    Outcome,
    Proposed,
    Record,
    Result,
    Settlement,
    Stamped,
    Supplied,
    Title,
    Tool,
    Usage,
)
from steadyhand.core.transcript import EMPTY_REPLY, UNNAMED, Invalid, missing_replies, outgoing, validate
from tests.support.journals import (
    AT,
    allows,
    attempt_id,
    begun,
    crashed_while_writing,
    ends,
    ident,
    intends,
    journal,
    ledger_of,
    looked,
    notice,
    prompt,
    proposes,
    ran,
    replies,
    says,
    starts,
    verdict,
)


def said(records: list[Record]) -> Ledger:
    return ledger_of(journal([*begun(), *records]))


def going_out(ledger: Ledger) -> tuple[OutMessage, ...]:
    """As the turn does it: missing replies are recorded, then the whole is looked at once more."""
    for words in missing_replies(ledger):
        ledger.apply(Stamped(0, AT, "", words))
    messages = outgoing(ledger)
    validate(messages)
    return messages


def shape(messages: tuple[OutMessage, ...]) -> list[str]:
    """One word a message: the text of a person, `calls a b` of the model, `reply a` of a tool."""
    names = {ident(name): name for name in ("one", "two", "three", "look", "again")}
    found = []
    for message in messages:
        if isinstance(message, ReplyMessage):
            found.append(f"reply {names[message.call_id]}")
        elif isinstance(message, AssistantMessage) and message.calls:
            found.append("calls " + " ".join(names[call.call_id] for call in message.calls))
        else:
            found.append(message.text)
    return found


# T1, case 1: each call exactly one reply, in order, before the next message.


def test_replies_stand_in_the_order_of_their_calls() -> None:
    """T1, J14: whatever the order in which parallel calls settled, the replies go out as asked [I16]."""
    batch = proposes("turn", "one", "two", "three")
    records = [prompt("turn", "go"), batch, *ran("three"), *ran("one"), *ran("two"), says("turn", "done")]
    assert shape(going_out(said(records))) == [
        "go", "calls one two three", "reply one", "reply two", "reply three", "done",
    ]  # fmt: skip


def test_a_cancelled_batch_is_answered_before_the_next_prompt() -> None:
    """Case 1: three open calls, and the next prompt; each has its one reply [I16]."""
    records: list[Record] = [prompt("turn", "go"), proposes("turn", "one", "two", "three"), *ran("one")]
    records += [intends("two"), starts("two"), ends("two", "stopped"), prompt("next", "go on")]
    messages = going_out(said(records))
    assert shape(messages) == ["go", "calls one two three", "reply one", "reply two", "reply three", "go on"]
    texts = [message.text for message in messages if isinstance(message, ReplyMessage)]
    assert texts[0] == "done"
    assert "ran (stopped)" in texts[1]
    assert "did not run" in texts[2]


def test_a_hole_from_long_ago_is_filled_once() -> None:
    """Case 2, case 4: a call without its reply, long followed by other turns; nothing stored is changed (T3)."""
    records = [prompt("turn", "go"), proposes("turn", "one"), prompt("next", "hi"), says("next", "hello")]
    content = journal([*begun(), *records])
    ledger = ledger_of(content)
    words = missing_replies(ledger)
    assert [word.call_id for word in words] == [ident("one")]
    assert shape(going_out(ledger)) == ["go", "calls one", "reply one", "hi", "hello"]
    assert missing_replies(ledger) == []
    assert missing_replies(ledger_of(journal([*begun(), *records, *words]))) == []
    assert journal([*begun(), *records]) == content


def test_two_holes_in_two_turns_are_two_records() -> None:
    """Case 4: resumed twice, they are still two."""
    records: list[Record] = [prompt("turn"), proposes("turn", "one"), prompt("next"), proposes("next", "two")]
    for _ in range(2):
        records += missing_replies(said(records))
    assert [type(record) for record in records].count(Supplied) == 2


def test_a_reply_without_its_call_never_goes_out() -> None:
    """Case 13: it stays in the journal and out of the view."""
    records = [prompt("turn", "go"), says("turn", "ok"), replies("one", "refused", "denied"), prompt("next", "hi")]
    assert shape(going_out(said(records))) == ["go", "ok", "hi"]


def test_a_result_is_sent_once_after_every_resume() -> None:
    """Case 10: opening the same session again and again changes neither bytes nor replies."""
    records = [prompt("turn", "go"), proposes("turn", "one"), *ran("one"), says("turn", "done")]
    seen = {going_out(said(records)) for _ in range(3)}
    assert len(seen) == 1
    assert shape(seen.pop()) == ["go", "calls one", "reply one", "done"]


def test_a_call_closed_twice_is_answered_once() -> None:
    """Case 11: words were supplied, and a reply was found later: what went out once, stays."""
    records = [prompt("turn", "go"), proposes("turn", "one"), Supplied(ident("turn"), ident("one"), "words")]
    before = going_out(said(records))
    after = going_out(said([*records, replies("one", admitted=False), Supplied(ident("turn"), ident("one"), "more")]))
    assert shape(after) == ["go", "calls one", "reply one"]
    assert [message.text for message in after] == [message.text for message in before]


# T2: words that follow the classification.


@pytest.mark.parametrize(
    ("outcome", "gist"),
    [
        ("returned", "ran (returned), but its output was not kept"),
        ("failed", "ran (failed), but its output was not kept"),
        ("stopped", "ran (stopped), but its output was not kept"),
        ("refused", "was refused and did not run"),
        ("not_started", "did not run"),
        ("interrupted_before_execution", "did not run: the work was interrupted before it started"),
        ("interrupted", "read was cut off"),
        ("unknown", "outcome of this call is unknown: it may have run"),
        ("unknown_after_restart", "outcome of this call is unknown: it may have run"),
    ],
)
def test_the_words_follow_the_outcome(outcome: Outcome, gist: str) -> None:
    """T2, C6: denied, not run, failed, stopped and unknown are told apart."""
    records = [prompt("turn"), proposes("turn", "one"), intends("one"), ends("one", outcome)]
    (words,) = missing_replies(said(records))
    assert gist in words.text


def test_an_open_call_is_not_told_as_one_that_did_not_run() -> None:
    """C3: without a verdict yet, a start is told as unknown [I3]."""
    records = [prompt("turn"), proposes("turn", "one", "two"), intends("one"), starts("one"), intends("two")]
    one, two = missing_replies(said(records))
    assert "outcome of this call is unknown" in one.text
    assert attempt_id("one") in one.text
    assert "did not run" in two.text


def test_a_later_settlement_changes_no_words() -> None:
    """T2: it is told once, at the tail, before the next user text, and the reply above stays as it is [I9]."""
    records = [prompt("turn", "go"), proposes("turn", "one"), intends("one"), starts("one")]
    records += [verdict("one", "unknown_after_restart")]
    records += missing_replies(said(records))
    before = going_out(said(records))
    records += [
        Settlement(attempt_id("one"), ident("one"), "waived", "user"),
        notice("it was waived"),
        prompt("next", "on"),
    ]
    after = going_out(said(records))
    assert after[: len(before)] == before
    assert shape(after[len(before) :]) == ["[Notice] it was waived", "on"]


# T5: byte for byte the same, plus the tail.


@attrs.frozen
class Step:
    """A piece of history after which a request may go out."""

    records: tuple[Record, ...]


def steps() -> st.SearchStrategy[list[Step]]:
    """Histories piece by piece; ids are given by position so that none stands twice."""
    kinds = st.sampled_from(["prompt", "text", "blank", "write", "read", "two", "refused", "lost", "notice", "other"])

    def piece(at: int, kind: str) -> Step:
        turn, one, two = f"turn {at}", f"one {at}", f"two {at}"
        made: dict[str, list[Record]] = {
            "prompt": [prompt(turn, f"text {at}")],
            "text": [says(turn, f"answer {at}")],
            "blank": [Assistant(ident(turn), ident(f"m {at}"), " \n", finish="stop"), prompt(turn, "  ")],
            "write": [proposes(turn, one, text=" "), *ran(one, turn)],
            "read": [proposes(turn, f"look {at}"), *looked(f"look {at}", turn, text="")],
            "two": [proposes(turn, one, two), *ran(two, turn), *ran(one, turn)],
            "refused": [
                proposes(turn, one, tool="re\0ad", arguments="{"),
                replies(one, "refused", turn=turn, admitted=False),
            ],
            "lost": [proposes(turn, one), intends(one, turn), starts(one), verdict(one, "unknown_after_restart", turn)],
            "notice": [notice(f"notice {at}")],
            "other": [
                Title(f"title {at}", "auto"),
                Usage(ident(turn), True, 1, 2),
                prompt(turn, "/help", command=True),
            ],
        }
        return Step(tuple(made[kind]))

    return st.lists(kinds, max_size=12).map(lambda found: [piece(at, kind) for at, kind in enumerate(found)])


@given(steps())
def test_a_growing_history_goes_out_as_it_went_out_before(history: list[Step]) -> None:
    """T1, T2, T5: at each step the messages are valid, and those of the step before are their beginning."""
    records: list[Record] = [*begun()]
    before: tuple[OutMessage, ...] = ()
    for step in history:
        records += step.records
        records += missing_replies(ledger_of(journal(records)))
        ledger = ledger_of(journal(records))
        after = outgoing(ledger)
        validate(after)
        assert after[: len(before)] == before
        assert outgoing(ledger) == after
        before = after


def test_a_restart_changes_no_byte() -> None:
    """T5: what a live ledger sends and what one read back sends is the same."""
    records = crashed_while_writing()
    live = Ledger()
    for seq, record in enumerate(records, 1):
        live.apply(Stamped(seq, AT, "", record))
    assert going_out(live) == going_out(ledger_of(journal(records)))


# T4, T6, T7, cases 16 and 17: neutralised, never dropped.


@pytest.mark.parametrize("name", ["re\0ad", "", "a b", "x" * 65, "läsen", "read\n", "\ud800"])
def test_a_bad_name_is_neutralised_alone(name: str) -> None:
    """T4, case 16: one bad name goes out as a sound one; the rest and the stored record stay as they are."""
    records = [prompt("turn", "go"), proposes("turn", "one", tool=name), replies("one", "refused", admitted=False)]
    records += [proposes("turn", "two"), *ran("two")]
    ledger = said(records)
    messages = going_out(ledger)
    names = [call.tool for message in messages if isinstance(message, AssistantMessage) for call in message.calls]
    assert names == [UNNAMED, "write_file"]
    assert ledger.calls[ident("one")].tool == name


@pytest.mark.parametrize("arguments", ["", "{", "[1]", '{"a":NaN}', '{"a":1,"a":2}', '{"a":"\\ud800"}'])
def test_bad_arguments_go_out_empty(arguments: str) -> None:
    """T4, T6: valid empty arguments go out; the original stays stored."""
    records = [prompt("turn"), proposes("turn", "one", arguments=arguments), replies("one", "refused", admitted=False)]
    ledger = said(records)
    (asked,) = [call for m in going_out(ledger) if isinstance(m, AssistantMessage) for call in m.calls]
    assert asked.arguments == "{}"
    assert ledger.calls[ident("one")].arguments == arguments


def test_good_arguments_go_out_as_they_were_written() -> None:
    """T5: not even a blank is changed."""
    records = [prompt("turn"), proposes("turn", "one", arguments='{ "b": 1.0, "a": 2 }'), *ran("one")]
    (asked,) = [call for m in going_out(said(records)) if isinstance(m, AssistantMessage) for call in m.calls]
    assert asked == AskedCall(ident("one"), "write_file", '{ "b": 1.0, "a": 2 }')


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_no_empty_text_goes_out(blank: str) -> None:
    """Case 17: a cut answer without text is left out, and an empty output says that it is empty."""
    cut = Assistant(ident("turn"), ident("cut"), blank)
    beside = attrs.evolve(proposes("turn", "one"), text=blank)
    records = [prompt("turn", "go"), cut, beside, replies("one", text=blank, admitted=False), prompt("next", blank)]
    messages = going_out(said(records))
    assert shape(messages) == ["go", "calls one", "reply one"]
    assert [message.text for message in messages] == ["go", "", EMPTY_REPLY]


def test_provider_ids_may_repeat() -> None:
    """T7: our own ids decide; the provider's stand in no outgoing message."""
    records = [prompt("turn", "go")]
    for call in ("one", "two"):
        records += [proposes("turn", call), *ran(call)]
    assert shape(going_out(said(records))) == ["go", "calls one", "reply one", "calls two", "reply two"]


def test_withdrawn_text_never_goes_out() -> None:
    """T6: it was shown, and the request was repeated."""
    withdrawn = Assistant(ident("turn"), ident("w"), "half", (Proposed(ident("one"), "x", "{}"),), withdrawn=True)
    ledger = said([prompt("turn", "go"), withdrawn, says("turn", "whole")])
    assert missing_replies(ledger) == []
    assert shape(going_out(ledger)) == ["go", "whole"]


def test_slash_commands_and_what_the_user_alone_is_told_stay_here() -> None:
    """A slash command and its answer never go to a model; a notice waits for the next user text (T2)."""
    quiet = attrs.evolve(notice("for the user"), model=False)
    records = [prompt("slash", "/recovery", command=True), says("slash", "a list"), notice("told"), quiet]
    assert going_out(said(records)) == ()
    assert shape(going_out(said([*records, prompt("next", "go on")]))) == ["[Notice] told", "go on"]


def test_a_reply_carries_its_state() -> None:
    """wire.md, States: the practice model reads how each call ended."""
    records = [prompt("turn"), proposes("turn", "one", "two"), *ran("one"), intends("two"), allows("two", "reject")]
    records += [Result(attempt_id("two"), ident("two"), ident("turn"), "refused", "denied")]
    records += [Tool(ident("turn"), ident("two"), "refused", "no", 2, reason="denied", attempt_id=attempt_id("two"))]
    states = [(m.state, m.reason) for m in going_out(said(records)) if isinstance(m, ReplyMessage)]
    assert states == [("returned", None), ("refused", "denied")]


# The validator.

ONE, TWO = ident("one"), ident("two")
ASK = AssistantMessage("", (AskedCall(ONE, "read_file", "{}"),))
ASK_TWO = AssistantMessage("", (AskedCall(ONE, "a", "{}"), AskedCall(TWO, "b", "{}")))


def reply(call_id: str, text: str = "x") -> ReplyMessage:
    return ReplyMessage(call_id, text, "returned")


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([ASK], "a call without its reply"),
        ([ASK, UserMessage("hi"), reply(ONE)], "a call without its reply"),
        ([ASK, AssistantMessage("text")], "a call without its reply"),
        ([ASK_TWO, reply(ONE)], "a call without its reply"),
        ([ASK_TWO, reply(TWO), reply(ONE)], "a reply without its call"),
        ([ASK, reply(ONE), reply(ONE)], "a reply without its call"),
        ([reply(ONE)], "a reply without its call"),
        ([ASK, reply(TWO)], "a reply without its call"),
        ([ASK, reply(ONE, " ")], "an empty reply"),
        ([UserMessage(" ")], "an empty user message"),
        ([AssistantMessage("\n")], "an empty assistant message"),
        ([AssistantMessage(" ", ASK.calls), reply(ONE)], "a blank text beside calls"),
        ([ASK, reply(ONE), ASK, reply(ONE)], "a call id that is not ours or stands twice"),
        (
            [AssistantMessage("", (AskedCall("c1", "a", "{}"),)), reply("c1")],
            "a call id that is not ours or stands twice",
        ),
        ([AssistantMessage("", (AskedCall(ONE, "a\0", "{}"),)), reply(ONE)], "a tool name no provider accepts"),
        ([AssistantMessage("", (AskedCall(ONE, "a", "{"),)), reply(ONE)], "arguments that are no JSON object"),
    ],
)
def test_what_no_provider_accepts_is_seen(messages: list[OutMessage], why: str) -> None:
    """T1: pairing, order, empty texts, names, ids and arguments are looked at last [I16]."""
    with pytest.raises(Invalid, match=why):
        validate(messages)


def test_what_is_sound_passes() -> None:
    """T1: the validator changes nothing and lets sound histories go."""
    sound = [UserMessage("go"), ASK_TWO, reply(ONE), reply(TWO), AssistantMessage("done"), UserMessage("on")]
    validate(sound)
    validate([])
