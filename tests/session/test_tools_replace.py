"""The replacement of a file, with something happening at each of its operations.

Every test here walks all operations of the body: a save, a cancel, a fault or a crash comes before (or after) the
first, then the second, and so on until the body ends undisturbed. What must hold is said by `judged` and `settled`.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
import pytest

from steadyhand.adapters.disk import system_disk
from steadyhand.core.identity import sha256
from steadyhand.core.postcondition import check_whole
from steadyhand.core.record import Check, Evidence
from steadyhand.ports import Disk, File, Folder, OpenDocument
from steadyhand.tools.catalogue import intended_content
from steadyhand.tools.check import check, clear_temporary, make_durable
from steadyhand.tools.edit_file import EditFile
from steadyhand.tools.tool import Done
from steadyhand.tools.write_file import WriteFile
from tests.support.disks import CountingDisk, FaultDisk, Operation, WatchedDisk
from tests.support.ground import Yard, arguments, between, gathered, planned, running

T = TypeVar("T")
OLD, NEW = b"old line\nsecond\n", b"new line\nsecond\n"
THEIRS = b"somebody else's work\n"
FIELDS = {"path": "d/f.txt", "content": NEW.decode()}
NAME = "d/f.txt"
operations_max = 400


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


def carry_out(
    yard: Yard, disk: Disk | None = None, cancelled: Callable[[], bool] = lambda: False
) -> tuple[Done | OSError | None, Evidence]:
    """Run the write over a disk; the evidence was gathered undisturbed. None: it crashed."""
    call = planned(WriteFile(), yard.ground(), **FIELDS)
    evidence = gathered(call)
    object.__setattr__(call, "_ground", yard.ground(disk))

    async def body() -> Done | OSError | None:
        try:
            return await call.run(running(evidence, cancelled))
        except OSError as error:
            return error
        except Crash:
            return None

    return anyio.run(body), evidence[0]


def yards(tmp_path: Path, existed: bool) -> Iterator[tuple[int, Yard]]:
    """One fresh yard after the other, numbered from 1; the caller stops when its number was not reached."""
    for number in range(1, operations_max):
        yard = Yard.under(tmp_path / str(number))
        if existed:
            yard.write(NAME, OLD)
        yield number, yard
    pytest.fail("the operations never end")


def now(yard: Yard) -> bytes | None:
    path = yard.root / NAME
    return path.read_bytes() if path.exists() else None


def recovered(yard: Yard, evidence: Evidence) -> tuple[Check, tuple[str, ...]]:
    """What recovery finds on a healthy disk: temporary files first, then the check, then durability."""
    ground = yard.ground()
    intended = intended_content(ground, "write_file", arguments(**FIELDS).canonical, evidence)
    assert intended == NEW
    kept = clear_temporary(ground, evidence, intended)
    found = check_whole(one.check for one in check(ground, (evidence,)))
    assert make_durable(ground, (evidence,))
    return found, kept


def settled(yard: Yard, outcome: Done | OSError | None, evidence: Evidence) -> Check:
    """Old or new, never else; the check says which; nothing is left behind; a claim of success is true."""
    check_now, kept = recovered(yard, evidence)
    assert now(yard) in (NEW, OLD if evidence.existed else None)
    assert check_now == ("satisfied" if now(yard) == NEW else "unchanged")
    assert kept == ()
    assert yard.beside() == []
    if isinstance(outcome, Done):
        assert (outcome.outcome == "returned") == (now(yard) == NEW)
    return check_now


@pytest.mark.parametrize("existed", [True, False])
def test_undisturbed_it_returns_what_it_read_back(tmp_path: Path, existed: bool) -> None:
    """W5, W9, case 34: observed size and digest, nothing left beside the file, no check needed afterwards."""
    _, yard = next(yards(tmp_path, existed))
    outcome, evidence = carry_out(yard)
    assert isinstance(outcome, Done)
    (change,) = outcome.files
    assert (outcome.outcome, outcome.check) == ("returned", "satisfied")
    assert (change.path, change.change, change.bytes, change.after) == (
        NAME,
        "modified" if existed else "created",
        len(NEW),
        sha256(NEW),
    )
    assert sha256(NEW) in outcome.text
    assert settled(yard, outcome, evidence) == "satisfied"


@pytest.mark.parametrize("existed", [True, False])
def test_a_cancel_at_any_operation_is_before_or_too_late(tmp_path: Path, existed: bool) -> None:
    """W9, case 37: until the replacement a cancel leaves the file as it was; after it the change is done."""
    seen: set[str] = set()
    for number, yard in yards(tmp_path, existed):
        reached: list[int] = []

        def note(count: int, name: str, number: int = number, reached: list[int] = reached) -> None:
            if count == number:
                reached.append(count)

        def cancelled(reached: list[int] = reached) -> bool:
            return bool(reached)

        outcome, evidence = carry_out(yard, between(note), cancelled)
        assert isinstance(outcome, Done)
        seen.add(outcome.outcome)
        settled(yard, outcome, evidence)
        if not reached:
            break
    assert seen == {"stopped", "returned"}


@pytest.mark.parametrize("existed", [True, False])
@pytest.mark.parametrize("number_of_error", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("for_good", [False, True])
def test_a_fault_at_any_operation_leaves_old_or_new(
    tmp_path: Path, existed: bool, number_of_error: int, for_good: bool
) -> None:
    """W6, W9, cases 32 and 61: after any fault the check tells the truth, and what was left can be cleared."""
    seen: set[Check] = set()
    for number, yard in yards(tmp_path, existed):
        disk = FaultDisk(system_disk(), number, number_of_error, for_good)
        outcome, evidence = carry_out(yard, disk)
        if not disk.failed:
            break
        seen.add(settled(yard, outcome, evidence))
    assert seen == {"unchanged", "satisfied"}


@pytest.mark.parametrize("existed", [True, False])
def test_a_fault_that_comes_after_the_deed_is_believed_by_nobody(tmp_path: Path, existed: bool) -> None:
    """W6, case 32: an operation that was done and reported as failed is answered by the check."""
    seen: set[Check] = set()
    for number, yard in yards(tmp_path, existed):
        disk = LateFault(system_disk(), number)
        outcome, evidence = carry_out(yard, disk)
        seen.add(settled(yard, outcome, evidence))
        if disk.count < number:
            break
    assert seen == {"unchanged", "satisfied"}


@pytest.mark.parametrize("then", [None, errno.ENOSPC])
def test_short_writes_are_completed_or_replace_nothing(tmp_path: Path, then: int | None) -> None:
    """J7, case 61: a short write goes on; one that is followed by a full disk leaves the old content."""
    _, yard = next(yards(tmp_path, True))
    disk = FaultDisk(system_disk(), 1, "short", for_good=True, then=then)
    disk.matches = lambda operation: operation.verb == "write" and not disk.failed
    outcome, evidence = carry_out(yard, disk)
    assert disk.failed
    assert settled(yard, outcome, evidence) == ("satisfied" if then is None else "unchanged")


@pytest.mark.parametrize("existed", [True, False])
def test_a_crash_at_any_operation_is_told_by_the_check(tmp_path: Path, existed: bool) -> None:
    """W2, W9, B3: whatever operation was the last, recovery finds old or new and removes the temporary file."""
    seen: set[Check] = set()
    for number, yard in yards(tmp_path, existed):
        crashed: list[int] = []
        outcome, evidence = carry_out(yard, between(_crashing(number, crashed)))
        seen.add(settled(yard, outcome, evidence))
        if not crashed:
            break
    assert seen == {"unchanged", "satisfied"}


def _crashing(number: int, crashed: list[int]) -> Callable[[int, str], None]:
    def before(count: int, name: str) -> None:
        # A dead process closes its descriptors too; all else would be its work after death.
        if name != "close" and count >= number:
            crashed.append(count)
            raise Crash

    return before


def _renamed_over(path: Path) -> None:
    saved = path.with_name("save")
    saved.write_bytes(THEIRS)
    saved.replace(path)


def _in_place(path: Path) -> None:
    path.write_bytes(THEIRS)


SAVES = [_renamed_over, _in_place]


def judged(yard: Yard, outcome: Done | OSError | None, late: bool = False) -> None:
    """Their bytes are somewhere, and where they are is said; what is said of ours is true. `late`: the save came
    when all was read back and only folders were being closed."""
    target = now(yard)
    assert isinstance(outcome, Done), outcome
    places = {name: (yard.root / "d" / name).read_bytes() for name in yard.beside()}
    assert set(outcome.kept) == {f"d/{name}" for name in places}
    assert THEIRS in (target, *places.values()), "their save is lost"
    assert all(content == THEIRS for content in places.values())
    match outcome.outcome:
        case "returned":
            assert late
        case "failed":
            assert outcome.reason == "changed"
            assert target == THEIRS
        case "unknown":
            assert outcome.check == "conflict"
        case _:
            pytest.fail(f"a verdict out of place: {outcome}")


@pytest.mark.parametrize("save", SAVES)
@pytest.mark.parametrize("existed", [True, False])
def test_a_save_at_any_operation_is_never_lost(tmp_path: Path, existed: bool, save: Callable[[Path], None]) -> None:
    """W9, case 71: a save that comes before any one operation stands afterwards, and nobody says otherwise."""
    seen: set[str] = set()
    for number, yard in yards(tmp_path, existed):
        reached: list[str] = []

        def slip(count: int, name: str, number: int = number, yard: Yard = yard, reached: list[str] = reached) -> None:
            if count == number and (yard.root / "d").is_dir():
                reached.append(name)
                save(yard.root / NAME)

        outcome, _ = carry_out(yard, between(slip))
        if not reached and number > 30:
            break
        if reached:
            judged(yard, outcome, late=reached == ["close"])
            assert isinstance(outcome, Done)
            seen.add(outcome.outcome)
    assert seen == {"failed", "unknown", "returned"}


def test_a_deletion_at_any_operation_is_not_undone_or_hidden(tmp_path: Path) -> None:
    """W2, W9: deleted before the replacement it stays deleted; after it nobody says that the content is there."""
    for number, yard in yards(tmp_path, True):
        reached: list[int] = []

        def delete(
            count: int, name: str, number: int = number, yard: Yard = yard, reached: list[int] = reached
        ) -> None:
            if count == number:
                reached.append(count)
                (yard.root / NAME).unlink()

        outcome, _ = carry_out(yard, between(delete))
        if not reached:
            break
        assert yard.beside() == []
        if isinstance(outcome, Done) and outcome.outcome == "returned":
            continue  # deleted after it was read back
        assert now(yard) is None


def test_a_save_after_the_gate_is_exchanged_back(tmp_path: Path) -> None:
    """W9: at the very exchange a save slips in; it is found displaced and stands under its name again."""
    _, yard = next(yards(tmp_path, True))
    slipped: list[str] = []

    def slip(count: int, name: str) -> None:
        if name == "exchange" and not slipped:
            slipped.append(name)
            _renamed_over(yard.root / NAME)

    outcome, evidence = carry_out(yard, between(slip))
    assert slipped
    judged(yard, outcome)
    assert isinstance(outcome, Done)
    assert (outcome.outcome, outcome.reason, outcome.kept) == ("failed", "changed", ())
    assert recovered(yard, evidence) == ("conflict", ())


def test_two_saves_around_the_exchange_are_both_kept(tmp_path: Path) -> None:
    """W9: the later save stands under the name, the earlier one is kept beside it and named."""
    _, yard = next(yards(tmp_path, True))
    saves = [b"first save", b"second save"]

    def slip(count: int, name: str) -> None:
        if name == "exchange" and saves:
            (yard.root / "d/save").write_bytes(saves.pop(0))
            (yard.root / "d/save").replace(yard.root / NAME)

    outcome, evidence = carry_out(yard, between(slip))
    assert isinstance(outcome, Done)
    assert now(yard) == b"second save"
    (kept,) = outcome.kept
    assert (yard.root / kept).read_bytes() == b"first save"
    assert (outcome.outcome, outcome.reason) == ("failed", "changed")
    assert kept in outcome.text
    assert recovered(yard, evidence) == ("conflict", (kept,))


def test_a_save_that_cannot_be_put_back_is_kept_and_named(tmp_path: Path) -> None:
    """W9: when the exchange back fails, the verdict is a conflict and their bytes lie where it says."""
    _, yard = next(yards(tmp_path, True))
    exchanges: list[str] = []

    def slip(count: int, name: str) -> None:
        if name == "exchange":
            exchanges.append(name)
            if len(exchanges) == 1:
                _renamed_over(yard.root / NAME)
            else:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

    outcome, evidence = carry_out(yard, between(slip))
    judged(yard, outcome)
    assert isinstance(outcome, Done)
    assert (outcome.outcome, outcome.check) == ("unknown", "conflict")
    assert recovered(yard, evidence)[1] == outcome.kept != ()


def test_a_save_and_then_a_crash_leave_their_bytes(tmp_path: Path) -> None:
    """W9: a kill between the exchange and its end leaves a displaced save; recovery keeps and names it."""
    seen_kept = 0
    for number, yard in yards(tmp_path, True):
        slipped: list[int] = []
        crashed: list[int] = []
        crash = _crashing(number, crashed)

        def before(
            count: int,
            name: str,
            yard: Yard = yard,
            slipped: list[int] = slipped,
            crash: Callable[[int, str], None] = crash,
        ) -> None:
            if name == "exchange" and not slipped:
                slipped.append(count)
                _renamed_over(yard.root / NAME)
            if slipped:
                crash(count, name)

        _, evidence = carry_out(yard, between(before))
        _, kept = recovered(yard, evidence)
        places = [(yard.root / name).read_bytes() for name in kept]
        assert yard.beside() == [Path(name).name for name in kept]
        assert THEIRS in (now(yard), *places)
        assert all(place == THEIRS for place in places)
        seen_kept += bool(kept)
        if not crashed:
            break
    assert seen_kept, "no crash fell between the exchange and its end"


def test_it_is_durable_before_it_is_the_file(tmp_path: Path) -> None:
    """W9, J4: content and attributes, their sync, the exchange, the removal, the sync of the folder; in this order."""
    for existed, verbs in (
        (True, ["sync_folder", "create", "write", "give_attributes", "sync", "exchange", "unlink", "sync_folder"]),
        (False, ["make_folder", "sync_folder", "sync_folder", "create", "write", "sync", "rename_new", "sync_folder"]),
    ):
        _, yard = next(yards(tmp_path / str(existed), existed))
        disk = CountingDisk(system_disk())
        outcome, _ = carry_out(yard, disk)
        assert isinstance(outcome, Done)
        assert [operation.verb for operation in disk.operations] == verbs


def test_a_save_before_the_gate_never_leaves_its_name(tmp_path: Path) -> None:
    """W9: what the last comparison finds changed is not even exchanged; so nothing is lost without exchange either."""
    _, yard = next(yards(tmp_path, True))
    names: list[str] = []

    def slip(count: int, name: str) -> None:
        names.append(name)
        if name == "sync":
            _renamed_over(yard.root / NAME)

    outcome, _ = carry_out(yard, between(slip))
    judged(yard, outcome)
    assert isinstance(outcome, Done)
    assert (outcome.outcome, outcome.reason) == ("failed", "changed")
    assert not {"exchange", "rename"} & set(names)


def test_a_save_into_the_displaced_file_is_put_back(tmp_path: Path) -> None:
    """W9: an editor that has the old file open and writes once more after the comparison keeps its bytes."""
    _, yard = next(yards(tmp_path, True))
    names: list[str] = []

    def slip(count: int, name: str) -> None:
        names.append(name)
        if "exchange" in names and name == "close" and names.count("exchange") == 1:
            (left,) = yard.beside()
            (yard.root / "d" / left).write_bytes(THEIRS)

    outcome, _ = carry_out(yard, between(slip))
    judged(yard, outcome)
    assert now(yard) == THEIRS


@pytest.mark.parametrize("as_link", [True, False])
def test_a_folder_moved_away_at_any_operation_is_not_taken_for_its_path(tmp_path: Path, as_link: bool) -> None:
    """W5, E3: another folder stands under the path; a change of the moved one is never told as one of the path."""
    verdicts: set[str] = set()
    for number, yard in yards(tmp_path, True):
        names: list[str] = []

        def swap(count: int, name: str, number: int = number, yard: Yard = yard, names: list[str] = names) -> None:
            names.append(name)
            if count == number:
                (yard.root / "d").rename(yard.root / "moved")
                if as_link:
                    (yard.root / "d").symlink_to("moved")
                else:
                    yard.write(NAME, OLD)

        outcome, _ = carry_out(yard, between(swap))
        if isinstance(outcome, Done) and outcome.outcome != "unknown":
            verdicts.add(outcome.outcome)
            # Moved after the walk to the read back: then it was true when it was read.
            late = "enter" not in names[number - 1 :]
            assert now(yard) == (NEW if outcome.outcome == "returned" else OLD) or late
        if len(names) < number:
            break
    assert verdicts == {"failed", "returned"}


def test_a_folder_moved_away_at_the_exchange_is_a_conflict(tmp_path: Path) -> None:
    """W5: the moved file has the content, but its path has not, and the path was asked for."""
    _, yard = next(yards(tmp_path, True))

    def swap(count: int, name: str) -> None:
        if name == "exchange":
            (yard.root / "d").rename(yard.root / "moved")
            yard.write(NAME, OLD)

    outcome, _ = carry_out(yard, between(swap))
    assert isinstance(outcome, Done)
    assert (outcome.outcome, outcome.check) == ("unknown", "conflict")
    assert now(yard) == OLD


def test_where_names_cannot_be_exchanged_a_rename_replaces(tmp_path: Path) -> None:
    """W9: without the exchange the file is still old or new at each fault."""

    class NoExchange(FaultDisk):
        def exchange(self, folder: Folder, first: str, second: str) -> bool:
            return False

    seen: set[Check] = set()
    for number, yard in yards(tmp_path, True):
        disk = NoExchange(system_disk(), number, errno.EIO)
        outcome, evidence = carry_out(yard, disk)
        seen.add(settled(yard, outcome, evidence))
        if not disk.failed:
            break
    assert seen == {"unchanged", "satisfied"}


@pytest.mark.parametrize("drop", [0, 5])
def test_a_disk_that_drops_bytes_replaces_nothing(tmp_path: Path, drop: int) -> None:
    """W5, case 34: a writer that keeps nothing, or half, and says that all is well, is found out before."""

    class Dropping(WatchedDisk):
        def write(self, file: File, piece: bytes) -> int:
            super().write(file, piece[:drop])
            return len(piece)

    _, yard = next(yards(tmp_path, True))
    outcome, evidence = carry_out(yard, Dropping(system_disk()))
    assert isinstance(outcome, Done)
    assert (outcome.outcome, outcome.reason) == ("failed", "not_written")
    assert settled(yard, outcome, evidence) == "unchanged"


def test_the_editor_may_change_while_it_is_written(tmp_path: Path) -> None:
    """V2, W9: unsaved changes that come up after the start replace nothing."""
    _, yard = next(yards(tmp_path, True))

    def typed(count: int, name: str) -> None:
        yard.documents[str(yard.root / NAME)] = OpenDocument("typing", 2, True)

    outcome, evidence = carry_out(yard, between(typed))
    assert isinstance(outcome, Done)
    assert (outcome.outcome, outcome.reason) == ("failed", "unsaved")
    assert settled(yard, outcome, evidence) == "unchanged"


def test_a_folder_that_becomes_a_link_leads_nowhere(tmp_path: Path) -> None:
    """E3, case 104: swapped for a link to the outside at any operation, nothing is made out there."""
    for number, yard in yards(tmp_path, True):
        reached: list[int] = []
        (yard.outside / "f.txt").write_bytes(OLD)

        def swap(count: int, name: str, number: int = number, yard: Yard = yard, reached: list[int] = reached) -> None:
            if count == number:
                reached.append(count)
                (yard.root / "d").rename(yard.root / "moved")
                (yard.root / "d").symlink_to(yard.outside)

        carry_out(yard, between(swap))
        assert [path.name for path in yard.outside.iterdir()] == ["f.txt"]
        assert (yard.outside / "f.txt").read_bytes() == OLD
        if not reached:
            break


def test_an_edit_is_made_again_from_its_arguments(tmp_path: Path) -> None:
    """W9: the intended bytes are recomputed from arguments and checkpoint, and only believed by their digest."""
    _, yard = next(yards(tmp_path, True))
    ground = yard.ground()
    fields = {"path": NAME, "edits": [{"old": "old", "new": "new"}]}
    (evidence,) = gathered(planned(EditFile(), ground, **fields))
    text = arguments(**fields).canonical
    assert intended_content(ground, "edit_file", text, evidence) == NEW
    other = arguments(path=NAME, edits=[{"old": "old", "new": "other"}]).canonical
    assert intended_content(ground, "edit_file", other, evidence) is None
    assert intended_content(ground, "edit_file", "{", evidence) is None
    assert intended_content(ground, "run_command", text, evidence) is None
    (yard.session / "checkpoints" / str(evidence.checkpoint)).write_bytes(b"damaged")
    assert intended_content(ground, "edit_file", text, evidence) is None


@pytest.mark.anyio
async def test_a_cancel_from_outside_waits_for_what_the_body_did(tmp_path: Path) -> None:
    """I2, case 37: the body's thread is not left alone; its result comes out although the scope was cancelled."""
    _, yard = next(yards(tmp_path, True))
    reached, go_on = threading.Event(), threading.Event()

    def hold(count: int, name: str) -> None:
        if name == "exchange":
            reached.set()
            assert go_on.wait(10)

    call = planned(WriteFile(), yard.ground(), **FIELDS)
    evidence = gathered(call)
    object.__setattr__(call, "_ground", yard.ground(between(hold)))
    results: list[Done] = []
    with anyio.fail_after(20), anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:

            async def body() -> None:
                results.append(await call.run(running(evidence)))

            tasks.start_soon(body)
            await anyio.to_thread.run_sync(reached.wait, 10)
            scope.cancel()
            go_on.set()
    assert results[0].outcome == "returned"
    assert now(yard) == NEW
