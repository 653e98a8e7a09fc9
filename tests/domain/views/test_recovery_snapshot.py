"""The recovery snapshot: a fold of the ledger, without arguments, whose revision is the digest of its content."""

from __future__ import annotations

import hashlib
import json

import attrs
import pytest

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.records.record import Epoch, Inspection, Record, Reject, Scope, Settled, Settlement, Title
from steadyhand.domain.views.recovery_snapshot import SnapshotContext, snapshot
from steadyhand.domain.views.serialize import to_plain
from steadyhand.domain.views.types import Snapshot
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
STAND = SnapshotContext(ident("session"), "/state/sessions/x", EPOCH, False, "/home/me/project")
SECRET = "never-in-a-snapshot"


def uncertain_calls(*calls: str) -> list[Record]:
    """Calls that were running at a crash, and the verdicts of recovery in the next epoch."""
    records: list[Record] = [*begun(), prompt("turn", SECRET)]
    records += [proposes("turn", *calls, arguments=json.dumps({"content": SECRET}), text=SECRET)]
    for call in calls:
        records += [intends(call), allows(call), starts(call)]
    return [
        *records,
        Epoch(epoch=EPOCH, pid=1, host="host"),
        *(verdict(call, "unknown_after_restart") for call in calls),
    ]


def inspection_of(call: str = "one", name: str = "look") -> Inspection:
    return Inspection(
        inspection_id=ident(name),
        attempt_id=attempt_id(call),
        call_id=ident(call),
        state="unknown",
        by="user",
        check="conflict",
    )


def settlement_of(word: Settled, call: str = "one") -> Settlement:
    return Settlement(attempt_id=attempt_id(call), call_id=ident(call), settled=word, by="user")


def snapshot_of(records: list[Record], stand: SnapshotContext = STAND) -> Snapshot:
    return snapshot(ledger_of(journal(records)), stand)


def test_snapshot_lists_only_uncertain_calls() -> None:
    """A1, C2: a call that ran or was refused is in no list of uncertain calls, and is not shown as settled."""
    records = [
        *uncertain_calls("one", "two"),
        proposes("turn", "done"),
        *ran("done"),
        intends("denied"),
        ends("denied", "refused"),
    ]
    shown = snapshot_of(records)
    assert [call.attempt_id for call in shown.calls] == [attempt_id("one"), attempt_id("two")]
    assert shown.settled == ()
    assert [call.state for call in shown.calls] == ["unknown", "unknown"]
    assert shown.statistics.unknown == 2


def test_snapshot_contains_no_arguments_and_no_conversation() -> None:
    """A1: neither arguments nor texts of the conversation."""
    shown = snapshot_of(
        [
            *uncertain_calls("one"),
            inspection_of(),
            Reject(attempt_id=attempt_id("one"), call_id=ident("one"), inspection_id=ident("look")),
        ]
    )
    assert SECRET not in json.dumps(to_plain(shown))


def test_snapshot_paths_are_relative_inside_the_workspace() -> None:
    """docs/protocol.md: relative inside the workspace, absolute outside."""
    assert to_plain(snapshot_of(uncertain_calls("one")).calls[0].scope) == {"paths": ["one.txt"]}
    outside = snapshot_of(uncertain_calls("one"), attrs.evolve(STAND, root="/elsewhere"))
    assert to_plain(outside.calls[0].scope) == {"paths": ["/home/me/project/one.txt"]}


CHANGES: list[tuple[str, list[Record]]] = [
    ("another uncertain call", [proposes("turn", "new"), intends("new"), starts("new"), ends("new", "unknown")]),
    ("an inspection", [inspection_of()]),
    (
        "a note that it shall not be repeated",
        [inspection_of(), Reject(attempt_id=attempt_id("one"), call_id=ident("one"), inspection_id=ident("look"))],
    ),
    ("a settlement", [settlement_of("waived")]),
    ("another settlement", [settlement_of("user_confirmed")]),
    ("a new epoch", [Epoch(epoch=ident("epoch 3"), pid=1, host="host"), inspection_of()]),
]


def test_snapshot_revision_differs_for_each_content() -> None:
    """A2, docs/protocol.md: each of these is another content, so each has its own revision [I8]."""
    shown = [
        snapshot_of(uncertain_calls("one")),
        *(snapshot_of([*uncertain_calls("one"), *records]) for _, records in CHANGES[:-1]),
    ]
    shown.append(snapshot_of([*uncertain_calls("one"), *CHANGES[-1][1]], attrs.evolve(STAND, epoch=ident("epoch 3"))))
    shown.append(snapshot_of(uncertain_calls("one"), attrs.evolve(STAND, retry_enabled=True)))
    shown.append(snapshot_of(uncertain_calls("one"), attrs.evolve(STAND, epoch=None)))
    shown.append(snapshot_of([*uncertain_calls("one"), inspection_of(name="second look")]))
    assert len({one.revision for one in shown}) == len(shown)


@pytest.mark.parametrize(
    "more",
    [
        [notice("something")],
        [Title(title="a title", source="user")],
        [prompt("next", "go on")],
        [proposes("turn", "done"), *ran("done")],
        [proposes("turn", "held"), intends("held"), attrs.evolve(ends("held", "refused"), held=True)],
    ],
    ids=["notice", "title", "prompt", "a call that ran", "statistics alone"],
)
def test_snapshot_revision_ignores_statistics_and_hidden_records(more: list[Record]) -> None:
    """docs/protocol.md: content that is not shown, and the statistics, do not change the revision, so no decision
    becomes stale [I8].
    """
    before, after = snapshot_of(uncertain_calls("one")), snapshot_of([*uncertain_calls("one"), *more])
    assert after.revision == before.revision
    assert attrs.evolve(after, statistics=before.statistics) == before


def test_snapshot_revision_is_the_digest_of_its_canonical_json() -> None:
    """docs/protocol.md: SHA-256 of the canonical JSON without `revision` and `statistics`, so anyone can compute it
    again.
    """
    shown = to_plain(snapshot_of([*uncertain_calls("one", "two"), inspection_of(), settlement_of("waived", "two")]))
    assert isinstance(shown, dict)
    revision = shown.pop("revision")
    del shown["statistics"]
    text = json.dumps(shown, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert hashlib.sha256(text.encode()).hexdigest() == revision
    assert set(shown) == {"sessionId", "sessionPath", "runtimeEpoch", "retryEnabled", "calls", "settled"}


def test_snapshot_shows_a_settled_call_until_the_next_turn() -> None:
    """B3: a settled call is shown, but not in the next turn and not in another process."""
    records = [*uncertain_calls("one"), settlement_of("checked_present")]
    assert [(call.state, call.settled) for call in snapshot_of(records).settled] == [("settled", "checked_present")]
    assert snapshot_of(records).calls == ()
    assert snapshot_of([*records, prompt("next")]).settled == ()
    assert snapshot_of(records, attrs.evolve(STAND, epoch=ident("epoch 3"))).settled == ()
    assert snapshot_of(records, attrs.evolve(STAND, epoch=None)).settled == ()


def test_snapshot_offers_decisions_only_after_an_inspection_this_epoch() -> None:
    """docs/protocol.md: every decision rests on an inspection of this epoch. A read-only view gets none [I8]."""
    assert snapshot_of(uncertain_calls("one")).calls[0].actions == ("inspect",)
    inspected = [*uncertain_calls("one"), inspection_of()]
    assert snapshot_of(inspected).calls[0].actions == ("inspect", "confirm", "reject", "waive", "restore")
    inspection = snapshot_of(inspected).calls[0].inspection
    assert inspection is not None
    assert inspection.inspection_id == ident("look")
    later = [*inspected, Epoch(epoch=ident("epoch 3"), pid=1, host="host")]
    assert snapshot_of(later, attrs.evolve(STAND, epoch=ident("epoch 3"))).calls[0].actions == ("inspect",)
    rejected = [*inspected, Reject(attempt_id=attempt_id("one"), call_id=ident("one"), inspection_id=ident("look"))]
    assert snapshot_of(rejected).calls[0].actions == ("inspect", "confirm", "waive", "restore")
    assert snapshot_of(rejected).calls[0].state == "rejected"
    assert snapshot_of(inspected, attrs.evolve(STAND, epoch=None)).calls[0].actions == ()


def test_snapshot_unchanged_fenced_call_offers_retry_instead_of_restore() -> None:
    """A5, F1, F3: a file that is as before needs no restore. Retry is offered only where the setting enables it."""
    absent = attrs.evolve(inspection_of(), state="absent_fenced", check="unchanged")
    records = [*uncertain_calls("one"), absent]
    decisions = ("inspect", "confirm", "reject", "waive")
    assert snapshot_of(records).calls[0].actions == decisions
    assert snapshot_of(records, attrs.evolve(STAND, retry_enabled=True)).calls[0].actions == (*decisions, "retry")
    conflict = [*uncertain_calls("one"), inspection_of()]
    assert "retry" not in snapshot_of(conflict, attrs.evolve(STAND, retry_enabled=True)).calls[0].actions


def test_snapshot_statistics_count_each_kind_of_settlement() -> None:
    """A1, A10: unknown, checked, confirmed, rejected, waived, retried, restored, held back; by whom, and how long."""
    kinds: list[Settled] = [
        "checked_present", "checked_absent", "user_confirmed", "model_confirmed", "waived", "restored", "superseded",
    ]  # fmt: skip
    calls = [f"call {word}" for word in kinds]
    records = [
        *uncertain_calls(*calls),
        Reject(attempt_id=attempt_id(calls[0]), call_id=ident(calls[0]), inspection_id=ident("look")),
    ]
    records += [settlement_of(word, call) for word, call in zip(kinds, calls, strict=True)]
    assert to_plain(snapshot_of(records).statistics) == {
        "unknown": 7, "checked": 2, "confirmed": 2, "rejected": 1, "waived": 1, "retried": 1, "restored": 1,
        "heldBack": 0, "heldBackAdmitted": 0, "heldBackRefused": 0, "byProof": 2, "byPerson": 5, "byModel": 0,
        "medianDoubtMs": 0,
    }  # fmt: skip


def test_snapshot_of_an_empty_session_is_empty() -> None:
    """A1: nothing is invented."""
    shown = snapshot(Ledger(), STAND)
    assert (shown.calls, shown.settled) == ((), ())


def test_snapshot_path_that_is_not_utf_8_has_a_revision() -> None:
    """A1: a path of the system may contain bytes that are not text."""
    records: list[Record] = [
        proposes("turn", "odd"),
        intends("odd", scope=Scope(("/home/me/project/\udcff",))),
        ends("odd", "unknown"),
    ]
    assert len(snapshot_of([*uncertain_calls("one"), *records]).revision) == 64
