"""The state directory and the sessions in it, opened only where no other user controls them (row O5, case 147).

What is checked is what is open: a folder is opened first, and the owner and mode of the open folder count. Below the
state directory a name is entered without following a link. The way to the state directory is read when the directory is
opened for the first time, or is another one than before.

    a link on the way to the state directory      root's or ours: followed                   else refused
    a folder on the way                           others can write it, and no sticky bit     refused
    the state directory, `sessions`, a session    root's or ours, and only we can write it   used
      folder and its files                        ours, and others can write it              its mode is tightened
                                                  somebody else's, or a link below           refused

Root also accepts the owner of the state directory. Decision 43 says what counts as control by others. A `PrivateState`
belongs to one process, and threads may share it. It blocks.
"""

from __future__ import annotations

import errno
import shlex
import threading
from collections.abc import Callable, Iterable

from steadyhand.domain.errors import Refused
from steadyhand.journal.journal import JOURNAL
from steadyhand.journal.ownership import OWNER_LOCK
from steadyhand.ports.disk import Disk, EntryStat, File, Folder

SESSIONS = "sessions"
LINKS_MAX = 40  # as Linux allows in one path (path_resolution(7))
FOLDER_MODE = 0o700
FILE_MODE = 0o600
NOTES_TOLD_MAX = 5
OTHERS_WRITE = 0o022  # group and others
OTHERS_WRITE_ABOVE = 0o002  # of a folder on the way: others alone
STICKY = 0o1000
SESSION_FILES = (JOURNAL, OWNER_LOCK, "owner.json", "summary.json")
"""The files of a session that a list and a start read."""


def sessions_path(state_directory: str) -> str:
    """Return the folder of all sessions."""
    return f"{state_directory.rstrip('/')}/{SESSIONS}"


class _UnsafeRefused(Refused):
    def __init__(self, text: str) -> None:
        super().__init__("journalBroken", text, {"readOnly": {"reason": "unsafe", "text": text}})


class UnsafeState(_UnsafeRefused):
    """The whole state directory is refused."""


class UnsafeSession(_UnsafeRefused):
    """One session is refused; others are not."""


class _Unsafe(Exception):
    """`what` is wrong with one name, as a clause; `correction` is one sentence with the command."""

    def __init__(self, what: str, correction: str) -> None:
        super().__init__(what)
        self.what = what
        self.correction = correction


class PrivateState:
    """Opens what is in one state directory. `path`: absolute."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._user = disk.user()
        self._found: tuple[int, int] | None = None  # identity of the state directory whose way was checked
        self._owner: int | None = None  # of the state directory
        self._guard = threading.Lock()
        self._notes: list[str] = []

    # Opening.

    def prepare(self) -> str:
        """Make the state directory if it is missing, and return its path with links resolved.

        If the way to it is refused or it cannot be made, return the path as it was given. Opening it reports why."""
        try:
            self._make(self._path)
            folder = self._disk.open_folder(self._path)
            try:
                return self._disk.real_path(folder)
            finally:
                self._disk.close(folder)
        except (UnsafeState, OSError):
            return self._path

    def open(self) -> Folder:
        """Open the state directory. Raise UnsafeState, or OSError if it is not there or cannot be opened."""
        try:
            return self._open_root()
        except _Unsafe as unsafe:
            raise self._state_refusal(unsafe) from None

    def open_sessions(self) -> Folder:
        """Open the folder of all sessions. Raise UnsafeState or OSError."""
        root = self.open()
        try:
            return self._enter(root, SESSIONS, self._path)
        except _Unsafe as unsafe:
            raise self._state_refusal(unsafe) from None
        finally:
            self._disk.close(root)

    def make_sessions(self) -> Folder:
        """Open the folder of all sessions; make it first where it is missing. Raise UnsafeState or OSError."""
        self._make(self._sessions_path)
        return self.open_sessions()

    def make_root(self) -> Folder:
        """Open the state directory; make it first where it is missing. Raise UnsafeState or OSError."""
        self._make(self._path)
        return self.open()

    def open_session(self, session_id: str) -> Folder:
        """Open a session's folder, with `SESSION_FILES` checked. Raise UnsafeState, UnsafeSession or OSError."""
        sessions = self.open_sessions()
        try:
            return self._open_session(sessions, session_id, lambda folder: SESSION_FILES)
        finally:
            self._disk.close(sessions)

    def open_whole_session(self, sessions: Folder, session_id: str) -> Folder:
        """Open a session's folder in the folder of `open_sessions`, with everything in it checked. Raise UnsafeSession
        or OSError."""
        return self._open_session(sessions, session_id, self._disk.names)

    def _open_session(self, sessions: Folder, session_id: str, names: Callable[[Folder], Iterable[str]]) -> Folder:
        try:
            folder = self._enter(sessions, session_id, self._sessions_path)
        except _Unsafe as unsafe:
            raise _session_refusal(unsafe) from None
        try:
            self._check_names(folder, names(folder), session_id)
        except BaseException:
            self._disk.close(folder)
            raise
        return folder

    def check_session(self, folder: Folder, session_id: str) -> None:
        """Check everything in an open session folder. Raise UnsafeSession or OSError."""
        self._check_names(folder, self._disk.names(folder), session_id)

    def file_trouble(self, file: File, path: str) -> str | None:
        """Return why an open file of ours must not be believed, as a clause with the correction; None: it may be.

        What others could write is not believed even if it is ours: somebody may have written it."""
        seen = self._disk.look_open(file)
        try:
            self._check_owner(seen, path)
        except _Unsafe as unsafe:
            return f"{unsafe.what}. {unsafe.correction}"
        if self._user is None or not seen.mode & OTHERS_WRITE:
            return None
        return f"{path} can be written by other users. Check it, then run: chmod go-w {shlex.quote(path)}"

    def take_notes(self) -> str | None:
        """Return what was tightened since the last call, as one text; None: nothing was."""
        with self._guard:
            notes, self._notes = self._notes, []
        if not notes:
            return None
        more = f" and {len(notes) - NOTES_TOLD_MAX} more" if len(notes) > NOTES_TOLD_MAX else ""
        return (
            "Other users could write these files of Steadyhand, and may have changed them; now only you can:"
            f" {', '.join(notes[:NOTES_TOLD_MAX])}{more}."
        )

    # Checks.

    @property
    def _sessions_path(self) -> str:
        return sessions_path(self._path)

    def _make(self, path: str) -> None:
        """Make the folder and those above it, if nothing on the way is refused."""
        if self._user is not None and self._found is None:
            try:
                self._follow_way()
            except _Unsafe as unsafe:
                raise self._state_refusal(unsafe) from None
        self._disk.make_root(path)

    def _open_root(self) -> Folder:
        try:
            folder = self._disk.open_folder(self._path)
        except OSError:  # it is missing, or closed to us: what is on the way may be the cause
            closed = self._follow_way() if self._user is not None else None
            if closed is not None:
                self._check_owner(closed, self._path)
            raise
        try:
            seen = self._disk.look_open(folder)
            if self._user is not None and seen.identity != self._found:
                found = self._follow_way()
                if found is None or found.identity != seen.identity:
                    raise OSError(errno.ESTALE, "it was replaced while it was being opened", self._path)
                self._owner = seen.uid
            self._check_owner(seen, self._path)
            self._tighten(folder, seen, self._path)
            self._found = seen.identity
        except BaseException:
            self._disk.close(folder)
            raise
        return folder

    def _follow_way(self) -> EntryStat | None:
        """Check what leads to the state directory, from `/` on; return what is there, None if it is missing."""
        here, links = "/", 0
        pending = [part for part in self._path.split("/") if part not in ("", ".")]
        seen = self._disk.look_path("/")
        while pending and seen is not None:
            _check_folder_above(seen, here)
            name = pending.pop(0)
            if name == "..":
                here = here.rpartition("/")[0] or "/"
                seen = self._disk.look_path(here)
                continue
            place = f"{here.rstrip('/')}/{name}"
            seen = self._disk.look_path(place)
            if seen is None or seen.kind != "link":
                here = place
                continue
            links += 1
            if links > LINKS_MAX:
                raise OSError(errno.ELOOP, "Too many levels of symbolic links", self._path)
            self._check_link(seen, place)
            target = seen.target or ""
            pending[:0] = [part for part in target.split("/") if part not in ("", ".")]
            here = "/" if target.startswith("/") else here
            seen = self._disk.look_path(here)
        return seen

    def _check_link(self, seen: EntryStat, path: str) -> None:
        if seen.uid not in (0, self._user):
            raise _Unsafe(
                f"{path} is a link that belongs to another user (uid {seen.uid})",
                f"Run: rm {shlex.quote(path)} — or name the folder that it leads to in steadyhand.stateDirectory.",
            )

    def _enter(self, folder: Folder, name: str, above: str) -> Folder:
        """Open a folder of ours inside another one."""
        path = f"{above.rstrip('/')}/{name}"
        if self._user is not None and (named := self._refuse_link(folder, name, path)) is not None:
            self._check_owner(named, path)  # it may be closed to us
        entered = self._disk.enter(folder, name)  # a link that was put there meanwhile is an OSError
        try:
            seen = self._disk.look_open(entered)
            self._check_owner(seen, path)
            self._tighten(entered, seen, path)
        except BaseException:
            self._disk.close(entered)
            raise
        return entered

    def _refuse_link(self, folder: Folder, name: str, path: str) -> EntryStat | None:
        seen = self._disk.look(folder, name)
        if seen is not None and seen.kind == "link":
            raise _Unsafe(f"{path} is a link", f"Run: rm {shlex.quote(path)}")
        return seen

    def _check_names(self, folder: Folder, names: Iterable[str], session_id: str) -> None:
        if self._user is None:
            return
        path = f"{self._sessions_path}/{session_id}"
        try:
            for name in names:
                self._check_entry(folder, name, f"{path}/{name}")
        except _Unsafe as unsafe:
            raise _session_refusal(unsafe) from None

    def _check_entry(self, folder: Folder, name: str, path: str) -> None:
        """Check one file or folder of a session. A folder that others could write is checked with what is in it."""
        seen = self._refuse_link(folder, name, path)
        if seen is None:
            return
        self._check_owner(seen, path)
        if not seen.mode & OTHERS_WRITE or seen.kind == "other":
            return
        disk = self._disk
        opened = disk.enter(folder, name) if seen.kind == "folder" else disk.open_read(folder, name)
        try:
            self._tighten(opened, disk.look_open(opened), path)
            if seen.kind == "folder":
                inner = Folder(opened)
                for each in disk.names(inner):
                    self._check_entry(inner, each, f"{path}/{each}")
        finally:
            disk.close(opened)

    def _check_owner(self, seen: EntryStat, path: str) -> None:
        if self._user is None or seen.uid in (0, self._user) or (self._user == 0 and seen.uid == self._owner):
            return
        raise _Unsafe(
            f"{path} belongs to another user (uid {seen.uid})",
            f"If you trust what is in it, run: sudo chown -R {self._user} {shlex.quote(path)}",
        )

    def _tighten(self, opened: Folder | File, seen: EntryStat, path: str) -> None:
        """Take the right to write from group and others, and note it."""
        if self._user is None or not seen.mode & OTHERS_WRITE:
            return
        wanted = seen.mode & (FOLDER_MODE if seen.kind == "folder" else FILE_MODE)
        try:
            self._disk.set_mode(opened, wanted)
            seen_then = self._disk.look_open(opened)
        except OSError:
            seen_then = seen
        if seen_then.mode & OTHERS_WRITE:
            what = f"{path} can be written by other users (mode {seen.mode & 0o777:04o})"
            raise _Unsafe(what, f"Run: sudo chmod go-w {shlex.quote(path)}")
        with self._guard:
            self._notes.append(f"{path} (mode {seen.mode & 0o777:04o}, now {wanted:04o})")

    def _state_refusal(self, unsafe: _Unsafe) -> UnsafeState:
        return UnsafeState(f"The state directory {self._path} is not used, because {unsafe.what}. {unsafe.correction}")


def _check_folder_above(seen: EntryStat, path: str) -> None:
    if seen.mode & OTHERS_WRITE_ABOVE and not seen.mode & STICKY:
        what = f"{path} can be written by other users (mode {seen.mode & 0o7777:04o})"
        raise _Unsafe(what, f"Run: chmod o-w {shlex.quote(path)}")


def _session_refusal(unsafe: _Unsafe) -> UnsafeSession:
    return UnsafeSession(f"This session is not opened, because {unsafe.what}. {unsafe.correction}")
