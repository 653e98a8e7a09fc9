"""The ledger: the state folded from records, in their order and out of it."""

from __future__ import annotations

import itertools
from typing import get_args

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.ledger.ledger import Ledger, fold
from steadyhand.domain.records.prompt import Prompt
from steadyhand.domain.records.record import (
    Check,
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
    ToolResult,
    Unknown,
)
from steadyhand.domain.records.scope import EVERYTHING
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
    steer,
    taken,
    verdict,
    verdicts,
)


def stamp(records: list[Record]) -> list[Stamped]:
    return [Stamped(seq=seq, at=AT, sum=f"{seq:08x}", record=record) for seq, record in enumerate(records, 1)]


def fold_records(records: list[Record], *breaks: int, unacknowledged: int | None = None) -> Ledger:
    return fold(stamp(records), breaks, unacknowledged)


def turn_with_calls(*calls: str) -> list[Record]:
    return [*begun(), prompt("turn"), proposes("turn", *calls)]


def settlement(word: Settled, call: str = "one") -> Settlement:
    return Settlement(attempt_id=attempt_id(call), call_id=ident(call), settled=word, by="user")


def test_ledger_after_a_crash_gives_a_verdict_for_every_call() -> None:
    """J1, C1, C2: the fold alone says which calls ran, which did not and which are unknown."""
    assert verdicts(fold_records(crashed_while_writing())) == {
        ident("look"): "returned",
        ident("made"): "returned",
        ident("denied"): "refused",
        ident("running"): "unknown_after_restart",
        ident("later"): "interrupted_before_execution",
    }


def test_ledger_folded_twice_from_the_same_records_is_equal() -> None:
    """J1: the ledger can be dropped and folded again."""
    assert fold_records(crashed_while_writing()) == fold_records(crashed_while_writing())


def test_ledger_applied_live_equals_the_ledger_folded_from_records() -> None:
    """J1: a live ledger and one read back agree after every record."""
    live = Ledger()
    for count, one in enumerate(stamp(crashed_while_writing()), 1):
        live.apply(one)
        assert live == fold_records(crashed_while_writing()[:count])


# Uncertain attempts.


@pytest.mark.parametrize("at", range(3, 9))
def test_ledger_damage_after_the_intent_makes_the_call_unknown(at: int) -> None:
    """C1, J9: damage after a call's intent may hide its start. Damage before it cannot [I3]."""
    records = [*turn_with_calls("one"), intends("one"), allows("one"), prompt("next"), says("next", "text")]
    expected = "interrupted_before_execution" if at <= 4 else "unknown_after_restart"
    assert verdicts(fold_records(records, at))[ident("one")] == expected


@pytest.mark.parametrize("at", range(2, 7))
def test_ledger_damage_after_the_message_makes_the_call_unknown(at: int) -> None:
    """J9: damage after the message of a call without an intent may hide the intent and the start [I3]."""
    expected = "interrupted_before_execution" if at <= 3 else "unknown_after_restart"
    records = [*turn_with_calls("one"), prompt("next"), says("next", "text")]
    assert verdicts(fold_records(records, at))[ident("one")] == expected


def test_ledger_readable_result_stays_certain_despite_damage() -> None:
    """J9: a call with a readable result is certain, whatever is damaged around it."""
    for at in range(20):
        assert verdicts(fold_records([*turn_with_calls("one"), *ran("one")], at))[ident("one")] == "returned"


def test_ledger_read_without_a_reply_is_interrupted_despite_damage() -> None:
    """C7: a read without a reply was interrupted, with damage or without."""
    for breaks in ([], [4], [5]):
        ledger = fold_records([*turn_with_calls("look"), intends("look", effect="reads")], *breaks)
        assert verdicts(ledger)[ident("look")] == "interrupted"
        assert ledger.uncertain() == []


def test_ledger_start_without_an_intent_is_opaque_over_everything() -> None:
    """C3: without its intent a start is opaque, of every path, and unknown."""
    ledger = fold_records([*turn_with_calls("one"), starts("one")], 4)
    attempt = ledger.attempts[attempt_id("one")]
    assert (attempt.effect, attempt.scope, attempt.stage) == ("opaque", EVERYTHING, "started")
    assert verdicts(ledger)[ident("one")] == "unknown_after_restart"
    ledger.apply(Stamped(seq=9, at=AT, sum="", record=verdict("one", "unknown_after_restart")))
    assert ledger.uncertain() == [attempt]


def test_ledger_call_with_a_lost_message_is_known_by_its_records() -> None:
    """J9, C2: the records of the call stand in for its message."""
    ledger = fold_records([*begun(), prompt("turn"), intends("one"), starts("one")], 3)
    assert verdicts(ledger) == {ident("one"): "unknown_after_restart"}


def test_ledger_message_after_its_records_keeps_start_and_end() -> None:
    """Lines that changed places lose no start and no end of a call [I3]."""
    message = proposes("turn", "one")
    started = fold_records([*begun(), prompt("turn"), intends("one"), message, starts("one")], 3, 4, 5)
    assert verdicts(started) == {ident("one"): "unknown_after_restart"}
    done = fold_records([*begun(), prompt("turn"), *ran("one"), message], 3, 8)
    assert verdicts(done) == {ident("one"): "returned"}
    assert done.calls[ident("one")].tool == "write_file"


@given(st.permutations([proposes("turn", "one"), *ran("one")]))
def test_ledger_records_in_any_order_never_hide_that_a_call_ran(order: list[Record]) -> None:
    """Records in any order never turn a call that ran into one that did not [I3]."""
    ledger = fold_records(order, *range(len(order) + 1))
    assert verdicts(ledger)[ident("one")] in ("returned", "unknown_after_restart")


@given(st.sets(st.integers(0, 5)))
def test_ledger_lost_records_never_hide_that_a_call_ran(lost: set[int]) -> None:
    """Any record may be missing: as long as one that names the call is left, the call may have run [I3]."""
    records = [proposes("turn", "one"), *ran("one")]
    left = [record for at, record in enumerate(records) if at not in lost]
    ledger = fold_records(left, *range(len(left) + 1))
    if [record for record in left if record.kind != "permission"]:
        assert verdicts(ledger)[ident("one")] in ("returned", "unknown_after_restart")


def test_ledger_start_after_the_reply_keeps_the_call_open() -> None:
    """C2: a start that follows the reply of its call gets a verdict too [I3]."""
    ledger = fold_records([*turn_with_calls("one"), replies("one", admitted=False), starts("one")])
    assert [call.call_id for call in ledger.open_calls()] == [ident("one")]


def test_open_calls_are_listed_in_proposal_order() -> None:
    """C1: ended calls are not among them."""
    records = [*turn_with_calls("one", "look", "two"), *looked("look"), intends("two")]
    assert [call.call_id for call in fold_records(records).open_calls()] == [ident("one"), ident("two")]
    assert (
        fold_records([*records, ends("two", "refused"), replies("one", "refused", admitted=False)]).open_calls() == []
    )


# One terminal record, and then at most one settlement (J14).


@pytest.mark.parametrize(
    "extra",
    [
        ends("one", "failed"),
        verdict("one", "unknown_after_restart"),
        starts("one"),
        intends("one"),
        settlement("waived"),
    ],
    ids=lambda record: record.kind,
)
def test_ledger_record_after_the_terminal_record_is_refused(extra: Record) -> None:
    """J14, case 11: a second end, or another record that is not allowed there, changes nothing and is noted."""
    before, after = (
        fold_records([*turn_with_calls("one"), *ran("one")]),
        fold_records([*turn_with_calls("one"), *ran("one"), extra]),
    )
    assert after.attempts == before.attempts
    assert len(after.refused) == 1
    assert str(len(turn_with_calls()) + 6) in after.refused[0]


@pytest.mark.parametrize(("first", "second"), list(itertools.product(get_args(Settled), repeat=2)))
def test_ledger_only_a_checked_settlement_may_be_followed_once(first: Settled, second: Settled) -> None:
    """J14: only a settlement by check may be followed, once, and only by restored or superseded."""
    uncertain = [*turn_with_calls("one"), intends("one"), starts("one"), verdict("one", "unknown_after_restart")]
    ledger = fold_records([*uncertain, settlement(first), settlement(second), settlement("superseded")])
    follows = first.startswith("checked_") and second in ("restored", "superseded")
    found = ledger.attempts[attempt_id("one")].settlement
    assert found is not None
    may_follow = first.startswith("checked_")
    assert found.settled == (second if follows else "superseded" if may_follow else first)
    assert ledger.uncertain() == []
    assert len(ledger.refused) == (1 if may_follow else 2)


def test_ledger_reject_leaves_the_attempt_uncertain() -> None:
    """A5: a reject is a note. The attempt stays uncertain and can be settled."""
    uncertain = [*turn_with_calls("one"), intends("one"), starts("one"), verdict("one", "unknown")]
    ledger = fold_records(
        [*uncertain, Reject(attempt_id=attempt_id("one"), call_id=ident("one"), inspection_id=ident("look"))]
    )
    assert [(attempt.attempt_id, attempt.rejected) for attempt in ledger.uncertain()] == [(attempt_id("one"), True)]


def test_ledger_second_recovery_verdict_changes_nothing() -> None:
    """C4, case 4, case 11: the verdict that a second recovery records of the same call is refused."""
    uncertain = [*turn_with_calls("one"), intends("one"), starts("one")]
    once = fold_records([*uncertain, verdict("one", "unknown_after_restart")])
    twice = fold_records([*uncertain, verdict("one", "unknown_after_restart"), verdict("one", "unknown_after_restart")])
    assert once.attempts == twice.attempts
    assert once.open_calls() == twice.open_calls() == []


def test_ledger_second_reply_of_a_call_is_refused() -> None:
    """Case 10: each call has one reply, the first."""
    ledger = fold_records([*turn_with_calls("one"), *ran("one"), replies("one", text="again")])
    reply = ledger.calls[ident("one")].reply
    assert reply is not None
    assert reply.text == "done"
    assert len(ledger.refused) == 1


def test_ledger_duplicate_message_counts_once() -> None:
    """Case 10, case 25: a call proposed a second time does not begin again."""
    records = [*turn_with_calls("one"), *ran("one"), proposes("turn", "one")]
    ledger = fold_records(records)
    assert ledger.said == fold_records(records[:-1]).said
    assert verdicts(ledger)[ident("one")] == "returned"
    assert ledger.open_calls() == []


# An unacknowledged tail (J6).

TAIL: list[Record] = [
    *turn_with_calls("one"),
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
def test_ledger_unacknowledged_tail_counts_starts_but_no_results(
    told_by: str, first: int, said: str, grants: int
) -> None:
    """J5, J6: a result in the tail is ignored and a start counts. A damage record and the caller that opens the journal
    have the same effect [I12].
    """
    first += 0 if first < 9 else 1
    if told_by == "a damage record":
        ledger = fold_records(
            [*TAIL, Damage(count=0, unacknowledged=first), Epoch(epoch=ident("epoch 2"), pid=1, host="host")]
        )
    else:
        ledger = fold_records(TAIL, unacknowledged=first)
    assert verdicts(ledger)[ident("one")] == said
    assert len(ledger.grants) == grants


def test_ledger_mode_in_the_unacknowledged_tail_does_not_count() -> None:
    """J6, G1: nobody was told that the session is in `auto` now, so it allows no call unasked."""
    records: list[Record] = [*begun(), ModeSet(mode="auto")]
    assert fold_records(records).mode == "auto"
    assert fold_records(records, unacknowledged=len(records)).mode == "ask"
    told = [*records, Damage(count=0, unacknowledged=len(records))]
    assert fold_records(told).mode == "ask"
    assert fold_records([*told, ModeSet(mode="edits")]).mode == "edits"


def test_ledger_reply_in_the_unacknowledged_tail_does_not_count() -> None:
    """J6, T2: the reply is ignored with its result, so another text may replace it. The read is read again (C7)."""
    records = [*turn_with_calls("look"), *looked("look")]
    assert verdicts(fold_records(records, unacknowledged=7))[ident("look")] == "returned"
    ledger = fold_records(records, unacknowledged=6)
    assert ledger.calls[ident("look")].reply is None
    assert verdicts(ledger)[ident("look")] == "interrupted"


def test_ledger_records_after_the_unacknowledged_tail_count() -> None:
    """J6: the verdict of the next writer counts, and nothing is classified twice."""
    after: list[Record] = [Damage(count=0, unacknowledged=8), Epoch(epoch=ident("epoch 2"), pid=1, host="host")]
    ledger = fold_records([*TAIL, *after, verdict("one", "unknown_after_restart"), settlement("waived")])
    assert ledger.open_calls() == []
    attempt = ledger.attempts[attempt_id("one")]
    assert attempt.result is not None
    assert attempt.settlement is not None
    assert attempt.result.by == "recovery"


def test_ledger_end_in_the_unacknowledged_tail_leaves_a_start_unknown() -> None:
    """J6: an acknowledged start stays unknown, whatever end is read back after it [I3]."""
    for outcome in ("refused", "not_started", "returned", "failed"):
        records = [
            *turn_with_calls("one"),
            intends("one"),
            starts("one"),
            ends("one", outcome),
            replies("one", outcome),
        ]
        assert verdicts(fold_records(records, unacknowledged=7))[ident("one")] == "unknown_after_restart"


# Titles, the queue, turns, modes and other state.


def test_ledger_user_title_is_replaced_only_by_a_user_title() -> None:
    """S3: an automatic title never overwrites a title of the user. Another title of the user does."""
    ledger = fold_records(
        [
            *begun(),
            Title(title="auto 1", source="auto"),
            Title(title="mine", source="user"),
            Title(title="auto 2", source="auto"),
        ]
    )
    assert (ledger.title, ledger.title_source) == ("mine", "user")
    ledger.apply(Stamped(seq=9, at=AT, sum="", record=Title(title="mine too", source="user")))
    assert ledger.title == "mine too"


def test_ledger_steer_waits_before_the_prompts_until_it_is_taken_or_begins() -> None:
    """S8, D1: in the order of sending; an edit keeps its place, and a second record with its id is refused."""
    waiting: list[Record] = [
        prompt("turn"),
        Queue(client_message_id="p1", turn_id="t1", text="a"),
        steer("s1"),
        steer("s2"),
        steer("s3"),
        Queue(client_message_id="s2", turn_id=ident("steer s2"), text="edited"),
    ]
    ledger = fold_records([*begun(), *waiting])
    assert list(ledger.queue) == ["s1", "s2", "s3", "p1"]
    assert [one.steers for one in ledger.queue.values()] == [ident("turn")] * 3 + [None]
    assert ledger.turns_begun == 1, "it begins no turn"
    begins = attrs.evolve(prompt("steer s3", "text of s3"), client_message_id="s3")
    again = steer("s1", text="something else")
    ledger = fold_records([*begun(), *waiting, taken("s2"), begins, again])
    assert list(ledger.queue) == ["s1", "p1"]
    assert ledger.refused == ["a steer with the id s1, which is used already"]
    said = [(one.record.kind, one.record.text, one.turn_id) for one in ledger.said if one.record.text != "do it"]
    assert said == [("steer", "edited", ident("turn")), ("user", "text of s3", ident("steer s3"))]
    assert ledger.prompts["s2"] == (ident("turn"), Prompt("text of s2")), "the text as sent, for a resend"
    assert ledger.prompts["s3"] == (ident("steer s3"), Prompt("text of s3"))


def test_ledger_steer_in_an_unacknowledged_tail_counts_for_nothing() -> None:
    """S8, J6 [I12]: it was refused, so sending it again repeats nothing; what was to take it was not sent."""
    records: list[Record] = [*begun(), prompt("turn"), steer("s"), taken("s")]
    last = len(records)
    assert not fold_records(records).queue
    assert list(fold_records(records, unacknowledged=last).queue) == ["s"]
    assert list(fold_records(records, unacknowledged=last - 1).prompts) == ["client-turn"]


def test_ledger_queue_keeps_order_over_edit_removal_and_start() -> None:
    """S4, D1: an entry is edited in place, removed, and dropped when its turn begins."""
    waiting = [
        Queue(client_message_id="p1", turn_id="t1", text="a"),
        Queue(client_message_id="p2", turn_id="t2", text="b"),
        Queue(client_message_id="p3", turn_id="t3", text="c"),
        Queue(client_message_id="p1", turn_id="t1", text="A"),
    ]
    ledger = fold_records([*begun(), *waiting, Queue(client_message_id="p2", turn_id="t2", text="b", removed=True)])
    assert [(item.client_message_id, item.text) for item in ledger.queue.values()] == [("p1", "A"), ("p3", "c")]
    begins = prompt("turn")
    ledger = fold_records(
        [*begun(), Queue(client_message_id=begins.client_message_id, turn_id=begins.turn_id, text="x"), begins]
    )
    assert not ledger.queue
    assert ledger.prompts[begins.client_message_id] == (begins.turn_id, Prompt("x")), "the prompt as sent, for a resend"


def test_ledger_first_end_of_a_turn_counts() -> None:
    """J14: a second end changes nothing."""
    ledger = fold_records(
        [
            *begun(),
            prompt("turn"),
            Ended(turn_id=ident("turn"), reason="done"),
            Ended(turn_id=ident("turn"), reason="cancelled"),
        ]
    )
    end = ledger.turns[ident("turn")].ended
    assert end is not None
    assert end.reason == "done"


def test_ledger_unknown_record_kind_changes_nothing() -> None:
    """X1: an unknown kind is ignored."""
    ledger = fold([*stamp(begun()), Stamped(seq=3, at=AT, sum="", record=Unknown(kind_name="compaction"))], ())
    assert ledger == fold_records(begun())


def test_ledger_mode_is_the_last_recorded_mode() -> None:
    """G2: modes are records."""
    assert fold_records([*begun(), ModeSet(mode="plan"), ModeSet(mode="edits")]).mode == "edits"


def test_ledger_many_damaged_lines_are_folded_in_time() -> None:
    """The work for damage in many lines grows with the open calls, not with all records [I13]."""
    records: list[Record] = [*begun()]
    for turn in range(1000):
        records += [prompt(f"{turn}"), proposes(f"{turn}", f"one {turn}"), *ran(f"one {turn}", f"{turn}")]
    ledger = fold_records(records, *range(len(records)))
    assert len(ledger.attempts) == 1000
    assert ledger.open_calls() == []


def test_ledger_last_inspection_of_an_attempt_counts() -> None:
    """A4: a decision rests on the last inspection, and its check is shown."""
    uncertain = [*turn_with_calls("one"), intends("one"), starts("one"), verdict("one", "unknown")]
    checks: list[tuple[str, Check]] = [("first", "unchanged"), ("second", "conflict")]
    inspections = [
        Inspection(
            inspection_id=ident(name),
            attempt_id=attempt_id("one"),
            call_id=ident("one"),
            state="unknown",
            by="user",
            check=check,
        )
        for name, check in checks
    ]
    attempt = fold_records([*uncertain, *inspections]).attempts[attempt_id("one")]
    assert attempt.inspection == inspections[1]
    assert attempt.check == "conflict"


def test_ledger_first_supplied_text_for_a_missing_reply_is_final() -> None:
    """T2: the first text stays. Another text, or a text beside a reply, is refused."""
    words = Supplied(turn_id=ident("turn"), call_id=ident("one"), text="first words")
    ledger = fold_records(
        [*turn_with_calls("one"), words, Supplied(turn_id=ident("turn"), call_id=ident("one"), text="other words")]
    )
    assert ledger.calls[ident("one")].supplied == "first words"
    assert len(ledger.refused) == 1
    assert fold_records([*turn_with_calls("one"), *ran("one"), words]).calls[ident("one")].supplied is None


def test_ledger_records_of_an_unknown_attempt_are_refused() -> None:
    """J14: a settlement, an inspection or a reject of an attempt without any other record."""
    lone: list[Record] = [
        settlement("waived", "ghost"),
        Reject(attempt_id=attempt_id("ghost"), call_id=ident("ghost"), inspection_id="i"),
        Inspection(
            inspection_id="i", attempt_id=attempt_id("ghost"), call_id=ident("ghost"), state="unknown", by="user"
        ),
    ]
    ledger = fold_records([*begun(), *lone])
    assert not ledger.attempts
    assert len(ledger.refused) == 3


def test_ledger_attempt_has_the_scope_and_key_of_its_intent() -> None:
    """N1: the intent identifies an attempt."""
    scope = Scope(("/w/b", "/w/a"))
    attempt = fold_records([*turn_with_calls("one"), intends("one", scope=scope)]).attempts[attempt_id("one")]
    assert attempt.scope == scope
    assert (attempt.key, attempt.occurrence, attempt.stage) == (intends("one").key, 0, "intended")


def test_ledger_verdict_without_an_attempt_has_scope_everything() -> None:
    """J9, C3: a proposed call whose records damage may have hidden holds back everything."""
    ledger = fold_records(
        [
            *turn_with_calls("one"),
            Result(
                attempt_id=ident("new"),
                call_id=ident("one"),
                turn_id=ident("turn"),
                outcome="unknown_after_restart",
                by="recovery",
            ),
        ]
    )
    assert [attempt.scope for attempt in ledger.uncertain()] == [EVERYTHING]


def test_ledger_reply_without_an_attempt_ends_the_call() -> None:
    """T6: a call that never became an attempt ends with its reply."""
    reply = ToolResult(
        turn_id=ident("turn"), call_id=ident("one"), outcome="refused", text="no", bytes=2, reason="unknown_tool"
    )
    assert verdicts(fold_records([*turn_with_calls("one"), reply]))[ident("one")] == "refused"
