"""A torn line that can be read as the `started` of an open attempt counts as a start (rows C1, C2, J8, case 134)."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.ledger.ledger import Ledger, fold
from steadyhand.domain.records.record import Epoch, Evidence, Outcome, Record, Settlement
from steadyhand.domain.records.torn_start import TornStart
from steadyhand.journal.format import read_journal
from steadyhand.journal.journal import load
from steadyhand.journal.torn_start import COPIES_MAX
from tests.support.journals import (
    allows,
    attempt_id,
    begun,
    damaged_at,
    ends,
    ident,
    intends,
    journal,
    ledger_of,
    lines,
    notice,
    prompt,
    proposes,
    replies,
    says,
    starts,
    verdict,
    verdicts,
)

BEFORE: list[Record] = [*begun(), prompt("turn"), proposes("turn", "one"), intends("one"), allows("one")]
HEAD = journal(BEFORE)
EVIDENCE = Evidence(path="one.txt", resolved="/home/me/project/one.txt", existed=False, intended="0" * 64)
LINE = lines(journal([*BEFORE, attrs.evolve(starts("one"), evidence=(EVIDENCE,), mark=attempt_id("one"))]))[-1]
KNOWN_FROM = LINE.index(b'"kind":"') + len(b'"kind":"st')
DID_NOT_RUN: Outcome = "interrupted_before_execution"
UNKNOWN: Outcome = "unknown_after_restart"


def said_of_one(content: bytes) -> str:
    return verdicts(ledger_of(content))[ident("one")]


def test_torn_start_cut_at_any_byte_is_a_start_once_its_kind_is_known() -> None:
    """Case 134, C1, C2: for every cut of the line. It is "did not run" only where the bytes left do not say what kind
    of record it was; from there on it may have run."""
    for size in range(len(LINE)):
        expected = UNKNOWN if size >= KNOWN_FROM else DID_NOT_RUN
        assert said_of_one(HEAD + LINE[:size]) == expected, LINE[:size]
        if size < len(LINE) - 1:
            assert read_journal(HEAD + LINE[:size]).damaged == 0


@pytest.mark.parametrize("zeros", [1, 512, 70_000])
def test_torn_start_that_ends_in_zeros_is_a_start(zeros: int) -> None:
    """Case 134, J8: the system filled the lost bytes with zeros."""
    for size in range(KNOWN_FROM, len(LINE) - 1):
        assert said_of_one(HEAD + LINE[:size] + b"\0" * zeros) == UNKNOWN, LINE[:size]


def test_torn_start_gives_no_evidence() -> None:
    """Case 134: nothing of the line has a checksum, so it proves a start and nothing else. Its evidence settles
    nothing."""
    attempt = ledger_of(HEAD + LINE[:-2]).attempts[attempt_id("one")]
    assert attempt.stage == "started"
    assert attempt.is_start_torn
    assert attempt.started is not None
    assert (attempt.started.evidence, attempt.started.mark) == ((), None)
    assert (attempt.scope, attempt.effect) == (intends("one").scope, "writes_files")


OTHERS: list[Record] = [
    ends("one", "refused"),
    replies("one", "refused"),
    allows("one", "reject"),
    notice("something"),
    Settlement(attempt_id=attempt_id("one"), call_id=ident("one"), settled="waived", by="user"),
    says("turn", "text"),
]


@pytest.mark.parametrize("other", OTHERS, ids=[other.kind for other in OTHERS])
def test_torn_line_of_another_kind_is_no_start(other: Record) -> None:
    """C1: a line of another kind names the attempt too, and says nothing of a start, wherever it is cut."""
    line = lines(journal([*BEFORE, other]))[-1]
    for size in range(len(line) - 1):
        assert said_of_one(HEAD + line[:size]) == DID_NOT_RUN, line[:size]


def two_open() -> Ledger:
    """Two calls that wait for a permission, and a read."""
    records = [*BEFORE, proposes("turn", "two", "look"), intends("two"), intends("look", effect="reads")]
    return ledger_of(journal(records))


@pytest.mark.parametrize("digits", [0, 1, 8, 31, 32])
def test_torn_start_names_the_attempts_whose_id_begins_so(digits: int) -> None:
    """Case 134: as far as the id goes. Without any digit it may be any open attempt with an effect; never a read."""
    assert attempt_id("one")[:1] != attempt_id("two")[:1]
    ledger = two_open()
    ledger.count_torn_start(attempt_id("two")[:digits])
    stages = {name: ledger.attempts[attempt_id(name)].stage for name in ("one", "two", "look")}
    assert stages == {"one": "intended" if digits else "started", "two": "started", "look": "intended"}


def test_torn_start_of_an_unknown_attempt_may_be_any_open_one() -> None:
    """Case 134, C3: its id fits none, so the line is damaged too. That never supports "did not run" [I3]."""
    ledger = two_open()
    ledger.count_torn_start("0" * 32)
    assert [ledger.attempts[attempt_id(name)].stage for name in ("one", "two")] == ["started", "started"]


def test_torn_start_with_a_damaged_byte_hides_no_run_where_its_kind_is_readable() -> None:
    """Case 134, J9: one more damaged byte anywhere in the torn line but in the word of its kind [I3]."""
    torn = LINE[:-17]
    word = range(torn.index(b'"kind"'), torn.index(b'"kind"') + len(b'"kind":"started"'))
    for at in set(range(len(torn))) - set(word):
        for byte in (0, torn[at] ^ 1, torn[at] ^ 0x80):
            if byte != 0x0A:
                assert said_of_one(HEAD + damaged_at(torn, at, byte)) == UNKNOWN, (at, byte)


def test_torn_start_changes_no_recorded_end() -> None:
    """C4, J14: a verdict that an earlier version recorded after the cut stays."""
    records = [*BEFORE, verdict("one", DID_NOT_RUN)]
    stamped = read_journal(journal(records)).records
    ledger = fold(stamped, (), torn_starts=[TornStart(len(BEFORE), attempt_id("one"))])
    assert verdicts(ledger)[ident("one")] == DID_NOT_RUN
    assert ledger.refused == []


def test_torn_start_clears_no_question_about_a_confirmed_call() -> None:
    """Cases 134, 165, B6: a repeat that was allowed and of which only a torn start is left."""
    confirmed = [*BEFORE, starts("one"), verdict("one", UNKNOWN)]
    settled = Settlement(attempt_id=attempt_id("one"), call_id=ident("one"), settled="user_confirmed", by="user")
    asked = attrs.evolve(allows("two"), confirmed_before=(attempt_id("one"),))
    ledger = ledger_of(journal([*confirmed, settled, proposes("turn", "two"), intends("two"), asked]))
    ledger.count_torn_start(attempt_id("two"))
    assert not ledger.attempts[attempt_id("one")].was_repeated


# The copies beside the journal.


def loaded_ledger(folder: Path, content: bytes) -> Ledger:
    (folder / "journal.jsonl").write_bytes(content)
    disk = system_disk()
    opened = disk.open_folder(str(folder))
    try:
        loaded = load(disk, opened)
    finally:
        disk.close(opened)
    return fold(loaded.records, loaded.breaks, torn_starts=loaded.torn_starts)


CUT_AT = len(BEFORE) + 1
LATER: list[tuple[str, list[Record]]] = [
    ("nothing appended", []),
    ("only the new epoch", [Epoch(epoch=ident("epoch 2"), pid=1, host="here")]),
    ("the verdict", [Epoch(epoch=ident("epoch 2"), pid=1, host="here"), verdict("one", UNKNOWN)]),
]


@pytest.mark.parametrize(("when", "appended"), LATER, ids=[when for when, _ in LATER])
@pytest.mark.parametrize("name", [f"torn-{CUT_AT}.bin", f"torn-{CUT_AT}-2.bin"])
def test_torn_start_that_was_cut_off_still_counts(tmp_path: Path, name: str, when: str, appended: list[Record]) -> None:
    """Case 134, I5: an opening died after the cut, before its verdict or in the middle of that append. The copy beside
    the journal says what the line said."""
    (tmp_path / name).write_bytes(LINE[:-17])
    assert verdicts(loaded_ledger(tmp_path, journal([*BEFORE, *appended])))[ident("one")] == UNKNOWN


def test_torn_copy_of_an_earlier_crash_counts_at_its_own_place(tmp_path: Path) -> None:
    """Case 134: it says nothing about attempts that came later."""
    (tmp_path / f"torn-{CUT_AT}.bin").write_bytes(LINE[: KNOWN_FROM + 30])
    later = [*BEFORE, verdict("one", UNKNOWN), proposes("turn", "two"), intends("two")]
    found = verdicts(loaded_ledger(tmp_path, journal(later)))
    assert found == {ident("one"): UNKNOWN, ident("two"): DID_NOT_RUN}


def test_torn_copy_that_cannot_be_read_may_be_a_start(tmp_path: Path) -> None:
    """Case 134: unreadable is never empty [I3]."""
    (tmp_path / f"torn-{CUT_AT}.bin").mkdir()
    assert verdicts(loaded_ledger(tmp_path, HEAD))[ident("one")] == UNKNOWN


def test_torn_copies_are_read_up_to_a_bound(tmp_path: Path) -> None:
    """I13: the newest ones. What is no copy is passed over."""
    for number in range(COPIES_MAX + 5):
        (tmp_path / f"torn-{number + 1}.bin").write_bytes(LINE[:-17] if number < 5 else b'{"sum":"6e92')
    (tmp_path / "torn-x.bin").write_bytes(LINE[:-17])
    assert verdicts(loaded_ledger(tmp_path, HEAD))[ident("one")] == DID_NOT_RUN
