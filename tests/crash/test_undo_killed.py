"""An undo of a session's changes is killed at every durable operation, and the session is opened again (row V4).

The first process run makes the changes. The second one undoes them, or keeps them, and dies by SIGKILL. The third one
opens what is left and says of each file whether it is undone; what it says is what the file has, and what the model is
told. It then undoes the rest.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import attrs
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.records.record import Told
from steadyhand.domain.views.sentences import taken_back_text
from steadyhand.ports.disk import Disk
from steadyhand.session.changes import review
from steadyhand.session.changes.review import Selection
from steadyhand.session.recovery.resolve import ResolutionRequest
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.session import Session
from tests.support.faults import CountingDisk, KillingDisk, Operation, When
from tests.support.forks import ForkResult, run_in_fork
from tests.support.in_process_server import practice_server
from tests.support.killed_runs import SESSION
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [linux_only, pytest.mark.timeout(240)]

Tree = dict[str, str]
ALL = Selection(every=True)


@attrs.frozen
class Changes:
    """What the first run does, and the files before and after it."""

    prompt: str
    before: Tree
    after: Tree

    def lay(self, folder: Path) -> Workspace:
        workspace = Workspace.under(folder)
        for name, content in self.before.items():
            workspace.write(name, content)

        async def run() -> None:
            async with practice_server(workspace) as server:
                assert await server.create() == SESSION
                await server.say(SESSION, self.prompt)

        run_in_fork(run)
        assert workspace.files() == self.after, workspace.files()
        return workspace


CHANGES = {
    "created and modified": Changes(
        'write new.txt with "new\\n"\nreplace old with new in a.txt',
        {"a.txt": "old\n"},
        {"a.txt": "new\n", "new.txt": "new\n"},
    ),
    "deleted": Changes("delete a.txt", {"a.txt": "old\n"}, {}),
    "moved": Changes("move a.txt to d/b.txt", {"a.txt": "old\n"}, {"d/b.txt": "old\n"}),
}


@attrs.frozen
class Found:
    """What the run after the kill finds."""

    states: dict[str, str]  # path → state of its last hunk
    files: Tree
    refused: list[str]
    doubts: list[str]  # checks of what is uncertain
    told: list[str]  # to the model


Run: TypeAlias = "ForkResult[tuple[int, list[Operation]]]"


def deciding(workspace: Workspace, action: str, number: int, when: When, first_alone: bool = False) -> Run:
    """The second run, killed at a point (0: unharmed). `first_alone`: the first hunk is decided, else everything."""

    async def run() -> tuple[int, list[Operation]]:
        counting = CountingDisk(system_disk())
        disk: Disk = counting if number == 0 else KillingDisk(counting, number, when)
        async with practice_server(workspace, run=2, disk=disk) as server:
            session = await server.opened(SESSION)
            selection = Selection(hunk_ids=(await open_hunks(session))[:1]) if first_alone else ALL
            first = counting.count
            done = await (review.keep if action == "keep" else review.undo)(session, session.epoch, selection)
            assert done.left == ()
            return first, counting.operations[: counting.count]

    return run_in_fork(run)


async def open_hunks(session: Session) -> tuple[str, ...]:
    files = (await review.list_review(session)).files
    return tuple(hunk.hunk_id for file in files for hunk in file.hunks if hunk.state == "new")


async def states(session: Session) -> dict[str, str]:
    listed = await review.list_review(session)
    return {file.path: file.hunks[-1].state for file in listed.files}


def after_death(workspace: Workspace, undoes: bool) -> Found:
    """Open the session; with `undoes`, also undo everything that is left."""

    async def opening() -> Found:
        async with practice_server(workspace, run=3) as server:
            session = await server.opened(SESSION)
            doubts = [str(one.check) for one in session.ledger.uncertain()]
            told = [said.record.text for said in session.ledger.said if isinstance(said.record, Told)]
            found = Found(await states(session), workspace.files(), list(session.ledger.refused), doubts, told)
            if undoes:
                await undo_the_rest(session)
            return found

    found = run_in_fork(opening).value
    assert found is not None
    return found


def records_nothing_new(workspace: Workspace) -> bool:
    """Whether a second opening after a kill finds nothing that the first one did not record."""

    async def opening() -> None:
        async with practice_server(workspace, run=4) as server:
            await server.opened(SESSION)

    run_in_fork(opening)
    journal = workspace.journal(SESSION)
    run_in_fork(opening)
    return workspace.journal(SESSION) == journal


async def undo_the_rest(session: Session) -> None:
    """Waive what has no evidence to check, then undo everything that is left."""
    for doubt in session.ledger.uncertain():
        looked = await resolve(session, ResolutionRequest(doubt.attempt_id, "inspect"))
        assert looked.inspection is not None
        waive = ResolutionRequest(doubt.attempt_id, "waive", inspection_id=looked.inspection.inspection_id)
        await resolve(session, waive)
    assert (await review.undo(session, session.epoch, ALL)).left == ()


def points(first: int, operations: list[Operation]) -> Iterator[tuple[int, When, str]]:
    for one in operations[first:]:
        whens: tuple[When, ...] = ("before", "half", "after") if one.verb == "write" else ("before", "after")
        for when in whens:
            yield one.number, when, f"killed {when} {one}"


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_undo_killed_anywhere_says_of_each_file_what_it_has(in_memory: Path, changes: Changes) -> None:
    """V4, W8, W9, J14, C2, [I1] [I3] [I4] [I5]: each file is as it was before the changes or as they left it, and
    the review says which. Only a half-written start leaves a doubt, because it has no evidence (case 134). What is
    left can be undone.
    """
    workspace = changes.lay(in_memory / "place")
    copy = workspace.keep("left")
    whole = deciding(workspace, "undo", 0, "before").value
    assert whole is not None
    assert workspace.files() == changes.before
    seen: set[str] = set()
    for number, when, point in points(*whole):
        workspace.put_back(copy)
        assert deciding(workspace, "undo", number, when).signal == signal.SIGKILL, point
        if point.startswith("killed before rename"):
            assert records_nothing_new(workspace), point
        found = after_death(workspace, undoes=True)
        assert found.refused == [], point
        for path, state in found.states.items():
            expected = changes.before if state == "undone" else changes.after
            assert found.files.get(path) == expected.get(path), (point, path, state)
        undone = {path for path, state in found.states.items() if state == "undone"}
        told = [line for text in found.told for line in text.split("\n")]
        assert sorted(told) == sorted(taken_back_text(path) for path in undone), point
        assert set(found.files) <= {*changes.before, *changes.after}, point
        torn = point.startswith("killed half") and '"started"' in point
        assert found.doubts == [] or (torn and len(found.doubts) == 1), (point, found.doubts)
        seen |= set(found.states.values())
        assert workspace.files() == changes.before, point
    assert seen == {"new", "undone"}


def test_keep_killed_anywhere_has_kept_or_not(in_memory: Path) -> None:
    """V4, J2: to keep is one append of records, so a kill leaves any beginning of it; no file changes."""
    changes = CHANGES["created and modified"]
    workspace = changes.lay(in_memory / "place")
    copy = workspace.keep("left")
    whole = deciding(workspace, "keep", 0, "before").value
    assert whole is not None
    seen: set[str] = set()
    for number, when, point in points(*whole):
        workspace.put_back(copy)
        assert deciding(workspace, "keep", number, when).signal == signal.SIGKILL, point
        found = after_death(workspace, undoes=False)
        assert (found.files, found.refused, found.doubts) == (changes.after, [], []), point
        assert set(found.states.values()) <= {"new", "kept"}, point
        seen |= set(found.states.values())
    assert seen == {"new", "kept"}


HUNKS = Changes(
    "replace two with TWO in a.txt\nreplace six with SIX in a.txt",
    {"a.txt": "one\ntwo\nthree\nfour\nfive\nsix\n"},
    {"a.txt": "one\nTWO\nthree\nfour\nfive\nSIX\n"},
)
FIRST_UNDONE = "one\ntwo\nthree\nfour\nfive\nSIX\n"


@attrs.frozen
class FoundHunks:
    """What the run after the kill finds of a file with two hunks."""

    states: list[str]
    content: str
    told: list[str]
    doubts: int


def hunks_after_death(workspace: Workspace) -> FoundHunks:
    """Open the session, say what is there, and undo the rest."""

    async def opening() -> FoundHunks:
        async with practice_server(workspace, run=3) as server:
            session = await server.opened(SESSION)
            (file,) = (await review.list_review(session)).files
            told = [said.record.text for said in session.ledger.said if isinstance(said.record, Told)]
            doubts = len(session.ledger.uncertain())
            content = workspace.files()["a.txt"]
            found = FoundHunks([hunk.state for hunk in file.hunks], content, told, doubts)
            assert not session.ledger.refused
            await undo_the_rest(session)
            return found

    found = run_in_fork(opening).value
    assert found is not None
    return found


@pytest.mark.parametrize("person", ["", "mine\n"], ids=["ours alone", "a person's line above"])
def test_undo_of_a_hunk_killed_anywhere_has_undone_it_or_not(in_memory: Path, person: str) -> None:
    """V4, W8, W9, [I1] [I3] [I5]: the file has the hunk or not, never anything else, and keeps the person's line; the
    review and the model are told the same, and what is left can be undone. Only a half-written start leaves a doubt
    (case 134).
    """
    workspace = HUNKS.lay(in_memory / "place")
    workspace.write("a.txt", person + HUNKS.after["a.txt"])
    copy = workspace.keep("left")
    whole = deciding(workspace, "undo", 0, "before", first_alone=True).value
    assert whole is not None
    assert workspace.files() == {"a.txt": person + FIRST_UNDONE}
    seen: set[tuple[str, ...]] = set()
    for number, when, point in points(*whole):
        workspace.put_back(copy)
        assert deciding(workspace, "undo", number, when, first_alone=True).signal == signal.SIGKILL, point
        found = hunks_after_death(workspace)
        is_undone = "undone" in found.states
        expected = FIRST_UNDONE if is_undone else HUNKS.after["a.txt"]
        assert found.content == person + expected, (point, found)
        assert sorted(found.states) == (["new", "undone"] if is_undone else ["new", "new"]), (point, found)
        assert found.told == [taken_back_text("a.txt", partial=True)] * is_undone, (point, found)
        assert found.doubts <= ("killed half" in point and '"started"' in point), (point, found)
        assert workspace.files() == {"a.txt": person + HUNKS.before["a.txt"]}, point
        seen.add(tuple(found.states))
    assert len(seen) == 2


def test_keep_of_a_hunk_killed_anywhere_has_kept_it_or_not(in_memory: Path) -> None:
    """V4, J2, W8: the new base is stored before the record names it, and no file changes; undo of the rest then leads
    to a content that was never there before."""
    workspace = HUNKS.lay(in_memory / "place")
    copy = workspace.keep("left")
    whole = deciding(workspace, "keep", 0, "before", first_alone=True).value
    assert whole is not None
    seen: set[tuple[str, ...]] = set()
    for number, when, point in points(*whole):
        workspace.put_back(copy)
        assert deciding(workspace, "keep", number, when, first_alone=True).signal == signal.SIGKILL, point
        found = hunks_after_death(workspace)
        assert (found.content, found.told, found.doubts) == (HUNKS.after["a.txt"], [], 0), point
        is_kept = "kept" in found.states
        assert found.states == (["kept", "new"] if is_kept else ["new", "new"]), (point, found)
        rest = HUNKS.before["a.txt"].replace("two", "TWO") if is_kept else HUNKS.before["a.txt"]
        assert workspace.files() == {"a.txt": rest}, point
        seen.add(tuple(found.states))
    assert len(seen) == 2
