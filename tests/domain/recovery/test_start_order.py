"""Which start came later: by the journals and by this process, never by a clock (F3, B4, case 166)."""

from __future__ import annotations

import attrs
import pytest

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.record import Inspection, Record, Scope
from steadyhand.domain.records.scope import EVERYTHING
from steadyhand.domain.recovery import start_order
from steadyhand.domain.recovery.start_order import ReadSession, StartOrder, oldest_first, overtaken_attempts
from tests.support.journals import (
    allows,
    attempt_id,
    begun,
    ends,
    ident,
    intends,
    journal,
    ledger_of,
    prompt,
    proposes,
    ran,
    starts,
    verdict,
)

FILE, ELSEWHERE = Scope(("/w/a.txt",)), Scope(("/w/b.txt",))
MINE = "session"


def history(*records: Record) -> Ledger:
    return ledger_of(journal([*begun(), prompt("turn"), *records]))


def absent(call: str = "old", *later: Record) -> Ledger:
    """A write that an inspection found absent and fenced, and what its journal has after its start."""
    looked = Inspection(
        inspection_id=ident("look"),
        attempt_id=attempt_id(call),
        call_id=ident(call),
        state="absent_fenced",
        by="user",
        check="unchanged",
    )
    begin: list[Record] = [proposes("turn", call), intends(call, scope=FILE), allows(call), starts(call)]
    return history(*begin, verdict(call, "unknown_after_restart"), *later, looked)


def ran_there(call: str, scope: Scope = FILE) -> Ledger:
    """Another session's journal with one write that returned."""
    return history(proposes("turn", call), intends(call, scope=scope), allows(call), starts(call), ends(call))


def attempt_of(ledger: Ledger, call: str) -> Attempt:
    return ledger.attempts[attempt_id(call)]


def numbered(*starts_here: tuple[str, Ledger, str]) -> StartOrder:
    """The order of a process that made these starts: (session, ledger, call)."""
    order = StartOrder()
    for session_id, ledger, call in starts_here:
        order.add(session_id, attempt_of(ledger, call))
    return order


def is_overtaken(ledger: Ledger, order: StartOrder, *others: ReadSession) -> bool:
    return overtaken_attempts(MINE, ledger, others, order) == {attempt_id("old")}


def test_start_is_overtaken_by_a_later_one_of_its_own_journal() -> None:
    """F3: by the order of the records. Another file, an earlier start, and a call that never started do not count."""
    later: list[Record] = [proposes("turn", "new"), intends("new", scope=FILE), allows("new"), starts("new")]
    assert is_overtaken(absent("old", *later), StartOrder())
    assert not is_overtaken(absent("old", *later[:-1]), StartOrder())
    other_file: list[Record] = [proposes("turn", "new"), intends("new", scope=ELSEWHERE), allows("new"), starts("new")]
    assert not is_overtaken(absent("old", *other_file), StartOrder())
    assert not is_overtaken(absent(), StartOrder())


def test_start_of_an_earlier_process_is_overtaken_by_each_start_here() -> None:
    """F3, case 166: whatever the clock says, an effect that this process started came later than what it read."""
    mine, other = absent(), ran_there("other")
    assert is_overtaken(mine, numbered(("other session", other, "other")))
    assert is_overtaken(mine, numbered(("other session", ran_there("other", EVERYTHING), "other")))
    assert not is_overtaken(mine, numbered(("other session", ran_there("other", ELSEWHERE), "other")))


@pytest.mark.parametrize(("first", "expected"), [("old", True), ("other", False)])
def test_starts_of_this_process_are_ordered_by_their_numbers(first: str, expected: bool) -> None:
    """F3, case 166: both started here. The one with the higher number came later."""
    mine, other = absent(), ran_there("other")
    both = [(MINE, mine, "old"), ("other session", other, "other")]
    order = numbered(*(both if first == "old" else reversed(both)))
    assert is_overtaken(mine, order, ReadSession(other, 0)) is expected


@pytest.mark.parametrize(("read_at", "expected"), [(0, False), (1, True), (2, True)])
def test_start_read_before_a_numbered_one_came_before_it(read_at: int, expected: bool) -> None:
    """F3, case 166: the other session's journal was read before this process made its first start, or after it."""
    mine, other = absent(), ran_there("other")
    assert is_overtaken(mine, numbered((MINE, mine, "old")), ReadSession(other, read_at)) is expected


def test_starts_of_earlier_processes_have_no_known_order() -> None:
    """F3, case 166: two journals that this process read do not say which start came first, and times do not count. So
    the other one counts as later."""
    mine, other = absent(), ran_there("other")
    for at in ("2020", "2026", "2030"):
        attempt_of(other, "other").started_at = at
        assert is_overtaken(mine, StartOrder(), ReadSession(other, 0))
    assert not is_overtaken(mine, StartOrder(), ReadSession(ran_there("other", ELSEWHERE), 0))


def test_numbered_start_counts_after_its_session_was_closed() -> None:
    """F3, case 166: the session is not open any more, so its ledger is gone; its starts are still known."""
    mine = absent()
    assert is_overtaken(mine, numbered(("closed session", ran_there("other"), "other")))


def test_only_absent_and_fenced_attempts_can_be_overtaken() -> None:
    """F3: what cannot be retried anyway is not listed."""
    mine = history(proposes("turn", "old"), *ran("old"))
    assert overtaken_attempts(MINE, mine, [ReadSession(ran_there("other"), 0)], StartOrder()) == frozenset()


def test_forgotten_starts_count_as_overlapping(monkeypatch: pytest.MonkeyPatch) -> None:
    """I13: the number of starts that are kept is bounded. Those that are not kept may have touched anything."""
    monkeypatch.setattr(start_order, "STARTS_KEPT_MAX", 10)
    mine, order = absent(), StartOrder()
    template = attempt_of(ran_there("other", ELSEWHERE), "other")
    for number in range(10):
        order.add("other session", attrs.evolve(template, attempt_id=f"{number}"))
    assert not is_overtaken(mine, order)
    order.add("other session", attrs.evolve(template, attempt_id="one more"))
    assert is_overtaken(mine, order)
    assert (order.number_of("0"), order.number_of("one more")) == (None, 11)


def test_oldest_first_puts_earlier_processes_before_this_one() -> None:
    """B4: questions come in this order: what was read stays in front and in its order, then the starts of this
    process."""
    ledgers = {name: ran_there(name) for name in ("read", "read later", "first", "second")}
    order = numbered(("s", ledgers["first"], "first"), ("t", ledgers["second"], "second"))
    found = [attempt_of(ledgers[name], name) for name in ("second", "read", "first", "read later")]
    in_order = sorted(found, key=lambda attempt: oldest_first(order, attempt))
    assert [one.attempt_id for one in in_order] == [
        attempt_id(name) for name in ("read", "read later", "first", "second")
    ]
