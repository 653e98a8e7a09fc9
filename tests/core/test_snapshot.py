"""The recovery snapshot: a fold, without arguments, whose revision is its content."""

from __future__ import annotations

import hashlib
import json

import attrs
import pytest

from steadyhand.core.ledger import Ledger
from steadyhand.core.plain import plain
from steadyhand.core.record import Epoch, Inspection, Record, Reject, Scope, Settled, Settlement, Title
from steadyhand.core.snapshot import Stand, snapshot
from steadyhand.core.views import Snapshot
from tests.support.journals import (
    allows,
    attempt_id,
    begun,
    ends,
    ident,
    intends,
    journal,
    ledger_of,
    notice,
    prompt,
    proposes,
    ran,
    starts,
    verdict,
)

EPOCH = ident("epoch 2")
STAND = Stand(ident("session"), "/state/sessions/x", EPOCH, False, "/home/me/project")
SECRET = "never-in-a-snapshot"


def doubt(*calls: str) -> list[Record]:
    """Calls that were running at a crash, and what recovery said of them in the next epoch."""
    records: list[Record] = [*begun(), prompt("turn", SECRET)]
    records += [proposes("turn", *calls, arguments=json.dumps({"content": SECRET}), text=SECRET)]
    for call in calls:
        records += [intends(call), allows(call), starts(call)]
    return [*records, Epoch(EPOCH, 1, "host"), *(verdict(call, "unknown_after_restart") for call in calls)]


def looked_at(call: str = "one", name: str = "look") -> Inspection:
    return Inspection(ident(name), attempt_id(call), ident(call), "unknown", "user", check="conflict")


def settled(word: Settled, call: str = "one") -> Settlement:
    return Settlement(attempt_id(call), ident(call), word, "user")


def of(records: list[Record], stand: Stand = STAND) -> Snapshot:
    return snapshot(ledger_of(journal(records)), stand)


def test_it_shows_what_is_uncertain() -> None:
    """A1, C2: what ran, was refused or is settled elsewhere stands in no list of uncertain ones."""
    records = [
        *doubt("one", "two"),
        proposes("turn", "done"),
        *ran("done"),
        intends("denied"),
        ends("denied", "refused"),
    ]
    seen = of(records)
    assert [call.attempt_id for call in seen.calls] == [attempt_id("one"), attempt_id("two")]
    assert seen.settled == ()
    assert [call.state for call in seen.calls] == ["unknown", "unknown"]
    assert seen.statistics.unknown == 2


def test_no_arguments_stand_in_it() -> None:
    """A1: neither arguments nor texts of the conversation."""
    seen = of([*doubt("one"), looked_at(), Reject(attempt_id("one"), ident("one"), ident("look"))])
    assert SECRET not in json.dumps(plain(seen))


def test_paths_are_shown_as_in_the_workspace() -> None:
    """wire.md: relative inside the workspace, absolute outside."""
    assert plain(of(doubt("one")).calls[0].scope) == {"paths": ["one.txt"]}
    outside = of(doubt("one"), attrs.evolve(STAND, root="/elsewhere"))
    assert plain(outside.calls[0].scope) == {"paths": ["/home/me/project/one.txt"]}


CHANGES: list[tuple[str, list[Record]]] = [
    ("another uncertain call", [proposes("turn", "new"), intends("new"), starts("new"), ends("new", "unknown")]),
    ("an inspection", [looked_at()]),
    ("a note that it shall not be repeated", [looked_at(), Reject(attempt_id("one"), ident("one"), ident("look"))]),
    ("a settlement", [settled("waived")]),
    ("another settlement", [settled("user_confirmed")]),
    ("a new epoch", [Epoch(ident("epoch 3"), 1, "host"), looked_at()]),
]


def test_the_revision_changes_with_the_content() -> None:
    """A2, wire.md: each of these is another content, so each has a revision of its own [I8]."""
    seen = [of(doubt("one")), *(of([*doubt("one"), *records]) for _, records in CHANGES[:-1])]
    seen.append(of([*doubt("one"), *CHANGES[-1][1]], attrs.evolve(STAND, epoch=ident("epoch 3"))))
    seen.append(of(doubt("one"), attrs.evolve(STAND, retry_enabled=True)))
    seen.append(of(doubt("one"), attrs.evolve(STAND, epoch=None)))
    seen.append(of([*doubt("one"), looked_at(name="second look")]))
    assert len({one.revision for one in seen}) == len(seen)


@pytest.mark.parametrize(
    "more",
    [
        [notice("something")],
        [Title("a title", "user")],
        [prompt("next", "go on")],
        [proposes("turn", "done"), *ran("done")],
        [proposes("turn", "held"), intends("held"), attrs.evolve(ends("held", "refused"), held=True)],
    ],
    ids=["notice", "title", "prompt", "a call that ran", "statistics alone"],
)
def test_the_revision_stays_with_the_content(more: list[Record]) -> None:
    """wire.md: what is not shown, and the statistics, change no revision, so nobody's decision goes stale [I8]."""
    before, after = of(doubt("one")), of([*doubt("one"), *more])
    assert after.revision == before.revision
    assert attrs.evolve(after, statistics=before.statistics) == before


def test_the_revision_is_the_digest_of_its_canonical_json() -> None:
    """wire.md: SHA-256 of the canonical JSON without `revision` and `statistics`; anyone can make it again."""
    seen = plain(of([*doubt("one", "two"), looked_at(), settled("waived", "two")]))
    assert isinstance(seen, dict)
    revision = seen.pop("revision")
    del seen["statistics"]
    text = json.dumps(seen, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert hashlib.sha256(text.encode()).hexdigest() == revision
    assert set(seen) == {"sessionId", "sessionPath", "runtimeEpoch", "retryEnabled", "calls", "settled"}


def test_what_was_settled_stands_until_the_next_turn() -> None:
    """B3: settled is not hidden, but neither the next turn nor another process shows it."""
    records = [*doubt("one"), settled("checked_present")]
    assert [(call.state, call.settled) for call in of(records).settled] == [("settled", "checked_present")]
    assert of(records).calls == ()
    assert of([*records, prompt("next")]).settled == ()
    assert of(records, attrs.evolve(STAND, epoch=ident("epoch 3"))).settled == ()
    assert of(records, attrs.evolve(STAND, epoch=None)).settled == ()


def test_decisions_are_offered_after_an_inspection_of_this_epoch() -> None:
    """wire.md: every decision rests on what was seen in this epoch; a reader is offered nothing [I8]."""
    assert of(doubt("one")).calls[0].actions == ("inspect",)
    inspected = [*doubt("one"), looked_at()]
    assert of(inspected).calls[0].actions == ("inspect", "confirm", "reject", "waive", "restore")
    note = of(inspected).calls[0].inspection
    assert note is not None
    assert note.inspection_id == ident("look")
    later = [*inspected, Epoch(ident("epoch 3"), 1, "host")]
    assert of(later, attrs.evolve(STAND, epoch=ident("epoch 3"))).calls[0].actions == ("inspect",)
    rejected = [*inspected, Reject(attempt_id("one"), ident("one"), ident("look"))]
    assert of(rejected).calls[0].actions == ("inspect", "confirm", "waive", "restore")
    assert of(rejected).calls[0].state == "rejected"
    assert of(inspected, attrs.evolve(STAND, epoch=None)).calls[0].actions == ()


def test_what_is_absent_and_fenced_is_retried_and_not_restored() -> None:
    """A5, F1, F3: what is as before needs no restore; retry is offered only where it is switched on."""
    found = attrs.evolve(looked_at(), state="absent_fenced", check="unchanged")
    records = [*doubt("one"), found]
    decisions = ("inspect", "confirm", "reject", "waive")
    assert of(records).calls[0].actions == decisions
    assert of(records, attrs.evolve(STAND, retry_enabled=True)).calls[0].actions == (*decisions, "retry")
    conflict = [*doubt("one"), looked_at()]
    assert "retry" not in of(conflict, attrs.evolve(STAND, retry_enabled=True)).calls[0].actions


def test_statistics_count_this_journal() -> None:
    """A1: unknown, checked, confirmed, rejected, waived, retried, restored, held back."""
    words: list[Settled] = [
        "checked_present", "checked_absent", "user_confirmed", "model_confirmed", "waived", "restored", "superseded",
    ]  # fmt: skip
    calls = [f"call {word}" for word in words]
    records = [*doubt(*calls), Reject(attempt_id(calls[0]), ident(calls[0]), ident("look"))]
    records += [settled(word, call) for word, call in zip(words, calls, strict=True)]
    assert plain(of(records).statistics) == {
        "unknown": 7, "checked": 2, "confirmed": 2, "rejected": 1, "waived": 1, "retried": 1, "restored": 1,
        "heldBack": 0,
    }  # fmt: skip


def test_an_empty_session_has_an_empty_snapshot() -> None:
    """A1: nothing is made up."""
    seen = snapshot(Ledger(), STAND)
    assert (seen.calls, seen.settled) == ((), ())


def test_a_name_that_is_not_utf_8_has_a_revision() -> None:
    """A1: a path as the system gives it may hold bytes that are no text."""
    records = [
        proposes("turn", "odd"),
        intends("odd", scope=Scope(("/home/me/project/\udcff",))),
        ends("odd", "unknown"),
    ]
    assert len(of([*doubt("one"), *records]).revision) == 64
