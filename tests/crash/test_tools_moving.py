"""Moves and deletions of files and links, with something happening at each of their operations.

A `Deed` is one call with the tree before and after it. Every test walks all operations of its body: a save, a cancel, a
fault or a crash comes before the first, then the second, and so on until the body ends undisturbed. `settled` says what
must hold of the tree and of what recovery makes of it, `judged` what becomes of somebody else's save.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar, cast

import anyio
import attrs
import pytest

from steadyhand.adapters import renames
from steadyhand.adapters.disk import system_disk
from steadyhand.core.identity import sha256
from steadyhand.core.postcondition import check_whole, intended_changes
from steadyhand.core.record import Check, Evidence, PathFinding
from steadyhand.ports import Disk, Folder, OpenDocument
from steadyhand.tools.catalogue import intended_content
from steadyhand.tools.check import check, clear_temporary, make_durable
from steadyhand.tools.delete_file import DeleteFile
from steadyhand.tools.move_file import MoveFile
from steadyhand.tools.tool import Done, Tool
from tests.support.disks import CountingDisk, FaultDisk, Operation, WatchedDisk
from tests.support.ground import BetweenDisk, Yard, arguments, gathered, planned, running

T = TypeVar("T")
OLD, OTHER = b"the content\nthat is moved\n", b"what was there\n"
THEIRS = b"somebody else's work\n"
FROM, TO = "d/f.txt", "e/g.txt"
operations_max = 400
Tree = dict[str, bytes]
"""Path → bytes; of a link `-> ` and its target."""


class OtherFileSystem(WatchedDisk):
    """No name can be moved into another folder, as between two file systems."""

    def rename_to(self, folder: Folder, name: str, other: Folder, new: str, exclusive: bool) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))


@attrs.frozen
class Deed:
    tool: Tool
    fields: dict[str, object]
    before: Tree
    after: Tree
    disk: Callable[[], Disk] = system_disk
    copies: bool = False  # the two paths are changed one after the other

    def lay(self, yard: Yard) -> None:
        for name, content in self.before.items():
            if content.startswith(b"-> "):
                (yard.root / name).parent.mkdir(parents=True, exist_ok=True)
                (yard.root / name).symlink_to(content[3:].decode())
            else:
                yard.write(name, content)


ONWARD: dict[str, object] = {"from": FROM, "to": TO}
DEEDS = {
    "delete": Deed(DeleteFile(), {"path": FROM}, {FROM: OLD}, {}),
    "delete a link": Deed(DeleteFile(), {"path": FROM}, {FROM: b"-> ../e/g.txt", TO: OTHER}, {TO: OTHER}),
    "move": Deed(MoveFile(), ONWARD, {FROM: OLD}, {TO: OLD}),
    "move a link": Deed(MoveFile(), ONWARD, {FROM: b"-> nowhere"}, {TO: b"-> nowhere"}),
    "move over": Deed(MoveFile(), {**ONWARD, "overwrite": True}, {FROM: OLD, TO: OTHER}, {TO: OLD}, copies=True),
    "move across": Deed(
        MoveFile(), ONWARD, {FROM: OLD}, {TO: OLD}, lambda: OtherFileSystem(system_disk()), copies=True
    ),
}
every_deed = pytest.mark.parametrize("deed", DEEDS.values(), ids=DEEDS)


class Crash(BaseException):
    """Stands for the death of the process: nothing of ours runs after it."""


class LateFault(WatchedDisk):
    """The n-th durable operation is done, and then reported as failed."""

    def __init__(self, inner: Disk, at: int) -> None:
        super().__init__(inner)
        self.at = at

    def around(self, operation: Operation, act: Callable[[], T], half: Callable[[], T] | None) -> T:
        done = act()
        if operation.number == self.at:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(operation))
        return done


def between(deed: Deed, before: Callable[[int, str], None]) -> Disk:
    return cast(Disk, BetweenDisk(deed.disk(), before))


def carry_out(
    deed: Deed, yard: Yard, disk: Disk | None = None, cancelled: Callable[[], bool] = lambda: False
) -> tuple[Done | OSError | None, tuple[Evidence, ...]]:
    """Run the call over a disk; the evidence was gathered undisturbed. None: it crashed."""
    call = planned(deed.tool, yard.ground(), **deed.fields)
    evidence = gathered(call)
    object.__setattr__(call, "_ground", yard.ground(disk or deed.disk()))

    async def body() -> Done | OSError | None:
        try:
            return await call.run(running(evidence, cancelled))
        except OSError as error:
            return error
        except Crash:
            return None

    return anyio.run(body), evidence


def yards(tmp_path: Path, deed: Deed) -> Iterator[tuple[int, Yard]]:
    """One fresh yard after the other, numbered from 1; the caller stops when its number was not reached."""
    for number in range(1, operations_max):
        yard = Yard.under(tmp_path / str(number))
        deed.lay(yard)
        yield number, yard
    pytest.fail("the operations never end")


def tree(yard: Yard) -> Tree:
    """Every file and link of the workspace, temporary ones too."""
    found: Tree = {}
    for path in sorted(yard.root.rglob("*")):
        name = path.relative_to(yard.root).as_posix()
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}".encode()
        elif path.is_file():
            found[name] = path.read_bytes()
    return found


def recovered(deed: Deed, yard: Yard, evidence: tuple[Evidence, ...]) -> tuple[tuple[PathFinding, ...], list[str]]:
    """What recovery finds on a healthy disk: temporary files first, then the check, then durability."""
    ground = yard.ground()
    kept: list[str] = []
    for one in evidence:
        intended = intended_content(ground, deed.tool.name, arguments(**deed.fields).canonical, one)
        assert intended is not None
        kept += clear_temporary(ground, one, intended)
    found = check(ground, evidence)
    assert make_durable(ground, evidence)
    return found, kept


def settled(deed: Deed, yard: Yard, outcome: Done | OSError | None, evidence: tuple[Evidence, ...]) -> Check:
    """Each path old or new, the check says which, nothing is left behind, and a claim is true."""
    findings, kept = recovered(deed, yard, evidence)
    found = check_whole(one.check for one in findings)
    stands = tree(yard)
    both = {**deed.before, **deed.after}
    assert kept == [], stands
    if stands == deed.after:
        assert found == "satisfied"
    elif stands == deed.before:
        assert found == "unchanged"
    else:
        assert deed.copies
        assert stands == both
        assert found == "conflict"
        assert [(one.path, one.check) for one in findings] == [(FROM, "unchanged"), (TO, "satisfied")]
        assert [one.reason for one in findings] == ["it is there as before", "it has the intended content"]
    if isinstance(outcome, Done):
        assert (outcome.outcome == "returned") == (stands == deed.after), outcome
        assert outcome.outcome not in ("failed", "stopped") or stands == deed.before
    return found


@every_deed
def test_undisturbed_it_returns_what_it_read_back(tmp_path: Path, deed: Deed) -> None:
    """W4, W5, case 34: the tree is as meant, each path's check is satisfied, nothing is left beside it."""
    _, yard = next(yards(tmp_path, deed))
    outcome, evidence = carry_out(deed, yard)
    assert isinstance(outcome, Done)
    assert (outcome.outcome, outcome.check, outcome.kept) == ("returned", "satisfied", ())
    (change,) = outcome.files
    moved = deed.tool.name == "move_file"
    assert (change.path, change.change) == ((TO, "moved") if moved else (FROM, "deleted"))
    assert change.from_ == (FROM if moved else None)
    assert change.after == (evidence[0].before if moved else None)
    assert settled(deed, yard, outcome, evidence) == "satisfied"


@every_deed
def test_the_content_before_is_kept_for_every_path(tmp_path: Path, deed: Deed) -> None:
    """W1, W8: evidence for each path, its content before under its digest, of a link its target."""
    _, yard = next(yards(tmp_path, deed))
    evidence = gathered(planned(deed.tool, yard.ground(), **deed.fields))
    assert [one.resolved for one in evidence] == [str(yard.root / name) for name in (FROM, TO)][: len(evidence)]
    assert len(evidence) == (2 if deed.tool.name == "move_file" else 1)
    for one, name in zip(evidence, (FROM, TO), strict=False):
        before = deed.before.get(name)
        content = None if before is None else before.removeprefix(b"-> ")
        assert (one.existed, one.checkpoint) == (content is not None, None if content is None else sha256(content))
        assert one.checkpoint == one.before
        assert one.kind == ("link" if deed.before[FROM].startswith(b"-> ") else "file")
        if content is not None:
            assert (yard.session / "checkpoints" / sha256(content)).read_bytes() == content
    if len(evidence) == 2:
        assert (evidence[0].intended, evidence[1].intended) == (None, evidence[0].before)
    assert tree(yard) == deed.before


@every_deed
def test_a_cancel_at_any_operation_is_before_or_too_late(tmp_path: Path, deed: Deed) -> None:
    """W9, case 37: until the deed a cancel leaves everything as it was; after it the deed is done."""
    seen: set[str] = set()
    for number, yard in yards(tmp_path, deed):
        reached: list[int] = []

        def note(count: int, name: str, number: int = number, reached: list[int] = reached) -> None:
            if count == number:
                reached.append(count)

        def cancelled(reached: list[int] = reached) -> bool:
            return bool(reached)

        outcome, evidence = carry_out(deed, yard, between(deed, note), cancelled)
        assert isinstance(outcome, Done)
        seen.add(outcome.outcome)
        settled(deed, yard, outcome, evidence)
        if not reached:
            break
    assert seen == {"stopped", "returned"}


def reachable(deed: Deed) -> set[Check]:
    """A deed of two steps can be half done."""
    return {"unchanged", "satisfied", "conflict"} if deed.copies else {"unchanged", "satisfied"}


@every_deed
@pytest.mark.parametrize("for_good", [False, True])
def test_a_fault_at_any_operation_leaves_old_or_new(tmp_path: Path, deed: Deed, for_good: bool) -> None:
    """W3, W6, W9, cases 32 and 61: after any fault the check tells the truth of each path."""
    seen: set[Check] = set()
    for number, yard in yards(tmp_path, deed):
        disk = FaultDisk(deed.disk(), number, errno.EIO, for_good)
        outcome, evidence = carry_out(deed, yard, disk)
        if not disk.failed:
            break
        seen.add(settled(deed, yard, outcome, evidence))
    assert seen == reachable(deed)


@every_deed
def test_a_fault_that_comes_after_the_deed_is_believed_by_nobody(tmp_path: Path, deed: Deed) -> None:
    """W6, case 32: an operation that was done and reported as failed is answered by the check."""
    seen: set[Check] = set()
    for number, yard in yards(tmp_path, deed):
        disk = LateFault(deed.disk(), number)
        outcome, evidence = carry_out(deed, yard, disk)
        seen.add(settled(deed, yard, outcome, evidence))
        if disk.count < number:
            break
    assert seen >= {"unchanged", "satisfied"} - ({"unchanged"} if not deed.copies else set())
    assert seen <= reachable(deed)


@every_deed
def test_a_crash_at_any_operation_is_told_by_the_check(tmp_path: Path, deed: Deed) -> None:
    """W2, W3, W9, B3: whatever operation was the last, recovery finds each path old or new and clears the rest; a move
    that was half done is a conflict whose partial state is named."""
    seen: set[Check] = set()
    for number, yard in yards(tmp_path, deed):
        crashed: list[int] = []
        outcome, evidence = carry_out(deed, yard, between(deed, _crashing(number, crashed)))
        seen.add(settled(deed, yard, outcome, evidence))
        if not crashed:
            break
    assert seen == reachable(deed)


def _crashing(number: int, crashed: list[int]) -> Callable[[int, str], None]:
    def before(count: int, name: str) -> None:
        # A dead process closes its descriptors too; all else would be its work after death.
        if name != "close" and count >= number:
            crashed.append(count)
            raise Crash

    return before


def _renamed_over(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    saved = path.with_name("save")
    saved.write_bytes(THEIRS)
    saved.replace(path)


def _in_place(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(THEIRS)


def judged(deed: Deed, yard: Yard, outcome: Done | OSError | None, saved_at: str, late: bool) -> None:
    """Their bytes are somewhere, and beside a path only where that is said; ours are told truly, and never lost but
    where they were meant to go. `late`: the save came when all was read back and only folders were being closed."""
    stands = tree(yard)
    assert isinstance(outcome, Done), outcome
    hidden = {name: content for name, content in stands.items() if name.endswith(".steadyhand")}
    assert set(hidden) <= set(outcome.kept)
    assert all(content == THEIRS for content in hidden.values()), "something of ours is left behind"
    assert THEIRS in stands.values(), "their save is lost"
    match outcome.outcome:
        case "returned":
            assert late
        case "failed":
            assert outcome.reason == "changed"
            # A save to the new name right after the rename is taken for one to the old name right before it.
            place = saved_at if stands.get(saved_at) == THEIRS else FROM
            assert stands[place] == THEIRS
            assert place == saved_at or f"stands under {FROM}" in outcome.text
            rest = {name: content for name, content in stands.items() if name != place and name not in hidden}
            assert rest == {name: content for name, content in deed.before.items() if name != place}
        case "unknown":
            assert outcome.check == "conflict"
        case _:
            pytest.fail(f"a verdict out of place: {outcome}")


SAVED = [(name, where) for name in DEEDS for where in (FROM, TO) if where == FROM or name.startswith("move")]


@pytest.mark.parametrize("save", [_renamed_over, _in_place])
@pytest.mark.parametrize(("name", "where"), [(name, where) for name, where in SAVED if "link" not in name])
def test_a_save_at_any_operation_is_never_lost(
    tmp_path: Path, name: str, save: Callable[[Path], None], where: str
) -> None:
    """W9, case 71: a save to either path that comes before any one operation stands afterwards, and nobody says
    otherwise."""
    deed = DEEDS[name]
    seen: set[str] = set()
    for number, yard in yards(tmp_path, deed):
        reached: list[str] = []

        def slip(count: int, name: str, number: int = number, yard: Yard = yard, reached: list[str] = reached) -> None:
            if count == number:
                reached.append(name)
                save(yard.root / where)
            elif count > number:
                reached.append(name)

        outcome, _ = carry_out(deed, yard, between(deed, slip))
        if not reached:
            break
        # Both paths are read back, the new one first; what comes to one after its last look makes nothing untrue.
        looked_for_late = 1 if where == TO else 0
        late = reached.count("look") <= looked_for_late and not {"rename_new", "rename_to", "exchange"} & set(reached)
        judged(deed, yard, outcome, where, late)
        assert isinstance(outcome, Done)
        seen.add(outcome.outcome)
    assert seen == {"failed", "unknown", "returned"}


def _slipping(verb: str, yard: Yard, where: str, saves: list[bytes]) -> Callable[[int, str], None]:
    def slip(count: int, name: str) -> None:
        if name == verb and saves:
            (yard.root / "save").write_bytes(saves.pop(0))
            (yard.root / "save").replace(yard.root / where)

    return slip


@pytest.mark.parametrize(("name", "verb"), [("delete", "rename_new"), ("move", "rename_to")])
def test_a_save_after_the_gate_gets_its_name_back(tmp_path: Path, name: str, verb: str) -> None:
    """W9: at the very rename a save slips in; it is found elsewhere and stands under its name again."""
    deed = DEEDS[name]
    _, yard = next(yards(tmp_path, deed))
    outcome, evidence = carry_out(deed, yard, between(deed, _slipping(verb, yard, FROM, [THEIRS])))
    assert isinstance(outcome, Done)
    assert (outcome.outcome, outcome.reason, outcome.kept) == ("failed", "changed", ())
    assert tree(yard) == {FROM: THEIRS}
    findings, kept = recovered(deed, yard, evidence)
    assert (check_whole(one.check for one in findings), kept) == ("conflict", [])


@pytest.mark.parametrize(("name", "verb"), [("delete", "rename_new"), ("move", "rename_to")])
def test_two_saves_around_the_rename_are_both_kept(tmp_path: Path, name: str, verb: str) -> None:
    """W9: the later save stands under the name, the earlier one is kept where the reply says."""
    deed = DEEDS[name]
    _, yard = next(yards(tmp_path, deed))
    outcome, evidence = carry_out(deed, yard, between(deed, _slipping(verb, yard, FROM, [b"first", b"second"])))
    assert isinstance(outcome, Done)
    assert outcome.outcome in ("failed", "unknown")
    (kept,) = outcome.kept
    assert tree(yard) == {FROM: b"second", kept: b"first"}
    assert kept in outcome.text
    assert check_whole(one.check for one in recovered(deed, yard, evidence)[0]) == "conflict"
    assert tree(yard)[kept] == b"first"


def test_a_save_after_the_move_over_leaves_both_and_says_so(tmp_path: Path) -> None:
    """W3, W9: the new path has the content; what was saved under the old one stays there, and both are named."""
    deed = DEEDS["move over"]
    _, yard = next(yards(tmp_path, deed))
    outcome, evidence = carry_out(deed, yard, between(deed, _slipping("rename_new", yard, FROM, [THEIRS])))
    assert isinstance(outcome, Done)
    assert (outcome.outcome, outcome.check) == ("unknown", "conflict")
    assert tree(yard) == {FROM: THEIRS, TO: OLD}
    assert FROM in outcome.text
    assert TO in outcome.text
    findings, _ = recovered(deed, yard, evidence)
    assert [one.check for one in findings] == ["conflict", "satisfied"]


def test_a_save_and_then_a_crash_leave_their_bytes(tmp_path: Path) -> None:
    """W9: a kill between the displacement and its end leaves a save beside the path; recovery keeps and names it."""
    seen_kept = 0
    deed = DEEDS["delete"]
    for number, yard in yards(tmp_path, deed):
        crashed: list[int] = []
        slip, crash = _slipping("rename_new", yard, FROM, saves := [THEIRS]), _crashing(number, crashed)

        def before(
            count: int,
            name: str,
            saves: list[bytes] = saves,
            slip: Callable[[int, str], None] = slip,
            crash: Callable[[int, str], None] = crash,
        ) -> None:
            slip(count, name)
            if not saves and name != "rename_new":
                crash(count, name)

        _, evidence = carry_out(deed, yard, between(deed, before))
        _, kept = recovered(deed, yard, evidence)
        assert list(tree(yard).values()) == [THEIRS]
        assert [name for name in tree(yard) if name != FROM] == kept
        seen_kept += bool(kept)
        if not crashed:
            break
    assert seen_kept, "no crash fell between the displacement and its end"


@every_deed
def test_a_folder_that_becomes_a_link_leads_nowhere(tmp_path: Path, deed: Deed) -> None:
    """E3, case 104: swapped for a link to the outside at any operation, nothing is made or removed out there."""
    for number, yard in yards(tmp_path, deed):
        reached: list[int] = []
        for name in ("f.txt", "g.txt"):
            (yard.outside / name).write_bytes(OLD)
        (yard.root / "e").mkdir(exist_ok=True)

        def swap(count: int, name: str, number: int = number, yard: Yard = yard, reached: list[int] = reached) -> None:
            if count == number:
                reached.append(count)
                for folder in ("d", "e"):
                    (yard.root / folder).rename(yard.root / f"moved-{folder}")
                    (yard.root / folder).symlink_to(yard.outside)

        outcome, _ = carry_out(deed, yard, between(deed, swap))
        assert sorted(path.name for path in yard.outside.iterdir()) == ["f.txt", "g.txt"]
        assert all(path.read_bytes() == OLD for path in yard.outside.iterdir())
        if not reached:
            assert isinstance(outcome, Done)
            assert outcome.outcome == "returned"
            break


@every_deed
def test_unsaved_changes_that_come_up_stop_it(tmp_path: Path, deed: Deed) -> None:
    """V2: typed into the file after the start, nothing is moved or deleted."""
    _, yard = next(yards(tmp_path, deed))

    def typed(count: int, name: str) -> None:
        yard.documents[str(yard.root / FROM)] = OpenDocument("typing", 2, True)

    outcome, evidence = carry_out(deed, yard, between(deed, typed))
    assert isinstance(outcome, Done)
    assert (outcome.outcome, outcome.reason) == ("failed", "unsaved")
    assert settled(deed, yard, outcome, evidence) == "unchanged"


@pytest.mark.parametrize(
    ("name", "verbs"),
    [
        ("delete", ["rename_new", "unlink", "sync_folder"]),
        ("move", ["make_folder", "sync_folder", "sync_folder", "rename_to", "sync_folder", "sync_folder"]),
        (
            "move over",
            [
                *(
                    "sync_folder",
                    "sync_folder",
                    "create",
                    "write",
                    "give_attributes",
                    "sync",
                    "exchange",
                    "unlink",
                    "sync_folder",
                ),
                *("rename_new", "unlink", "sync_folder"),
            ],
        ),
    ],
)
def test_the_order_of_what_is_durable(tmp_path: Path, name: str, verbs: list[str]) -> None:
    """W9, J4: the new name and its content before the old one goes; the folders are synced before it is told."""
    deed = DEEDS[name]
    _, yard = next(yards(tmp_path, deed))
    disk = CountingDisk(deed.disk())
    outcome, _ = carry_out(deed, yard, disk)
    assert isinstance(outcome, Done)
    assert [operation.verb for operation in disk.operations] == verbs


def test_a_content_that_was_not_kept_is_not_removed_by_recovery(tmp_path: Path) -> None:
    """W8, W9: above the checkpoint's bound the displaced file may be all that is left of it."""
    deed = DEEDS["delete"]
    _, yard = next(yards(tmp_path, deed))
    _, (evidence,) = carry_out(deed, yard, between(deed, _crashing_at("unlink")))
    assert evidence.temporary is not None
    (left,) = yard.beside()
    large = attrs.evolve(evidence, checkpoint=None)
    assert clear_temporary(yard.ground(), large) == (f"d/{left}",)
    assert clear_temporary(yard.ground(), evidence) == ()
    assert tree(yard) == {}


def _crashing_at(verb: str) -> Callable[[int, str], None]:
    reached: list[str] = []

    def before(count: int, name: str) -> None:
        if name == verb:
            reached.append(name)
        if reached and name != "close":
            raise Crash

    return before


def test_a_move_of_the_same_content_is_still_told_apart(tmp_path: Path) -> None:
    """W2, W3: where both paths hold the same before, the new one says nothing, and goes with the old one."""
    deed = attrs.evolve(DEEDS["move over"], before={FROM: OLD, TO: OLD})
    _, yard = next(yards(tmp_path, deed))
    evidence = gathered(planned(deed.tool, yard.ground(), **deed.fields))
    findings, _ = recovered(deed, yard, evidence)
    assert [one.check for one in findings] == ["unchanged", "unchanged"]
    outcome, evidence = carry_out(deed, yard)
    assert settled(deed, yard, outcome, evidence) == "satisfied"


@every_deed
def test_what_a_satisfied_check_proves(tmp_path: Path, deed: Deed) -> None:
    """W6, G6: after an error whose deed is there, the changes told are those of the evidence."""
    _, yard = next(yards(tmp_path, deed))
    evidence = gathered(planned(deed.tool, yard.ground(), **deed.fields))
    outcome, _ = carry_out(deed, yard)
    assert isinstance(outcome, Done)
    assert intended_changes(evidence) == outcome.files


@every_deed
def test_without_the_renames_of_linux_it_is_done_all_the_same(
    tmp_path: Path, deed: Deed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W9: by a hard link and its removal where there is no exclusive rename, by a plain one where names are not
    exchanged; a crash there too leaves each path old or new."""
    monkeypatch.setattr(renames, "_renameat2", lambda: None)
    for number, yard in yards(tmp_path, deed):
        crashed: list[int] = []
        outcome, evidence = carry_out(deed, yard, between(deed, _crashing(number, crashed)))
        settled(deed, yard, outcome, evidence)
        if not crashed:
            assert isinstance(outcome, Done)
            assert outcome.outcome == "returned"
            break
