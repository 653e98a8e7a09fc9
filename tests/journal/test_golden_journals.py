"""Golden journals: what an earlier version wrote is read as it was meant, and written again as the same bytes.

The journals in `golden/` never change. A new record kind, member or word needs a new golden journal, which
`python -m tests.journal.write_golden` writes, and its line in `PINNED`. A file `NAME.expected.json` states what the
ledger makes of `NAME.jsonl`; where it has to change, an old journal means something else than before.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import shutil
from pathlib import Path
from typing import Literal

import attrs
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.ledger.ledger import fold
from steadyhand.domain.records.record import KINDS, Unknown
from steadyhand.journal import format as journal_format
from steadyhand.journal.codec import decode, encode
from steadyhand.journal.format import read_journal, write_line
from steadyhand.session.storage.lock import OWNER, owner_of, take_lock, write_owner
from steadyhand.session.storage.summary import SUMMARY, read_summary, summary_of, write_summary
from tests.journal import golden_journals, second_reader
from tests.journal.golden_journals import GOLDEN, declared_observations, ledger_state, observations_in
from tests.journal.test_second_reader import assert_readers_agree
from tests.journal.write_golden import every_member
from tests.support.fakes import FakeIds, FakeProcesses
from tests.support.journals import lines

JOURNALS = golden_journals.golden_journals()
ENVELOPE = ("sum", "prev", "v", "seq", "at", "kind")
PINNED = {
    "0.1-04-killed-after-the-write-killed-1.jsonl": "832d2b83b87b36ec58bac79c43f2c4374dad9b0d13928737d40dfd8bfd304f9f",
    "0.1-04-killed-after-the-write.jsonl": "921f8ab51495b49fc8c189c3c85316daf206a7467317f3c858ef8c7c26da634a",
    "0.1-06-killed-in-a-command-killed-1.jsonl": "12f9bfb706f0f8728f00cace8c57f9151b6680d81d5039e897c5125a60e47bf1",
    "0.1-06-killed-in-a-command.jsonl": "28d6b9454e58a1b64f9544ad99d320e4ee144bdcf3eb0d97b0f400c3a079e8a0",
    "0.1-08-the-queue-killed-1.jsonl": "00a4eebc3455211baada918ffd6c4db659883511018a4faca8892e980334a879",
    "0.1-08-the-queue.jsonl": "c9979233d75ad1a61b17c6345e3fa9c3698b624e1910e006a7920866cd695fba",
    "0.1-10-a-grant-has-an-end.jsonl": "91586024d59f8e7be591cc920ec3d941494c18ec757602a914ac0a4e67d95119",
    "0.1-17-in-the-background.jsonl": "bdf88de848bbb0616c32a4eaadc9df75f6409de1e33e72bedffcf069f09951e3",
    "0.1-18-a-job-outlives-a-crash-killed-1.jsonl": "cc50e7b31e054e9c2060e996a953a305ffeba88646c218d2da794c6c04157f7e",
    "0.1-18-a-job-outlives-a-crash.jsonl": "0174a7bf55dcfeaca13251aa72e1de64d304b062768c99fc8d0e4a7b90668626",
    "0.1-19-the-model-asks-and-plans.jsonl": "60161e53862bd6331943be896d6ec271e4861377519885f75cd8fad038a32c55",
    "0.1-21-tried-again.jsonl": "1510a0afbbf0fdf9df968c663494ec5433568ab7dfdb4b6b8342eb3d1c06db28",
    "0.1-21-tried-again.owner.json": "29d24cc720f17f34f70c4d84fe8c58b590eb8eaad75d64fcbca0182ef13f844f",
    "0.1-21-tried-again.summary.json": "605c5ad47aec9278b7912a29a37ba9e92f7e9481355b66d7a2f437c49f397b8c",
    "0.1-22-brought-back.jsonl": "26fbce65abdc1178a4abf946e8eb3518ee61a36f8ea4bb0fbb8e05ea5c08bc52",
    "0.1-23-cut-off-while-reading-killed-1.jsonl": "b0b361e89631ce079e1a72595312a3be80f3f2b4c9829962ab08183feeb5bdc3",
    "0.1-23-cut-off-while-reading.jsonl": "4e4715809d818c1685e1297c82cacb728c48035008c7c40e5f351b029e0fc9d0",
    "0.1-attempts.jsonl": "1e25488c2c919fe54bc58d82095a49f59ffab92899d1231d52b48be3ba05834e",
    "0.1-damaged.jsonl": "f05402950bc2058334e538c23bb446ee1f1b5b64ae53bb737057623a8a0265c3",
    "0.1-damaged.owner.json": "fb8762f08b6fff9af73995ee45c56ead47602ab90fa6ed1ba11cb37514e465ab",
    "0.1-damaged.summary.json": "400f3a647f467a35d4fe997ba52a0f45542ec78725dd0c07ec50574c1380c70d",
    "0.1-every-member.jsonl": "0a7c405269fb5f37e93c10982073252f15df394c234b7fa6c9a418c9aaa01aa9",
    "0.1-uncertain-killed.jsonl": "7a7954cfc903e8271e303b9abc83f920892b6a31fcf779b696efb8f73b99b597",
    "0.1-uncertain.jsonl": "eee2f9ec23d9e8d98f691161b7621c0213d254ba1f9909a717a4a452af462618",
    "0.1-uncertain.owner.json": "fb8762f08b6fff9af73995ee45c56ead47602ab90fa6ed1ba11cb37514e465ab",
    "0.2-shown-every-member.jsonl": "47a869bacbd9cd5ab55ea1b8e9d7c39e399b68e8eebc5776ae2714e6db6cac13",
    "0.2-folders-every-member.jsonl": "a93f3d07e9feb21deb7f9c6cbf2da27f6d100f9411004f369486c17a76549f07",
    "0.2-rebind-every-member.jsonl": "a77727568d65480c1441e65a3f7d72bb14a266ff049e9d77c66f6f1c2f20242a",
    "0.2-told-every-member.jsonl": "477a6ca185eac4352b2179a8bdf38b29423289288d610c902bfaf872ed28ede4",
    "0.2-providers-every-member.jsonl": "9a8dfffb2f899e12094ac8a8533c834bf007092441bed0ec572e19d9b62d270e",
    "0.1-uncertain.summary.json": "dea6e2b0f0e2f01568e55c0bcd26e389e883c97cf37f473269a11be1403c32e5",
    "0.2-attributes-every-member.jsonl": "cec282d70fbc9f7dd79b531fc4b8d83f8f8187fe4485c94fba25ae8e7b5d3a8c",
    "0.2-exits-every-member.jsonl": "125daa6e5b0c7f2cb9f2b1cf4a8a12a5d2b34149aa1df5bf02efaaa5f79246b6",
    "0.2-rewind-every-member.jsonl": "63c8e607253d78579803031cad597e2f6c70dbc1abe5449d24766d45cb3f8eba",
    "0.2-revise-every-member.jsonl": "df351c1666a7d470c620113e9ccdc59478f3a0173cf3c59ef9e1e0fd88bd9071",
    "0.2-review-every-member.jsonl": "7f806fe41cc3f6f6bfdc43bb940c9c7239b6f1d794e37479ed882a8310d774dc",
    "0.2-commands-every-member.jsonl": "fddc18e9e811647fc3cb3b14f9cfb78b87f6620d4ded30303f9c5017af36beed",
    "0.2-hunks-every-member.jsonl": "83654198139d880eaadca6f781ac3a59c42ee52c1394fcb46fff659d6a5d74e9",
    "0.2-buffers-every-member.jsonl": "f62d3f9a9a900868eb2d90b0f373017bd53e5ea81189a8efbf3325152d8e0749",
    "0.2-25-a-turn-is-steered-killed-1.jsonl": "f5d48444cae552545befc80689ebe0d9354119e60a1a354ed5dc4a6401a6c952",
    "0.2-25-a-turn-is-steered.jsonl": "7dc5098f8089ea54f28f3bf2b901dc7f7190631839ec9cf0d2f31d5b904ea780",
    "0.2-steer-every-member.jsonl": "4536f7ee81f073594738abbfc2da1f2bd461e2014f9019000bc77554431ff871",
    "0.2-in-place-every-member.jsonl": "4d8df6b89b55aec3517590f81c4aa8fca3448014e26e587cfa6d6088e9651869",
    "0.2-origin-every-member.jsonl": "f84a8512964d0b9fd6020ac0e45f46be22e220daf8406c7aeee411c2e45e61f4",
    "0.2-keep-every-member.jsonl": "38213e5ed35aebebce1011a557f1fb21aa8cdeaf990703b7f5d2d414be8b0293",
    "0.2-compaction-every-member.jsonl": "dc7eedbda255412a56173bb364175a9a12b10018196a26c3149c71865f138382",
}

each_journal = pytest.mark.parametrize("path", JOURNALS, ids=lambda path: path.stem)
each_summary = pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.summary.json")), ids=lambda path: path.stem)
each_owner = pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.owner.json")), ids=lambda path: path.stem)


def journal_of(path: Path) -> bytes:
    """The journal that a file of the same session directory belongs to."""
    return path.with_name(path.name.replace(".summary.json", ".jsonl")).read_bytes()


# The files.


def test_golden_files_compared_with_pins_are_unchanged() -> None:
    """X1: each golden file has the bytes it was committed with, and each is pinned."""
    files = [path for path in GOLDEN.iterdir() if not path.name.endswith(".expected.json")]
    assert {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files} == PINNED


def test_golden_journals_have_an_expected_state_each() -> None:
    """J1: no golden journal is without its expected state, and there are some of each sort."""
    names = {path.stem for path in JOURNALS}
    assert {path.name.removesuffix(".expected.json") for path in GOLDEN.glob("*.expected.json")} == names
    assert {"0.1-every-member", "0.1-attempts", "0.1-damaged", "0.1-uncertain"} <= names
    assert len(names) >= 15


# Reading and writing.


@each_journal
def test_journal_line_decoded_and_encoded_gives_the_same_bytes(path: Path) -> None:
    """J1, J2, X1: envelope, sequence number, checksum and members of each readable line come out as they went in."""
    content = path.read_bytes()
    readable = {stamped.seq: stamped for stamped in read_journal(content).records}
    damaged = 0
    for number, line in enumerate(lines(content), 1):
        if number not in readable:
            damaged += 1
            continue
        members = json.loads(line)
        stamped = readable[number]
        record = decode(members["kind"], {name: members[name] for name in members if name not in ENVELOPE})
        assert record == stamped.record
        assert not isinstance(record, Unknown)
        again, check = write_line(record, stamped.seq, members["prev"], stamped.at)
        assert again == line
        assert check == stamped.sum
    assert damaged == read_journal(content).damaged


@each_journal
def test_independent_reader_of_a_golden_journal_agrees(path: Path) -> None:
    """J1, J2: a reader that shares no code with the server finds the same records, members and damage."""
    content = path.read_bytes()
    assert_readers_agree(content)
    theirs = second_reader.read(content).records
    for stamped, members in zip(read_journal(content).records, theirs, strict=True):
        assert not isinstance(stamped.record, Unknown)
        ours = json.loads(json.dumps(encode(stamped.record)))
        assert ours == {name: value for name, value in members.items() if name not in ENVELOPE}


@each_journal
def test_ledger_of_a_golden_journal_has_the_expected_state(path: Path) -> None:
    """J1, X1: messages, turns, calls, attempts, queue, jobs, grants and title are as the file beside it states."""
    expected = json.loads(path.with_suffix(".expected.json").read_text(encoding="ascii"))
    assert ledger_state(path.read_bytes()) == expected


# Completeness.


def shown_by(contents: list[bytes]) -> set[str]:
    records = [stamped.record for content in contents for stamped in read_journal(content).records]
    return {found for record in records if not isinstance(record, Unknown) for found in observations_in(record)}


def test_golden_journals_together_show_every_kind_member_and_word() -> None:
    """X1: each record kind, each optional member absent and present, and each word of a closed set is in some file."""
    missing = declared_observations() - shown_by([path.read_bytes() for path in JOURNALS])
    assert missing == set(), "write a new golden journal: see tests/journal/write_golden.py"


def test_journal_written_today_shows_every_kind_member_and_word() -> None:
    """X1: the writer of golden journals leaves out nothing that the record classes declare, and adds nothing."""
    assert shown_by([every_member()]) == declared_observations()


@attrs.frozen
class Inner:
    """A part of a record of a later version."""

    word: Literal["yes", "no"]
    kind: Literal["inner"] = "inner"


@attrs.frozen
class Later:
    """A record of a kind that no golden journal shows."""

    kind = "later"
    sure: bool
    words: tuple[Literal["a", "b"], ...] = ()
    part: Inner | None = None


def test_observations_of_a_new_kind_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """X1: a kind, an optional member, a word in a list and a word inside a part are missing from the old files."""
    monkeypatch.setitem(KINDS, "later", Later)
    declared = declared_observations() - shown_by([path.read_bytes() for path in JOURNALS])
    assert declared == {
        "later",
        *("later.sure = True", "later.sure = False", "later.words absent", "later.words present"),
        *("later.words = a", "later.words = b", "later.part absent", "later.part present"),
        *("later.part.inner.word = yes", "later.part.inner.word = no", "later.part.inner.kind = inner"),
    }
    shown = observations_in(Later(sure=True, words=("a",), part=Inner("no")))  # type: ignore[arg-type]  # no Record
    assert declared - shown == {
        *("later.sure = False", "later.words absent", "later.words = b"),
        *("later.part absent", "later.part.inner.word = yes"),
    }


def test_ledger_states_differ_where_one_record_is_missing() -> None:
    """J1: the expected states say enough that a record left out of a session is noticed in most places."""
    content = (GOLDEN / "0.1-attempts.jsonl").read_bytes()
    whole = ledger_state(content)
    del whole["journal"]
    noticed = 0
    every = lines(content)
    for at in range(1, len(every), 7):
        state = ledger_state(b"".join(every[:at] + every[at + 1 :]))
        del state["journal"]
        noticed += state != whole
    assert noticed > len(every) / 7 * 0.9


# The rest of a session directory.


@each_summary
def test_summary_of_a_golden_journal_is_believed_and_written_the_same(path: Path, tmp_path: Path) -> None:
    """A8: an earlier version's `summary.json` counts for its journal, says what a fold says, and has stable bytes."""
    content = journal_of(path)
    (tmp_path / "journal.jsonl").write_bytes(content)
    shutil.copyfile(path, tmp_path / SUMMARY)
    loaded = read_journal(content)
    found = summary_of(fold(loaded.records, loaded.breaks))
    disk = system_disk()
    folder = disk.open_folder(str(tmp_path))
    try:
        assert read_summary(disk, folder) == found
        (tmp_path / SUMMARY).unlink()
        write_summary(disk, FakeIds(), folder, found, (loaded.size, loaded.last_sum))
    finally:
        disk.close(folder)
    assert (tmp_path / SUMMARY).read_bytes() == path.read_bytes()


class StoppedClock:
    """`ports.Clock` at one moment."""

    def __init__(self, moment: str) -> None:
        self.moment = moment

    def now(self) -> str:
        return self.moment

    def monotonic_s(self) -> float:
        return 0.0


@each_owner
def test_owner_file_of_a_golden_session_is_read_and_written_the_same(path: Path, tmp_path: Path) -> None:
    """J11: an earlier version's `owner.json` names the process, and the same facts give the same bytes."""
    (tmp_path / OWNER).write_bytes(path.read_bytes())
    disk = system_disk()
    folder = disk.open_folder(str(tmp_path))
    held = take_lock(disk, folder, str(tmp_path))
    assert held is not None
    try:
        found = owner_of(disk, folder)
        assert found is not None
        assert (found.pid, found.host) == (1, "here")
        write_owner(disk, FakeProcesses(), StoppedClock(found.since), FakeIds(), held)
    finally:
        held.lock.release()
        disk.close(folder)
    assert (tmp_path / OWNER).read_bytes() == path.read_bytes()


# What an older program makes of a journal of today (row X1).


def of_first_version() -> list[bytes]:
    """The golden journals of version 0.1 that have no damage."""
    return [path.read_bytes() for path in JOURNALS if path.name.startswith("0.1-") and "damaged" not in path.name]


def members_always_there(contents: list[bytes]) -> dict[str, set[str]]:
    """Kind → the members that each of its records in these journals has."""
    found: dict[str, set[str]] = {}
    for content in contents:
        for line in content.splitlines():
            members = json.loads(line)
            found.setdefault(members["kind"], set(members)).intersection_update(members)
    return found


def test_journal_of_today_leaves_out_no_member_that_the_first_version_requires() -> None:
    """X1: a program of version 0.1 takes a record without a member that it requires for damage."""
    needed, given = members_always_there(of_first_version()), members_always_there([every_member()])
    assert {kind: missing for kind, members in needed.items() if (missing := members - given.get(kind, set()))} == {}


def test_closed_sets_of_the_first_version_have_no_new_word() -> None:
    """X1: a program of version 0.1 takes a word that it does not know for damage. Additions are kinds and members."""
    old = shown_by(of_first_version())
    sets = {found.partition(" = ")[0] for found in old if " = " in found}
    added = {found for found in declared_observations() - old if found.partition(" = ")[0] in sets}
    assert added == set()


def test_older_program_passes_over_every_kind_and_member_that_was_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """X1: with the kinds of version 0.1 alone, a journal of today has no damage, and its attempts end the same."""
    content = every_member()
    old = {found for found in shown_by(of_first_version()) if "." not in found}
    added = set(KINDS) - old
    assert {"told", "rebind", "folders", "steer", "taken"} <= added
    today = ledger_state(content)
    read_line = journal_format._read_line  # other modules let it remember lines, whose kinds were known then
    monkeypatch.setattr(journal_format, "_read_line", inspect.unwrap(read_line))
    for kind in added:
        monkeypatch.delitem(KINDS, kind)
    loaded = read_journal(content)
    assert (loaded.damaged, loaded.breaks, loaded.newer) == (0, frozenset(), False)
    assert {one.record.kind_name for one in loaded.records if isinstance(one.record, Unknown)} == added
    assert ledger_state(content)["attempts"] == today["attempts"]
