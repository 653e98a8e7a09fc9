"""Which turns are the newest, and what refers to a content (row K6)."""

from __future__ import annotations

import attrs
import pytest

from steadyhand.domain.changes.retention import TURNS_KEPT, Unneeded, unneeded_contents
from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.records.record import BufferChange, Evidence, Intent, Record, Review, Stamped
from tests.support import journals as history
from tests.support.journals import digest, ident

OLD, LATER = "2026-01-02T03:04:05.000Z", "2026-04-10T00:00:00.000Z"
LIMIT = "2026-02-01T00:00:00.000Z"
PATH = "/ws/a.txt"
EVIDENCE = Evidence(
    path="a.txt", resolved=PATH, existed=True, before=digest("old"), intended=digest("new"), checkpoint=digest("old")
)


def ledger_of(*stages: tuple[str, list[Record]]) -> Ledger:
    """A ledger whose records have these times."""
    ledger, seq = Ledger(), 0
    for at, records in stages:
        for record in records:
            seq += 1
            ledger.apply(Stamped(seq=seq, at=at, sum="", record=record))
    return ledger


def wrote(turn: str, call: str, evidence: Evidence = EVIDENCE) -> list[Record]:
    """A turn with one write that returned."""
    started = attrs.evolve(history.starts(call), evidence=(evidence,))
    return [
        history.prompt(turn),
        history.proposes(turn, call),
        attrs.evolve(history.intends(call), turn_id=ident(turn)),
        started,
        attrs.evolve(history.ends(call), turn_id=ident(turn)),
    ]


def prompts(count: int, command: bool = False) -> list[Record]:
    return [history.prompt(f"{command} {number}", "/help" if command else "do it", command) for number in range(count)]


KEPT: list[Record] = [Review(path=PATH, base=digest("new"))]
STORED = frozenset({digest("old")})


def unneeded(*stages: tuple[str, list[Record]]) -> Unneeded:
    return unneeded_contents(ledger_of((OLD, history.begun()), *stages), LIMIT, TURNS_KEPT)


@pytest.mark.parametrize(("later", "expected"), [(199, frozenset[str]()), (200, STORED)])
def test_newest_200_turns_keep_their_contents(later: int, expected: frozenset[str]) -> None:
    """K6, [I13]: the 200th turn from the end keeps what it refers to; the one before it does not."""
    assert TURNS_KEPT == 200
    found = unneeded((OLD, [*wrote("first", "one"), *KEPT]), (LATER, prompts(later)))
    assert found.checkpoints == expected


def test_slash_commands_are_not_counted_among_the_newest() -> None:
    """K6: 200 times /help does not push a turn out."""
    found = unneeded((OLD, [*wrote("first", "one"), *KEPT]), (LATER, prompts(200, command=True)))
    assert found == Unneeded()


def test_turn_that_is_not_old_or_has_no_sound_time_keeps_its_contents() -> None:
    """K6: 200 newer turns are not enough; a time that cannot be read is not old."""
    for at in (LATER, "long ago", "0"):
        assert unneeded((at, [*wrote("first", "one"), *KEPT]), (LATER, prompts(200))) == Unneeded()


@pytest.mark.parametrize(
    "evidence",
    [
        attrs.evolve(EVIDENCE, before=digest("x"), intended=digest("old"), checkpoint=digest("x")),
        attrs.evolve(EVIDENCE, intended=digest("y")),
        attrs.evolve(
            EVIDENCE,
            before=digest("x"),
            intended=digest("y"),
            checkpoint=digest("x"),
            buffer=BufferChange(path=PATH, before=digest("z"), intended=digest("y"), checkpoint=digest("old")),
        ),
    ],
    ids=["as the content after", "as the content before", "as the editor's text"],
)
def test_content_that_a_newer_turn_names_in_any_way_stays(evidence: Evidence) -> None:
    """K6, V5: the same content under another name of the records."""
    assert (
        unneeded((OLD, [*wrote("first", "one"), *KEPT]), (LATER, [*prompts(200), *wrote("newest", "two", evidence)]))
        == Unneeded()
    )


def test_change_beside_a_reviewed_one_keeps_everything_of_its_path() -> None:
    """K6, V4: as long as one change of a path is open, each of its contents may be the base."""
    second = attrs.evolve(EVIDENCE, before=digest("new"), intended=digest("third"), checkpoint=digest("new"))
    open_again = (OLD, [*wrote("first", "one"), *KEPT, *wrote("second", "two", second)])
    assert unneeded(open_again, (LATER, prompts(200))) == Unneeded()
    kept = (LATER, [*prompts(200), Review(path=PATH, base=digest("third"))])
    assert unneeded(open_again, kept).checkpoints == {digest("old"), digest("new")}


@pytest.mark.parametrize("outcome", ["unknown", "unknown_after_restart"])
def test_unresolved_change_keeps_its_content(outcome: str) -> None:
    """K6, C2: also one that nobody has classified yet."""
    uncertain = [one for one in wrote("first", "one") if one.kind != "result"]
    assert unneeded((OLD, [*uncertain, *KEPT]), (LATER, prompts(200))) == Unneeded()
    ended = history.verdict("one", outcome, "first")  # type: ignore[arg-type]  # one of the two words
    assert unneeded((OLD, [*uncertain, ended, *KEPT]), (LATER, prompts(200))) == Unneeded()


@pytest.mark.parametrize("kept", ["second", "both"])
def test_change_before_somebody_elses_is_under_review_for_itself(kept: str) -> None:
    """K6, V4: what is kept of the change after a break says nothing of the one before it."""
    later = attrs.evolve(EVIDENCE, before=digest("theirs"), intended=digest("third"), checkpoint=digest("theirs"))
    keeps: list[Record] = [Review(path=PATH, base=digest("third"))]
    if kept == "both":
        first = next(one for one in wrote("first", "one") if isinstance(one, Intent))
        keeps.append(Review(path=PATH, base=digest("new"), attempt_id=first.attempt_id))
    found = unneeded((OLD, [*wrote("first", "one"), *wrote("second", "two", later), *keeps]), (LATER, prompts(200)))
    assert found.checkpoints == (frozenset({digest("old"), digest("theirs")}) if kept == "both" else frozenset())
