"""The ledger: what is folded from records, in their order and out of it."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.core.ledger import Ledger, fold
from steadyhand.core.prompt import Prompt
from steadyhand.core.record import (
    Damage,
    Ended,
    Epoch,
    Inspection,
    ModeSet,
    Queue,
    Record,
    Reject,
    Result,
    Scope,
    Settled,
    Settlement,
    Stamped,
    Supplied,
    Title,
    Tool,
    Unknown,
)
from steadyhand.core.scope import EVERYTHING
from tests.support.journals import (
    AT,
    allows,
    attempt_id,
    begun,
    crashed_while_writing,
    ends,
    ident,
    intends,
    looked,
    prompt,
    proposes,
    ran,
    replies,
    says,
    starts,
    verdict,
    verdicts,
)


def stamped(records: list[Record]) -> list[Stamped]:
    return [Stamped(seq, AT, f"{seq:08x}", record) for seq, record in enumerate(records, 1)]


def folded(records: list[Record], *breaks: int, unacknowledged: int | None = None) -> Ledger:
    return fold(stamped(records), breaks, unacknowledged)


def asked(*calls: str) -> list[Record]:
    return [*begun(), prompt("turn"), proposes("turn", *calls)]


def settled(word: Settled, call: str = "one") -> Settlement:
    return Settlement(attempt_id(call), ident(call), word, "user")


def test_the_story_of_a_crash() -> None:
    """J1, C1, C2: a fold alone says what ran, what did not, and what nobody knows."""
    assert verdicts(folded(crashed_while_writing())) == {
        ident("look"): "returned",
        ident("made"): "returned",
        ident("denied"): "refused",
        ident("running"): "unknown_after_restart",
        ident("later"): "interrupted_before_execution",
    }


def test_the_same_records_make_the_same_ledger() -> None:
    """J1: the ledger may be thrown away and folded again."""
    assert folded(crashed_while_writing()) == folded(crashed_while_writing())


def test_folding_on_is_folding_anew() -> None:
    """J1: a live ledger and one read back agree after every record."""
    live = Ledger()
    for count, one in enumerate(stamped(crashed_while_writing()), 1):
        live.apply(one)
        assert live == folded(crashed_while_writing()[:count])


# Doubt.


@pytest.mark.parametrize("at", range(3, 9))
def test_a_broken_joint_counts_from_the_intent_on(at: int) -> None:
    """C1, J9: damage after its intent may hide a call's start; damage before it may not [I3]."""
    records = [*asked("one"), intends("one"), allows("one"), prompt("next"), says("next", "text")]
    expected = "interrupted_before_execution" if at <= 4 else "unknown_after_restart"
    assert verdicts(folded(records, at))[ident("one")] == expected


@pytest.mark.parametrize("at", range(2, 7))
def test_a_broken_joint_counts_from_the_message_on(at: int) -> None:
    """J9: damage after the message of a call without an intent may hide its intent and its start [I3]."""
    expected = "interrupted_before_execution" if at <= 3 else "unknown_after_restart"
    records = [*asked("one"), prompt("next"), says("next", "text")]
    assert verdicts(folded(records, at))[ident("one")] == expected


def test_a_break_before_an_end_leaves_the_end() -> None:
    """J9: what has a readable result is certain, whatever is damaged around it."""
    for at in range(20):
        assert verdicts(folded([*asked("one"), *ran("one")], at))[ident("one")] == "returned"


def test_reads_never_become_uncertain() -> None:
    """C7: a read without a reply was cut off, damage or not."""
    for breaks in ([], [4], [5]):
        ledger = folded([*asked("look"), intends("look", effect="reads")], *breaks)
        assert verdicts(ledger)[ident("look")] == "interrupted"
        assert ledger.uncertain() == []


def test_a_start_of_unknown_origin_may_touch_everything() -> None:
    """C3: without its intent a start is opaque, of everything, and unknown."""
    ledger = folded([*asked("one"), starts("one")], 4)
    attempt = ledger.attempts[attempt_id("one")]
    assert (attempt.effect, attempt.scope, attempt.stage) == ("opaque", EVERYTHING, "started")
    assert verdicts(ledger)[ident("one")] == "unknown_after_restart"
    ledger.apply(Stamped(9, AT, "", verdict("one", "unknown_after_restart")))
    assert ledger.uncertain() == [attempt]


def test_a_call_whose_message_is_lost_is_still_known() -> None:
    """J9, C2: its records stand for it."""
    ledger = folded([*begun(), prompt("turn"), intends("one"), starts("one")], 3)
    assert verdicts(ledger) == {ident("one"): "unknown_after_restart"}


def test_a_message_after_its_records_keeps_them() -> None:
    """Lines that changed places lose no start and no end of a call [I3]."""
    message = proposes("turn", "one")
    started = folded([*begun(), prompt("turn"), intends("one"), message, starts("one")], 3, 4, 5)
    assert verdicts(started) == {ident("one"): "unknown_after_restart"}
    done = folded([*begun(), prompt("turn"), *ran("one"), message], 3, 8)
    assert verdicts(done) == {ident("one"): "returned"}
    assert done.calls[ident("one")].tool == "write_file"


@given(st.permutations([proposes("turn", "one"), *ran("one")]))
def test_no_order_of_lines_says_that_it_did_not_run(order: list[Record]) -> None:
    """Lines in any order at all never make a call that ran one that did not [I3]."""
    ledger = folded(order, *range(len(order) + 1))
    assert verdicts(ledger)[ident("one")] in ("returned", "unknown_after_restart")


@given(st.sets(st.integers(0, 5)))
def test_no_loss_says_that_it_did_not_run(lost: set[int]) -> None:
    """Any of its lines may be missing: as long as one is left that names the call, it may have run [I3]."""
    records = [proposes("turn", "one"), *ran("one")]
    left = [record for at, record in enumerate(records) if at not in lost]
    ledger = folded(left, *range(len(left) + 1))
    if [record for record in left if record.kind != "permission"]:
        assert verdicts(ledger)[ident("one")] in ("returned", "unknown_after_restart")


def test_an_attempt_after_its_reply_is_open() -> None:
    """C2: a start that stands behind the reply of its call gets its verdict too [I3]."""
    ledger = folded([*asked("one"), replies("one", admitted=False), starts("one")])
    assert [call.call_id for call in ledger.open_calls()] == [ident("one")]


def test_open_calls_stand_as_they_were_proposed() -> None:
    """C1: what ended is not among them."""
    records = [*asked("one", "look", "two"), *looked("look"), intends("two")]
    assert [call.call_id for call in folded(records).open_calls()] == [ident("one"), ident("two")]
    assert folded([*records, ends("two", "refused"), replies("one", "refused", admitted=False)]).open_calls() == []


# One end, and then at most one settlement (J14).


@pytest.mark.parametrize(
    "extra",
    [ends("one", "failed"), verdict("one", "unknown_after_restart"), starts("one"), intends("one"), settled("waived")],
    ids=lambda record: record.kind,
)
def test_what_ended_stays_as_it_ended(extra: Record) -> None:
    """J14, case 11: a second end, or whatever may not stand there, changes nothing and is noted."""
    before, after = folded([*asked("one"), *ran("one")]), folded([*asked("one"), *ran("one"), extra])
    assert after.attempts == before.attempts
    assert len(after.refused) == 1
    assert str(len(asked()) + 6) in after.refused[0]


@pytest.mark.parametrize(("first", "second"), list(itertools.product(get_args(Settled), repeat=2)))
def test_a_second_settlement(first: Settled, second: Settled) -> None:
    """J14: only one by check may be followed, and only by restored or superseded, once."""
    doubt = [*asked("one"), intends("one"), starts("one"), verdict("one", "unknown_after_restart")]
    ledger = folded([*doubt, settled(first), settled(second), settled("superseded")])
    follows = first.startswith("checked_") and second in ("restored", "superseded")
    found = ledger.attempts[attempt_id("one")].settlement
    assert found is not None
    may_follow = first.startswith("checked_")
    assert found.settled == (second if follows else "superseded" if may_follow else first)
    assert ledger.uncertain() == []
    assert len(ledger.refused) == (1 if may_follow else 2)


def test_a_reject_frees_nothing() -> None:
    """A5: it is a note; the attempt stays uncertain and can be settled."""
    doubt = [*asked("one"), intends("one"), starts("one"), verdict("one", "unknown")]
    ledger = folded([*doubt, Reject(attempt_id("one"), ident("one"), ident("look"))])
    assert [(attempt.attempt_id, attempt.rejected) for attempt in ledger.uncertain()] == [(attempt_id("one"), True)]


def test_two_recoveries_leave_one_verdict() -> None:
    """C4, case 4, case 11: what a second recovery records of the same call is refused."""
    doubt = [*asked("one"), intends("one"), starts("one")]
    once = folded([*doubt, verdict("one", "unknown_after_restart")])
    twice = folded([*doubt, verdict("one", "unknown_after_restart"), verdict("one", "unknown_after_restart")])
    assert once.attempts == twice.attempts
    assert once.open_calls() == twice.open_calls() == []


def test_a_second_reply_is_passed_over() -> None:
    """Case 10: each call has one reply, the first."""
    ledger = folded([*asked("one"), *ran("one"), replies("one", text="again")])
    reply = ledger.calls[ident("one")].reply
    assert reply is not None
    assert reply.text == "done"
    assert len(ledger.refused) == 1


def test_a_message_that_stands_twice_is_said_once() -> None:
    """Case 10, case 25: a call proposed a second time does not begin again."""
    records = [*asked("one"), *ran("one"), proposes("turn", "one")]
    ledger = folded(records)
    assert ledger.said == folded(records[:-1]).said
    assert verdicts(ledger)[ident("one")] == "returned"
    assert ledger.open_calls() == []


# An unacknowledged tail (J6).

TAIL: list[Record] = [
    *asked("one"),
    intends("one"),
    allows("one", "session"),
    starts("one"),
    ends("one"),
    replies("one"),
]


@pytest.mark.parametrize("told_by", ["a damage record", "the one who opens"])
@pytest.mark.parametrize(
    ("first", "said", "grants"),
    [
        (9, "returned", 1),
        (8, "unknown_after_restart", 1),  # the result and its reply
        (7, "unknown_after_restart", 1),  # a start counts
        (6, "unknown_after_restart", 0),  # a grant does not
        (5, "unknown_after_restart", 0),
    ],
)
def test_an_unacknowledged_tail_counts_against_us_only(told_by: str, first: int, said: str, grants: int) -> None:
    """J5, J6: a result read back from it is passed over, a start is not; it is the same told either way [I12]."""
    first += 0 if first < 9 else 1
    if told_by == "a damage record":
        ledger = folded([*TAIL, Damage(0, unacknowledged=first), Epoch(ident("epoch 2"), 1, "host")])
    else:
        ledger = folded(TAIL, unacknowledged=first)
    assert verdicts(ledger)[ident("one")] == said
    assert len(ledger.grants) == grants


def test_a_reply_in_the_tail_was_never_given() -> None:
    """J6, T2: it is passed over with its result, so other words may stand for it; the read is read again (C7)."""
    records = [*asked("look"), *looked("look")]
    assert verdicts(folded(records, unacknowledged=7))[ident("look")] == "returned"
    ledger = folded(records, unacknowledged=6)
    assert ledger.calls[ident("look")].reply is None
    assert verdicts(ledger)[ident("look")] == "interrupted"


def test_what_follows_the_tail_counts() -> None:
    """J6: the verdict that the next writer records stands, and nothing is classified twice."""
    after: list[Record] = [Damage(0, unacknowledged=8), Epoch(ident("epoch 2"), 1, "host")]
    ledger = folded([*TAIL, *after, verdict("one", "unknown_after_restart"), settled("waived")])
    assert ledger.open_calls() == []
    attempt = ledger.attempts[attempt_id("one")]
    assert attempt.result is not None
    assert attempt.settlement is not None
    assert attempt.result.by == "recovery"


def test_nothing_in_the_tail_says_that_it_did_not_run() -> None:
    """J6: an acknowledged start stays unknown, whatever end is read back behind it [I3]."""
    for outcome in ("refused", "not_started", "returned", "failed"):
        records = [*asked("one"), intends("one"), starts("one"), ends("one", outcome), replies("one", outcome)]
        assert verdicts(folded(records, unacknowledged=7))[ident("one")] == "unknown_after_restart"


# The rest of the view.


def test_a_title_of_the_user_stays() -> None:
    """S3: an automatic title never overwrites one the user gave; another of the user does."""
    ledger = folded([*begun(), Title("auto 1", "auto"), Title("mine", "user"), Title("auto 2", "auto")])
    assert (ledger.title, ledger.title_source) == ("mine", "user")
    ledger.apply(Stamped(9, AT, "", Title("mine too", "user")))
    assert ledger.title == "mine too"


def test_the_queue_keeps_its_order() -> None:
    """S4, D1: edited in place, removed, and left when its turn begins."""
    waiting = [Queue("p1", "t1", "a"), Queue("p2", "t2", "b"), Queue("p3", "t3", "c"), Queue("p1", "t1", "A")]
    ledger = folded([*begun(), *waiting, Queue("p2", "t2", "b", removed=True)])
    assert [(item.client_message_id, item.text) for item in ledger.queue.values()] == [("p1", "A"), ("p3", "c")]
    begins = prompt("turn")
    ledger = folded([*begun(), Queue(begins.client_message_id, begins.turn_id, "x"), begins])
    assert not ledger.queue
    assert ledger.prompts[begins.client_message_id] == (begins.turn_id, Prompt("x")), "as it was sent, for a resend"


def test_a_turn_ends_once() -> None:
    """J14: the first end of a turn stands."""
    ledger = folded([*begun(), prompt("turn"), Ended(ident("turn"), "done"), Ended(ident("turn"), "cancelled")])
    end = ledger.turns[ident("turn")].ended
    assert end is not None
    assert end.reason == "done"


def test_kinds_of_a_later_version_change_nothing() -> None:
    """X1: an unknown kind is passed over."""
    ledger = fold([*stamped(begun()), Stamped(3, AT, "", Unknown("compaction"))], ())
    assert ledger == folded(begun())


def test_the_mode_is_the_last_one() -> None:
    """G2: modes are records."""
    assert folded([*begun(), ModeSet("plan"), ModeSet("edits")]).mode == "edits"


def test_many_breaks_cost_little() -> None:
    """Damage in each of many lines is work for what is open, not for all there ever was [I13]."""
    records: list[Record] = [*begun()]
    for turn in range(1000):
        records += [prompt(f"{turn}"), proposes(f"{turn}", f"one {turn}"), *ran(f"one {turn}", f"{turn}")]
    ledger = folded(records, *range(len(records)))
    assert len(ledger.attempts) == 1000
    assert ledger.open_calls() == []


def test_an_inspection_is_the_last_one() -> None:
    """A4: what was found last is what a decision rests on, and its check is the one shown."""
    doubt = [*asked("one"), intends("one"), starts("one"), verdict("one", "unknown")]
    looks = [
        Inspection(ident(name), attempt_id("one"), ident("one"), "unknown", "user", check=check)
        for name, check in (("first", "unchanged"), ("second", "conflict"))
    ]
    attempt = folded([*doubt, *looks]).attempts[attempt_id("one")]
    assert attempt.inspection == looks[1]
    assert attempt.check == "conflict"


def test_words_for_a_missing_reply_are_fixed() -> None:
    """T2: the first words stand; others, and words beside a reply, are refused."""
    words = Supplied(ident("turn"), ident("one"), "first words")
    ledger = folded([*asked("one"), words, Supplied(ident("turn"), ident("one"), "other words")])
    assert ledger.calls[ident("one")].supplied == "first words"
    assert len(ledger.refused) == 1
    assert folded([*asked("one"), *ran("one"), words]).calls[ident("one")].supplied is None


def test_records_of_nobody_are_refused() -> None:
    """J14: a settlement, a look or a note of an attempt that nothing is known of."""
    lone: list[Record] = [
        settled("waived", "ghost"),
        Reject(attempt_id("ghost"), ident("ghost"), "i"),
        Inspection("i", attempt_id("ghost"), ident("ghost"), "unknown", "user"),
    ]
    ledger = folded([*begun(), *lone])
    assert not ledger.attempts
    assert len(ledger.refused) == 3


def test_scope_and_key_stand_with_the_attempt() -> None:
    """N1: an attempt is known by what its intent says."""
    scope = Scope(("/w/b", "/w/a"))
    attempt = folded([*asked("one"), intends("one", scope=scope)]).attempts[attempt_id("one")]
    assert attempt.scope == scope
    assert (attempt.key, attempt.occurrence, attempt.stage) == (intends("one").key, 0, "intended")


def test_a_verdict_without_an_attempt_is_one_of_unknown_origin() -> None:
    """J9, C3: a proposed call that damage may have hidden holds back everything."""
    ledger = folded(
        [*asked("one"), Result(ident("new"), ident("one"), ident("turn"), "unknown_after_restart", by="recovery")]
    )
    assert [attempt.scope for attempt in ledger.uncertain()] == [EVERYTHING]


def test_a_reply_alone_ends_a_call() -> None:
    """T6: a call that never became an attempt ends with its reply."""
    reply = Tool(ident("turn"), ident("one"), "refused", "no", 2, reason="unknown_tool")
    assert verdicts(folded([*asked("one"), reply]))[ident("one")] == "refused"
