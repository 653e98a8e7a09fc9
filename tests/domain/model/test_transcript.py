"""The messages sent to the model: always valid, and byte for byte the messages of the request before plus a tail."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.model.messages import AssistantMessage, OutgoingCall, OutMessage, ReplyMessage, UserMessage
from steadyhand.domain.model.transcript import (
    EMPTY_REPLY,
    UNNAMED,
    Invalid,
    missing_replies,
    outgoing_messages,
    validate,
    without_told_at_end,
)
from steadyhand.domain.records.record import (
    Assistant,
    Outcome,
    Proposed,
    Record,
    Result,
    Settlement,
    Stamped,
    Supplied,
    Title,
    ToolResult,
    Usage,
)
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
    steer,
    taken,
    told,
    verdict,
)


def fold_session(records: list[Record]) -> Ledger:
    return ledger_of(journal([*begun(), *records]))


def sent_messages(ledger: Ledger) -> tuple[OutMessage, ...]:
    """The messages as the turn sends them: missing replies are recorded, and then the whole is validated."""
    for words in missing_replies(ledger):
        ledger.apply(Stamped(seq=0, at=AT, sum="", record=words))
    messages = outgoing_messages(ledger)
    validate(messages)
    return messages


def shape(messages: tuple[OutMessage, ...]) -> list[str]:
    """One entry for each message: the text of a user message, `calls a b` of the model, `reply a` of a tool."""
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


# T1, case 1: each call has exactly one reply, in order, before the next message.


def test_outgoing_replies_follow_the_order_of_their_calls() -> None:
    """T1, J14: in whatever order parallel calls ended, their replies are sent in the order of the calls [I16]."""
    batch = proposes("turn", "one", "two", "three")
    records = [prompt("turn", "go"), batch, *ran("three"), *ran("one"), *ran("two"), says("turn", "done")]
    assert shape(sent_messages(fold_session(records))) == [
        "go", "calls one two three", "reply one", "reply two", "reply three", "done",
    ]  # fmt: skip


def test_outgoing_cancelled_batch_is_answered_before_the_next_prompt() -> None:
    """Case 1: three open calls and the next prompt. Each call has its one reply [I16]."""
    records: list[Record] = [prompt("turn", "go"), proposes("turn", "one", "two", "three"), *ran("one")]
    records += [intends("two"), starts("two"), ends("two", "stopped"), prompt("next", "go on")]
    messages = sent_messages(fold_session(records))
    assert shape(messages) == ["go", "calls one two three", "reply one", "reply two", "reply three", "go on"]
    texts = [message.text for message in messages if isinstance(message, ReplyMessage)]
    assert texts[0] == "done"
    assert "ran (stopped)" in texts[1]
    assert "did not run" in texts[2]


def test_missing_reply_of_an_old_turn_is_supplied_once() -> None:
    """Case 2, case 4: a call without a reply, followed by other turns. Nothing stored is changed (T3)."""
    records: list[Record] = [prompt("turn", "go"), proposes("turn", "one"), prompt("next", "hi"), says("next", "hello")]
    content = journal([*begun(), *records])
    ledger = ledger_of(content)
    words = missing_replies(ledger)
    assert [word.call_id for word in words] == [ident("one")]
    assert shape(sent_messages(ledger)) == ["go", "calls one", "reply one", "hi", "hello"]
    assert missing_replies(ledger) == []
    assert missing_replies(ledger_of(journal([*begun(), *records, *words]))) == []
    assert journal([*begun(), *records]) == content


def test_missing_replies_of_two_turns_are_two_records() -> None:
    """Case 4: after two resumes there are still two records."""
    records: list[Record] = [prompt("turn"), proposes("turn", "one"), prompt("next"), proposes("next", "two")]
    for _ in range(2):
        records += missing_replies(fold_session(records))
    assert [type(record) for record in records].count(Supplied) == 2


def test_outgoing_omits_a_reply_without_its_call() -> None:
    """Case 13: the reply stays in the journal and out of the messages."""
    records: list[Record] = [
        prompt("turn", "go"),
        says("turn", "ok"),
        replies("one", "refused", "denied"),
        prompt("next", "hi"),
    ]
    assert shape(sent_messages(fold_session(records))) == ["go", "ok", "hi"]


def test_outgoing_is_the_same_after_every_resume() -> None:
    """Case 10: opening the same session again changes neither bytes nor replies."""
    records = [prompt("turn", "go"), proposes("turn", "one"), *ran("one"), says("turn", "done")]
    seen = {sent_messages(fold_session(records)) for _ in range(3)}
    assert len(seen) == 1
    assert shape(seen.pop()) == ["go", "calls one", "reply one", "done"]


def test_outgoing_call_closed_twice_has_one_reply() -> None:
    """Case 11: a text was supplied and a reply was found later. The text that was sent first stays."""
    records: list[Record] = [
        prompt("turn", "go"),
        proposes("turn", "one"),
        Supplied(turn_id=ident("turn"), call_id=ident("one"), text="words"),
    ]
    before = sent_messages(fold_session(records))
    after = sent_messages(
        fold_session(
            [
                *records,
                replies("one", admitted=False),
                Supplied(turn_id=ident("turn"), call_id=ident("one"), text="more"),
            ]
        )
    )
    assert shape(after) == ["go", "calls one", "reply one"]
    assert [message.text for message in after] == [message.text for message in before]


# T2: the text of a missing reply follows the classification.


@pytest.mark.parametrize(
    ("outcome", "gist"),
    [
        ("returned", "ran (returned), but its output was not stored"),
        ("failed", "ran (failed), but its output was not stored"),
        ("stopped", "ran (stopped), but its output was not stored"),
        ("refused", "was refused and did not run"),
        ("not_started", "did not run"),
        ("interrupted_before_execution", "did not run: the work was interrupted before it started"),
        ("interrupted", "read was cut off"),
        ("unknown", "outcome of this call is unknown: it may have run"),
        ("unknown_after_restart", "outcome of this call is unknown: it may have run"),
    ],
)
def test_missing_reply_text_follows_the_outcome(outcome: Outcome, gist: str) -> None:
    """T2, C6: the text distinguishes denied, not run, failed, stopped and unknown."""
    records: list[Record] = [prompt("turn"), proposes("turn", "one"), intends("one"), ends("one", outcome)]
    (words,) = missing_replies(fold_session(records))
    assert gist in words.text


def test_missing_reply_of_a_started_call_says_unknown() -> None:
    """C3: a start without a verdict is reported as unknown [I3]."""
    records: list[Record] = [
        prompt("turn"),
        proposes("turn", "one", "two"),
        intends("one"),
        starts("one"),
        intends("two"),
    ]
    one, two = missing_replies(fold_session(records))
    assert "outcome of this call is unknown" in one.text
    assert attempt_id("one") in one.text
    assert "did not run" in two.text


def test_outgoing_settlement_is_told_in_a_notice_and_keeps_the_reply() -> None:
    """T2: the notice is sent once, before the next user text, and the reply above stays unchanged [I9]."""
    records: list[Record] = [prompt("turn", "go"), proposes("turn", "one"), intends("one"), starts("one")]
    records += [verdict("one", "unknown_after_restart")]
    records += missing_replies(fold_session(records))
    before = sent_messages(fold_session(records))
    records += [
        Settlement(attempt_id=attempt_id("one"), call_id=ident("one"), settled="waived", by="user"),
        notice("it was waived"),
        prompt("next", "on"),
    ]
    after = sent_messages(fold_session(records))
    assert after[: len(before)] == before
    assert shape(after[len(before) :]) == ["[Notice] it was waived", "on"]


# T5: each request repeats the one before byte for byte and adds a tail.


@attrs.frozen
class Step:
    """A piece of history after which a request may be sent."""

    records: tuple[Record, ...]


TOLD = ["told", "told later", "told in vain", "told between", "told outside", "told before a command"]
"""Stored messages in every place that they can be recorded at (row G15)."""


STEERED = ["steered", "steered together", "steered and told", "steered and cut", "steer"]
"""Steers in every place that they can be sent and taken at (row S8)."""


def steps() -> st.SearchStrategy[list[Step]]:
    """Histories piece by piece. Ids follow the position, so that none appears twice."""
    kinds = st.sampled_from(
        ["prompt", "text", "blank", "write", "read", "two", "refused", "lost", "notice", "other", *TOLD, *STEERED]
    )

    def piece(at: int, kind: str) -> Step:
        turn, one, two = f"turn {at}", f"one {at}", f"two {at}"
        pieces: dict[str, list[Record]] = {
            "prompt": [prompt(turn, f"text {at}")],
            "text": [says(turn, f"answer {at}")],
            "blank": [
                Assistant(turn_id=ident(turn), message_id=ident(f"m {at}"), text=" \n", finish="stop"),
                prompt(turn, "  "),
            ],
            "write": [proposes(turn, one, text=" "), *ran(one, turn)],
            "read": [proposes(turn, f"look {at}"), *looked(f"look {at}", turn, text="")],
            "two": [proposes(turn, one, two), *ran(two, turn), *ran(one, turn)],
            "refused": [
                proposes(turn, one, tool="re\0ad", arguments="{"),
                replies(one, "refused", turn=turn, admitted=False),
            ],
            "lost": [proposes(turn, one), intends(one, turn), starts(one), verdict(one, "unknown_after_restart", turn)],
            "notice": [notice(f"notice {at}")],
            "told": [told(f"told {at}", turn)],
            "told later": [
                told(f"told {at}", turn, after=f"m {at}"),
                attrs.evolve(proposes(turn, one), message_id=ident(f"m {at}")),
                *ran(one, turn),
            ],
            "told in vain": [told(f"told {at}", turn, after=f"never given {at}"), says(turn, f"answer {at}")],
            "told between": [proposes(turn, one, two), *ran(one, turn), told(f"told {at}", turn), *ran(two, turn)],
            "told outside": [told(f"told {at}")],
            "told before a command": [told(f"told {at}", turn), prompt(turn, "/help", command=True)],
            "steered": [proposes(turn, one), steer(f"s {at}", turn), *ran(one, turn), taken(f"s {at}", turn)],
            "steered together": [
                proposes(turn, one, two),
                *ran(two, turn),
                steer(f"s {at}", turn),
                steer(f"t {at}", turn),
                *ran(one, turn),
                taken(f"s {at}", turn),
                taken(f"t {at}", turn),
            ],
            "steered and told": [
                told(f"told {at}", turn, after=f"m {at}"),
                attrs.evolve(proposes(turn, one), message_id=ident(f"m {at}")),
                *ran(one, turn),
                steer(f"s {at}", turn),
                notice(f"notice {at}"),
                taken(f"s {at}", turn),
                told(f"later {at}", turn),
            ],
            "steered and cut": [
                steer(f"s {at}", turn),
                taken(f"s {at}", turn),
                Assistant(turn_id=ident(turn), message_id=ident(f"m {at}"), text="half", withdrawn=True),
            ],
            "steer": [steer(f"s {at}", turn)],
            "other": [
                Title(title=f"title {at}", source="auto"),
                Usage(turn_id=ident(turn), complete=True, input=1, output=2),
                prompt(turn, "/help", command=True),
            ],
        }
        return Step(tuple(pieces[kind]))

    return st.lists(kinds, max_size=12).map(lambda found: [piece(at, kind) for at, kind in enumerate(found)])


@given(steps())
def test_outgoing_growing_history_extends_the_messages_sent_before(history: list[Step]) -> None:
    """T1, T2, T5: at each step the messages are valid and start with those of the step before."""
    records: list[Record] = [*begun()]
    before: tuple[OutMessage, ...] = ()
    for step in history:
        records += step.records
        records += missing_replies(ledger_of(journal(records)))
        ledger = ledger_of(journal(records))
        after = outgoing_messages(ledger)
        validate(after)
        assert after[: len(before)] == before
        assert outgoing_messages(ledger) == after
        before = after


# S8: a steer stands behind all replies of the last answer, as a message of the user.


def test_steer_stands_behind_all_replies_of_the_last_answer() -> None:
    """S8, T1: whenever it was sent, it stands where it was taken, and never between a call and its reply [I16]."""
    batch: list[Record] = [prompt("turn", "go"), attrs.evolve(proposes("turn", "one", "two"))]
    ends: list[Record] = [*ran("one"), *ran("two")]
    expected = ["go", "calls one two", "reply one", "reply two"]
    for records in (
        [prompt("turn", "go"), steer("s", text="S"), *batch[1:], *ends],
        [*batch, steer("s", text="S"), *ends],
        [*batch, *ran("one"), steer("s", text="S"), *ran("two")],
        [*batch, *ends, steer("s", text="S")],
    ):
        assert shape(sent_messages(fold_session(records))) == expected
        assert shape(sent_messages(fold_session([*records, taken("s")]))) == [*expected, "S"]


def test_steer_that_is_taken_while_a_call_has_no_reply_stands_behind_its_words() -> None:
    """S8, T1, T2: a journal that lost a reply gets the supplied words before the steer."""
    ledger = fold_session([prompt("turn", "go"), steer("s", text="S"), proposes("turn", "one"), taken("s")])
    assert shape(sent_messages(ledger)) == ["go", "calls one", "reply one", "S"]


def test_steer_is_taken_once_and_by_its_own_turn() -> None:
    """S8, J14: a second taking, one by another turn and one of an unknown text change nothing."""
    records: list[Record] = [prompt("turn", "go"), steer("s", text="S"), prompt("next", "on")]
    ledger = fold_session([*records, taken("s", "next"), taken("unknown"), taken("s"), taken("s")])
    assert shape(sent_messages(ledger)) == ["go", "on", "S"]
    assert len(ledger.refused) == 3
    assert not ledger.queue


def test_notices_that_wait_go_out_before_a_steer() -> None:
    """S8, T2: it is the next text of the user."""
    records: list[Record] = [prompt("turn", "go"), steer("s", text="S"), notice("N"), told("T"), taken("s")]
    assert shape(sent_messages(fold_session(records))) == ["go", "[Notice] N", "[Notice] T", "S"]


# G15: a stored message stands behind the replies of the answer before it.


def test_told_between_two_calls_goes_out_behind_both_replies() -> None:
    """G15, T1: whenever it is recorded, it never stands between a call and its reply [I16]."""
    batch: list[Record] = [prompt("turn", "go"), proposes("turn", "one", "two")]
    for records in (
        [*batch, told("A", "turn"), *ran("one"), *ran("two")],
        [*batch, *ran("one"), told("A", "turn"), *ran("two")],
        [*batch, *ran("one"), *ran("two"), told("A", "turn")],
        [*batch, told("A", "turn")],
    ):
        messages = shape(sent_messages(fold_session(records)))
        assert messages == ["go", "calls one two", "reply one", "reply two", "[Notice] A"]


def test_told_while_the_model_answers_goes_out_behind_that_answer() -> None:
    """G15, P4: the request of that answer went out without it, so the answer stands before it, with its replies."""
    answer = attrs.evolve(proposes("turn", "one"), message_id=ident("answer"))
    records: list[Record] = [prompt("turn", "go"), told("A", "turn", after="answer"), told("B", "turn", after="answer")]
    assert shape(sent_messages(fold_session(records))) == ["go", "[Notice] A", "[Notice] B"]
    records += [answer, *ran("one"), told("C", "turn")]
    expected = ["go", "calls one", "reply one", "[Notice] A", "[Notice] B", "[Notice] C"]
    assert shape(sent_messages(fold_session(records))) == expected


@pytest.mark.parametrize("change", [{"withdrawn": True}, {"text": " "}])
def test_told_during_an_answer_that_is_not_sent_keeps_its_place(change: dict[str, object]) -> None:
    """G15, T6: an answer that was withdrawn or empty is no place to stand behind."""
    answer = Assistant(turn_id=ident("turn"), message_id=ident("answer"), text="half", finish="stop")
    records: list[Record] = [prompt("turn", "go"), told("A", "turn", after="answer")]
    records += [attrs.evolve(answer, **change), says("turn", "whole")]  # type: ignore[arg-type]
    assert shape(sent_messages(fold_session(records))) == ["go", "[Notice] A", "whole"]


def test_told_outside_a_turn_waits_for_the_next_prompt_in_its_order() -> None:
    """G15: it goes out before the next user text, in the order of the notices beside it; a quick question takes it
    too, and so does every request after."""
    records: list[Record] = [
        prompt("turn", "go"),
        says("turn", "done"),
        notice("first"),
        told("second"),
        notice("third"),
    ]
    ledger = fold_session(records)
    assert shape(sent_messages(ledger)) == ["go", "done"]
    waiting = ["[Notice] first", "[Notice] second", "[Notice] third"]
    assert shape(outgoing_messages(ledger, UserMessage("quick"))) == ["go", "done", *waiting, "quick"]
    assert shape(sent_messages(fold_session([*records, prompt("next", "on")]))) == ["go", "done", *waiting, "on"]


def test_request_to_continue_an_answer_ends_with_that_answer() -> None:
    """G15, P2: a stored message behind the answer is not part of the request that asks for its rest."""
    messages = sent_messages(fold_session([prompt("turn", "go"), says("turn", "half of"), told("A", "turn")]))
    assert shape(messages) == ["go", "half of", "[Notice] A"]
    assert shape(without_told_at_end(messages)) == ["go", "half of"]
    assert without_told_at_end(messages[:2]) == messages[:2]


def test_outgoing_is_the_same_live_and_read_back() -> None:
    """T5: a live ledger and one read back after a restart send the same messages."""
    records = crashed_while_writing()
    live = Ledger()
    for seq, record in enumerate(records, 1):
        live.apply(Stamped(seq=seq, at=AT, sum="", record=record))
    assert sent_messages(live) == sent_messages(ledger_of(journal(records)))


# T4, T6, T7, cases 16 and 17: invalid parts are replaced and never dropped.


@pytest.mark.parametrize("name", ["re\0ad", "", "a b", "x" * 65, "läsen", "read\n", "\ud800"])
def test_outgoing_invalid_tool_name_is_replaced_alone(name: str) -> None:
    """T4, case 16: one invalid name is sent as a valid one. The other messages and the stored record stay unchanged."""
    records: list[Record] = [
        prompt("turn", "go"),
        proposes("turn", "one", tool=name),
        replies("one", "refused", admitted=False),
    ]
    records += [proposes("turn", "two"), *ran("two")]
    ledger = fold_session(records)
    messages = sent_messages(ledger)
    names = [call.tool for message in messages if isinstance(message, AssistantMessage) for call in message.calls]
    assert names == [UNNAMED, "write_file"]
    assert ledger.calls[ident("one")].tool == name


@pytest.mark.parametrize("arguments", ["", "{", "[1]", '{"a":NaN}', '{"a":1,"a":2}', '{"a":"\\ud800"}'])
def test_outgoing_invalid_arguments_are_sent_as_an_empty_object(arguments: str) -> None:
    """T4, T6: valid empty arguments are sent, and the original stays stored."""
    records: list[Record] = [
        prompt("turn"),
        proposes("turn", "one", arguments=arguments),
        replies("one", "refused", admitted=False),
    ]
    ledger = fold_session(records)
    (asked,) = [call for m in sent_messages(ledger) if isinstance(m, AssistantMessage) for call in m.calls]
    assert asked.arguments == "{}"
    assert ledger.calls[ident("one")].arguments == arguments


def test_outgoing_valid_arguments_are_sent_unchanged() -> None:
    """T5: not even a blank is changed."""
    records = [prompt("turn"), proposes("turn", "one", arguments='{ "b": 1.0, "a": 2 }'), *ran("one")]
    (asked,) = [
        call for m in sent_messages(fold_session(records)) if isinstance(m, AssistantMessage) for call in m.calls
    ]
    assert asked == OutgoingCall(ident("one"), "write_file", '{ "b": 1.0, "a": 2 }')


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_outgoing_contains_no_empty_text(blank: str) -> None:
    """Case 17: a truncated answer without text is left out, and an empty output says that it is empty."""
    cut = Assistant(turn_id=ident("turn"), message_id=ident("cut"), text=blank)
    beside = attrs.evolve(proposes("turn", "one"), text=blank)
    records: list[Record] = [
        prompt("turn", "go"),
        cut,
        beside,
        replies("one", text=blank, admitted=False),
        prompt("next", blank),
    ]
    messages = sent_messages(fold_session(records))
    assert shape(messages) == ["go", "calls one", "reply one"]
    assert [message.text for message in messages] == ["go", "", EMPTY_REPLY]


def test_outgoing_uses_our_call_ids_when_provider_ids_repeat() -> None:
    """T7: our own ids decide, and those of the provider are in no message sent."""
    records: list[Record] = [prompt("turn", "go")]
    for call in ("one", "two"):
        records += [proposes("turn", call), *ran(call)]
    assert shape(sent_messages(fold_session(records))) == ["go", "calls one", "reply one", "calls two", "reply two"]


def test_outgoing_omits_a_withdrawn_answer() -> None:
    """T6: the answer was shown, and the request was repeated."""
    withdrawn = Assistant(
        turn_id=ident("turn"),
        message_id=ident("w"),
        text="half",
        calls=(Proposed(call_id=ident("one"), tool="x", arguments="{}"),),
        withdrawn=True,
    )
    ledger = fold_session([prompt("turn", "go"), withdrawn, says("turn", "whole")])
    assert missing_replies(ledger) == []
    assert shape(sent_messages(ledger)) == ["go", "whole"]


def test_outgoing_omits_slash_commands_and_user_only_notices() -> None:
    """A slash command and its answer are never sent to a model. A notice for the model waits for the next user text
    (T2).
    """
    quiet = attrs.evolve(notice("for the user"), model=False)
    records: list[Record] = [prompt("slash", "/recovery", command=True), says("slash", "a list"), notice("told"), quiet]
    assert sent_messages(fold_session(records)) == ()
    assert shape(sent_messages(fold_session([*records, prompt("next", "go on")]))) == ["[Notice] told", "go on"]


def test_outgoing_reply_carries_state_and_reason() -> None:
    """docs/protocol.md, States: the practice model reads how each call ended."""
    records = [prompt("turn"), proposes("turn", "one", "two"), *ran("one"), intends("two"), allows("two", "reject")]
    records += [
        Result(
            attempt_id=attempt_id("two"),
            call_id=ident("two"),
            turn_id=ident("turn"),
            outcome="refused",
            reason="denied",
        )
    ]
    records += [
        ToolResult(
            turn_id=ident("turn"),
            call_id=ident("two"),
            outcome="refused",
            text="no",
            bytes=2,
            reason="denied",
            attempt_id=attempt_id("two"),
        )
    ]
    states = [(m.state, m.reason) for m in sent_messages(fold_session(records)) if isinstance(m, ReplyMessage)]
    assert states == [("returned", None), ("refused", "denied")]


# The validator.

ONE, TWO = ident("one"), ident("two")
ASK = AssistantMessage("", (OutgoingCall(ONE, "read_file", "{}"),))
ASK_TWO = AssistantMessage("", (OutgoingCall(ONE, "a", "{}"), OutgoingCall(TWO, "b", "{}")))


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
            [AssistantMessage("", (OutgoingCall("c1", "a", "{}"),)), reply("c1")],
            "a call id that is not ours or stands twice",
        ),
        ([AssistantMessage("", (OutgoingCall(ONE, "a\0", "{}"),)), reply(ONE)], "a tool name no provider accepts"),
        ([AssistantMessage("", (OutgoingCall(ONE, "a", "{"),)), reply(ONE)], "arguments that are no JSON object"),
    ],
)
def test_validate_rejects_messages_that_no_provider_accepts(messages: list[OutMessage], why: str) -> None:
    """T1: pairing, order, empty texts, names, ids and arguments are checked last [I16]."""
    with pytest.raises(Invalid, match=why):
        validate(messages)


def test_validate_accepts_a_valid_history() -> None:
    """T1: the validator changes nothing."""
    sound: list[OutMessage] = [
        UserMessage("go"),
        ASK_TWO,
        reply(ONE),
        reply(TWO),
        AssistantMessage("done"),
        UserMessage("on"),
    ]
    validate(sound)
    validate([])
