"""The state directory is used only where no other user controls it (row O5, case 147)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import attrs
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.session.private_state import LINKS_MAX, NOTES_TOLD_MAX, PrivateState, UnsafeSession, UnsafeState
from tests.support.forks import repeating
from tests.support.systems import posix_only
from tests.support.users import NOBODY, OTHER, USERS, give, is_root, root_only, run_as, shared_folder

pytestmark = posix_only

ID = "5" * 32
TRIES = 400
TRIES_MAX = 500 * TRIES


@pytest.fixture
def base() -> Iterator[Path]:
    yield from shared_folder()


@attrs.frozen
class Layout:
    """A state directory with one session; everything belongs to `user`. Each test changes one thing of it."""

    base: Path
    user: int

    @property
    def above(self) -> Path:
        return self.base / "above"

    @property
    def state(self) -> Path:
        return self.above / "state"

    @property
    def sessions(self) -> Path:
        return self.state / "sessions"

    @property
    def session(self) -> Path:
        return self.sessions / ID

    @property
    def journal(self) -> Path:
        return self.session / "journal.jsonl"

    def make(self) -> Layout:
        for folder in (self.above, self.state, self.sessions, self.session, self.session / "outputs"):
            folder.mkdir(mode=0o700)
        self.above.chmod(0o755)
        for name in ("journal.jsonl", "summary.json", "owner.lock", "outputs/one"):
            (self.session / name).write_text("{}\n")
            (self.session / name).chmod(0o600)
        if is_root:
            give(self.above, self.user)
        return self

    def link(self, path: Path, owner: int | None = None) -> None:
        """Move what is there aside and put a link to it in its place."""
        aside = self.base / "aside"
        path.rename(aside)
        path.symlink_to(aside)
        if is_root:
            os.chown(path, *[self.user if owner is None else owner] * 2, follow_symlinks=False)


def look(path: Path) -> tuple[str, str | None]:
    """Open the session as the server does: ("used", "state", "session" or an errno's name, what was tightened)."""
    state = PrivateState(system_disk(), str(path))
    try:
        folder = state.open_session(ID)
        state.check_session(folder, ID)
    except (UnsafeState, UnsafeSession) as refused:
        told = refused.more["readOnly"] == {"reason": "unsafe", "text": refused.message}
        return ("state" if isinstance(refused, UnsafeState) else "session") if told else "untold", refused.message
    except OSError as error:
        return type(error).__name__, str(error)
    return "used", state.take_notes()


Change = Callable[[Layout], object]


def mode(name: str, bits: int) -> Change:
    return lambda at: getattr(at, name).chmod(bits)


def of(name: str, owner: int) -> Change:
    return lambda at: os.chown(getattr(at, name), owner, owner)


def two(first: Change, second: Change) -> Change:
    def both(at: Layout) -> None:
        first(at)
        second(at)

    return both


def file(name: str, bits: int) -> Change:
    return lambda at: (at.session / name).chmod(bits)


FOR_EVERYBODY: list[tuple[str, Change, str, tuple[str, ...]]] = [
    ("nothing", lambda at: None, "used", ()),
    ("the state directory, open to all", mode("state", 0o777), "used", ("state",)),
    ("the state directory, open to a group", mode("state", 0o770), "used", ("state",)),
    ("the state directory, open to all and sticky", mode("state", 0o1777), "used", ("state",)),
    ("the state directory, readable", mode("state", 0o755), "used", ()),
    ("sessions", mode("sessions", 0o777), "used", ("sessions",)),
    ("the session folder", mode("session", 0o707), "used", ("session",)),
    ("the journal", mode("journal", 0o666), "used", ("journal",)),
    ("the journal, open to a group", mode("journal", 0o660), "used", ("journal",)),
    ("the summary", file("summary.json", 0o606), "used", ("session/summary.json",)),
    ("a folder in it with a file", two(file("outputs", 0o777), file("outputs/one", 0o666)), "used", (
        "session/outputs", "session/outputs/one",
    )),
    ("everything", two(two(mode("state", 0o777), mode("sessions", 0o777)), two(mode("session", 0o777), file(
        "journal.jsonl", 0o666,
    ))), "used", ("state", "sessions", "session", "journal")),
    ("the folder above, open to all", mode("above", 0o777), "state", ()),
    ("the folder above, open to all and sticky", mode("above", 0o1777), "used", ()),
    ("the folder above, open to a group", mode("above", 0o775), "used", ()),
    ("the folder above the folder above", lambda at: at.base.chmod(0o777), "state", ()),
    ("an own link on the way", lambda at: at.link(at.above), "used", ()),
    ("an own link in place of the state directory", lambda at: at.link(at.state), "used", ()),
    ("a link to a folder in one open to all", two(lambda at: at.link(at.state), mode("base", 0o777)), "state", ()),
    ("a link in place of sessions", lambda at: at.link(at.sessions), "state", ()),
    ("a link in place of the session folder", lambda at: at.link(at.session), "session", ()),
    ("a link in place of the journal", lambda at: at.link(at.journal), "session", ()),
    ("a link in place of the lock", lambda at: at.link(at.session / "owner.lock"), "session", ()),
    ("a link in place of the outputs", lambda at: at.link(at.session / "outputs"), "session", ()),
    ("a link that leads nowhere", lambda at: (at.session / "checkpoints").symlink_to("/nowhere"), "session", ()),
]  # fmt: skip
OF_OTHERS: list[tuple[str, Change, str, str]] = [
    # what, change, for root, for an ordinary user
    ("the state directory", of("state", OTHER), "used", "state"),
    ("the state directory and all in it", lambda at: give(at.state, OTHER), "used", "state"),
    ("all of it but the journal", two(lambda at: give(at.state, OTHER), of("journal", 1)), "session", "state"),
    ("sessions", of("sessions", OTHER), "state", "state"),
    ("the session folder", of("session", OTHER), "session", "session"),
    ("the journal", of("journal", OTHER), "session", "session"),
    ("the outputs", lambda at: os.chown(at.session / "outputs", OTHER, OTHER), "session", "session"),
    ("the folder above", of("above", OTHER), "used", "used"),
    ("a link on the way", lambda at: at.link(at.above, OTHER), "state", "state"),
    ("a link in place of the state directory", lambda at: at.link(at.state, OTHER), "state", "state"),
    ("root's link on the way", lambda at: at.link(at.above, 0), "used", "used"),
    ("a journal of root", of("journal", 0), "used", "used"),
    ("a session of root", two(of("session", 0), mode("session", 0o755)), "used", "used"),
    ("a state directory of root", two(of("state", 0), mode("state", 0o755)), "used", "used"),
    ("a session of root, open to all", two(of("session", 0), mode("session", 0o777)), "used", "session"),
    ("a state directory of root, open to all", two(of("state", 0), mode("state", 0o777)), "used", "state"),
    ("a state directory of others, open to all", two(of("state", OTHER), mode("state", 0o777)), "used", "state"),
]  # fmt: skip


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize(
    ("change", "expected", "tightened"), [row[1:] for row in FOR_EVERYBODY], ids=[row[0] for row in FOR_EVERYBODY]
)
def test_private_state_is_used_tightened_or_refused(
    base: Path, user: int, change: Change, expected: str, tightened: tuple[str, ...]
) -> None:
    """Row O5: the table, for root and for an ordinary user. What was tightened is named, and only its user can write it
    afterwards; a second look finds nothing to say."""
    at = Layout(base, user).make()
    change(at)
    found, said = run_as(user, lambda: look(at.state))
    assert found == expected, said
    if expected != "used":
        assert said is not None
        assert "un: " in said, "it says what to run"
        return
    places = [getattr(at, name.split("/")[0]).joinpath(*name.split("/")[1:]) for name in tightened]
    assert said is None or all(f"{place} (mode" in said for place in places[:NOTES_TOLD_MAX])
    assert (said is not None) == bool(places)
    for place in places:
        assert place.stat().st_mode & 0o077 == 0
    assert run_as(user, lambda: look(at.state)) == ("used", None)


@root_only
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize(
    ("change", "for_root", "for_others"), [row[1:] for row in OF_OTHERS], ids=[row[0] for row in OF_OTHERS]
)
def test_private_state_of_another_user_is_refused(
    base: Path, user: int, change: Change, for_root: str, for_others: str
) -> None:
    """Row O5: what belongs to neither this user nor root is refused; root accepts the owner of the state directory.
    What belongs to root and is open to all cannot be tightened by others, and is refused."""
    at = Layout(base, user).make()
    change(at)
    found, said = run_as(user, lambda: look(at.state))
    assert found == (for_root if user == 0 else for_others), said


@pytest.mark.parametrize("user", USERS)
def test_preparing_a_refused_place_makes_nothing(base: Path, user: int) -> None:
    """Row O5: below a folder that others can write, and through another user's link, no folder is made."""
    open_to_all = base / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    place = open_to_all / "made" / "state"
    assert run_as(user, lambda: PrivateState(system_disk(), str(place)).prepare()) == str(place)
    assert list(open_to_all.iterdir()) == []


def test_prepared_place_is_made_private_and_its_path_resolved(tmp_path: Path) -> None:
    """Rows O5, J10: a missing state directory is made with 0700, and its path has no links."""
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real").mkdir()
    made = PrivateState(system_disk(), str(tmp_path / "link" / "a" / "state")).prepare()
    assert made == str((tmp_path / "real" / "a" / "state").resolve())
    assert os.stat(made).st_mode & 0o777 == 0o700


def test_circle_of_links_and_missing_folder_are_errors_of_the_system(tmp_path: Path) -> None:
    """[I13]: `LINKS_MAX` links are followed; a circle and a missing folder raise OSError, as without the check."""
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(OSError, match="symbolic links"):
        PrivateState(system_disk(), str(tmp_path / "circle")).open()
    with pytest.raises(FileNotFoundError):
        PrivateState(system_disk(), str(tmp_path / "none")).open()
    before = tmp_path / "end"
    before.mkdir()
    for number in range(LINKS_MAX + 1):
        link = tmp_path / f"link{number}"
        link.symlink_to(before)
        before = link
    with pytest.raises(OSError, match="symbolic links"):
        PrivateState(system_disk(), str(before)).make_root()


def exchanging(one: Path, other: Path) -> AbstractContextManager[None]:
    """A process that exchanges two folders again and again, as this user."""
    aside = one.with_name("aside")

    def exchange_twice() -> None:
        one.rename(aside)
        other.rename(one)
        one.rename(other)
        aside.rename(one)

    return repeating(exchange_twice)


@root_only
def test_folder_exchanged_for_another_users_is_never_opened(base: Path) -> None:
    """Row O5: while a process exchanges the state directory for one of another user, an opening gives the own folder
    or a refusal, because what is checked is what is open."""
    at = Layout(base, NOBODY).make()
    theirs = at.above / "theirs"
    theirs.mkdir()
    (theirs / "sessions").mkdir()
    give(theirs, OTHER)
    own = at.state.stat().st_ino

    def open_often() -> tuple[int, int, list[int]]:
        """How many openings gave a folder and how many did not, and the inodes that were not the own one.

        On a busy machine the exchanges may rest for long, so it goes on until both ends were met."""
        disk, opened, refused = system_disk(), 0, 0
        wrong: list[int] = []
        while opened + refused < TRIES or (0 in (opened, refused) and opened + refused < TRIES_MAX):
            try:
                folder = PrivateState(disk, str(at.state)).open()
            except (OSError, UnsafeState):
                refused += 1
                continue
            opened += 1
            wrong += [inode for inode in [disk.look_open(folder).identity[1]] if inode != own]
            disk.close(folder)
        return opened, refused, wrong

    with exchanging(at.state, theirs):
        opened, refused, wrong = run_as(NOBODY, open_often)
    assert wrong == []
    assert opened > 0
    assert refused > 0
