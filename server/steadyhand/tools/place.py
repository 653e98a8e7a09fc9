"""Where a path leads: resolved component by component, links included, and walked again without them (row E3).

`locate` reads only. It begins at the workspace for a relative path and at `/` for an absolute one, looks at each
component in its open folder, puts a link's target in its place (at most `links_max` of them) and goes up for `..`
only after that, as the system does. What is missing may be created later, so a path may end in missing components;
a dangling link leads to its target. Inside and outside are decided on the components of the result, never on a
prefix of text (case 103), and for the target of a link (case 104). Who moves or deletes means the name itself: with
`follow=False` a link at the very end is the result, and only the way to it is followed.

`entered` opens a folder of the result without following any link, so that one put in the way later leads nowhere.

Paths are POSIX paths. Forms of other systems (`C:\\x`, `\\\\?\\`, UNC, `file:`, `~`) are refused unless something of
that very name is there. Deliberately absent: names that differ only by case or by Unicode form.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Literal, NoReturn

import attrs

from steadyhand.core.protected import asks_always
from steadyhand.ports import Folder, Kind
from steadyhand.tools.tool import Ground, Refusal

links_max = 40
path_bytes_max = 4096
name_bytes_max = 255
told_chars_max = 200
"""Of a path in a sentence."""
new_folder_mode = 0o777
"""Less what the umask takes away, as for any program's new folder."""

_foreign_first = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|~")
_control = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")

_Parts = tuple[str, ...]


@attrs.frozen
class Located:
    """A path as asked and where it leads."""

    asked: str
    parts: tuple[str, ...]  # components of the result from `/` on; empty: `/` itself
    kind: Kind | None  # at the time of the look, "link" only where its end is not followed; None: nothing is there
    inside: bool  # of the workspace; the workspace itself is inside
    in_state_directory: bool
    protected: bool  # its own components or those of a link on the way ask in every mode (row G2)
    missing: int  # how many components at the end are not there; more than 1: folders are missing too

    @property
    def resolved(self) -> str:
        """Absolute, no links."""
        return "/" + "/".join(self.parts)

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders to enter from `/` on, in order."""
        return self.parts[:-1]

    @property
    def name(self) -> str:
        """The last component; empty for `/`."""
        return self.parts[-1] if self.parts else ""


def parts_of(path: str) -> tuple[str, ...]:
    """The components of an absolute path without links."""
    return tuple(part for part in path.split("/") if part)


def display(root: str | None, resolved: str) -> str:
    """As the model and the user are told: relative with `/` inside the workspace, else absolute."""
    parts = parts_of(resolved)
    if root is not None and _within(parts, parts_of(root)):
        return "/".join(parts[len(parts_of(root)) :]) or "."
    return resolved


def one_line(text: str, chars_max: int | None = None) -> str:
    """A name fit for a sentence or a title: control characters are written out, too much loses its middle."""
    shown = _control.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
    if chars_max is None or len(shown) <= chars_max:
        return shown
    head = (chars_max - 1) // 3
    return shown[:head] + "…" + shown[len(shown) - (chars_max - 1 - head) :]


def locate(ground: Ground, asked: str, follow: bool = True) -> Located | Refusal:
    """Where the path leads now, or why that cannot be said. The result is a look: whoever acts looks again.

    `follow` false: a link that the path names itself is not followed."""
    if ground.root is None:
        return Refusal("unsupported", "No folder is open, so there are no files to work on.")
    trouble = _trouble_with_text(asked)
    if trouble is not None:
        return Refusal("bad_arguments", trouble)
    try:
        with ExitStack() as opened:
            return _Walk(ground, ground.root, asked, opened, follow).whole()
    except _Stopped as stopped:
        return stopped.refusal
    except OSError as error:
        told = one_line(asked, told_chars_max)
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENOENT):
            return Refusal("changed", f"The way to {told} is not there or changed while it was looked at.")
        return Refusal("io_error", f"{told} cannot be looked at: {error.strerror or error}.")


@contextmanager
def entered(ground: Ground, folders: Sequence[str]) -> Iterator[Folder]:
    """The open folder with these components from `/` on, no link followed on the way.

    It begins at the workspace where it can: its own way may be closed to readers. Raises OSError: ENOENT for what is
    missing, ELOOP or ENOTDIR for a link."""
    with ExitStack() as opened:
        yield _Folders(ground, opened).at(tuple(folders))


def make_folders(ground: Ground, folders: Sequence[str]) -> None:
    """Create what is missing of these folders, durably, no link followed on the way. Raises OSError.

    They are the user's, with the mode that the umask leaves."""
    for length in range(_way_in(ground, tuple(folders)), len(folders)):
        with entered(ground, folders[:length]) as parent:
            if ground.disk.look(parent, folders[length]) is None:
                # Somebody else may be quicker; what it is then, entering it will say.
                with suppress(FileExistsError):
                    ground.disk.make_folder(parent, folders[length], new_folder_mode)
                ground.disk.sync_folder(parent)


def sync_way(ground: Ground, folders: Sequence[str]) -> None:
    """Make the names of these folders durable, as far as they lie in the workspace; whoever made one, a command
    perhaps, may have synced nothing. Raises OSError."""
    root = parts_of(ground.root or "/")
    if _within(tuple(folders), root):
        for length in range(len(root), len(folders)):
            with entered(ground, folders[:length]) as parent:
                ground.disk.sync_folder(parent)


class _Stopped(Exception):
    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal


class _Folders:
    """Folders opened on the way, each once."""

    def __init__(self, ground: Ground, opened: ExitStack) -> None:
        self._ground = ground
        self._opened = opened
        self._handles: dict[_Parts, Folder] = {}

    def at(self, parts: _Parts) -> Folder:
        disk = self._ground.disk
        first = _way_in(self._ground, parts)
        for length in range(first, len(parts) + 1):
            here = parts[:length]
            if here not in self._handles:
                if length == first:
                    handle = disk.open_folder("/" + "/".join(here))
                else:
                    handle = disk.enter(self._handles[here[:-1]], here[-1])
                self._opened.callback(disk.close, handle)
                self._handles[here] = handle
        return self._handles[parts]


class _Walk:
    """One resolution. `pending` is what is still to be walked, `parts` what has been, all of it without links."""

    def __init__(self, ground: Ground, root: str, asked: str, opened: ExitStack, follow: bool) -> None:
        self._ground = ground
        self._root = parts_of(root)
        self._asked = asked
        self._follow_end = follow
        self._folders = _Folders(ground, opened)
        self._links = 0
        self._passed: set[str] = set()
        self._missing = 0
        self._kind: Kind | None = "folder"
        self._parts: _Parts = self._root
        self._pending = asked.split("/")
        if asked.startswith("/"):
            self._restart(self._pending)

    def whole(self) -> Located:
        while self._pending:
            self._step(self._pending.pop(0))
        if self._kind != "folder" and self._asked.endswith(("/", "/.")):
            self._stop("bad_arguments", "names a folder by its end, but there is none")
        try:
            self._resolved().encode("utf-8")
        except UnicodeEncodeError:
            self._stop("unsupported", "leads to a name that is not UTF-8")
        own = self._parts[len(self._root) :] if self._inside() else self._parts
        return Located(
            self._asked,
            self._parts,
            self._kind,
            self._inside(),
            _within(self._parts, parts_of(self._ground.state_directory)),
            any(asks_always(name) for name in {*own, *self._passed}),
            self._missing,
        )

    def _step(self, name: str) -> None:
        if name in ("", "."):
            return
        if self._kind not in ("folder", None):
            self._stop("not_found", f"leads through {one_line(self._resolved())}, which is not a folder")
        if name == "..":
            if self._missing:
                self._stop("bad_arguments", "goes up from a folder that does not exist")
            self._parts = self._parts[:-1]
            return
        if len(name.encode("utf-8", "surrogateescape")) > name_bytes_max:
            self._stop("bad_arguments", f"holds a name longer than {name_bytes_max} bytes")
        self._passed.add(name)
        if self._missing:
            self._enter_missing(name)
            return
        seen = self._ground.disk.look(self._folders.at(self._parts), name)
        if seen is None:
            self._enter_missing(name)
        elif seen.kind == "link" and (self._pending or self._follow_end):
            self._follow(seen.target or "")
        else:
            self._parts, self._kind = (*self._parts, name), seen.kind

    def _follow(self, target: str) -> None:
        self._links += 1
        if self._links > links_max:
            self._stop("unsupported", f"leads through more than {links_max} links, perhaps in a circle")
        self._pending[:0] = target.split("/")
        if target.startswith("/"):
            self._restart(self._pending)

    def _restart(self, pending: list[str]) -> None:
        """Go on from `/`, or at once from the workspace: it holds no links, so its way need not be walked."""
        self._parts = ()
        names = [name for name in pending if name not in ("", ".")]
        if _within(tuple(names), self._root):
            pending[:] = names[len(self._root) :]
            self._parts = self._root

    def _enter_missing(self, name: str) -> None:
        first = name == self._asked.split("/", 1)[0]
        if "\\" in name or (first and _foreign_first.fullmatch(name)):
            self._stop("bad_arguments", "is not there; give it relative to the workspace, with `/` between names")
        if _control.search(name):
            self._stop("bad_arguments", "is not there, and no file is made whose name holds a control character")
        self._parts, self._kind = (*self._parts, name), None
        self._missing += 1

    def _inside(self) -> bool:
        return _within(self._parts, self._root)

    def _resolved(self) -> str:
        return "/" + "/".join(self._parts)

    def _stop(self, reason: Literal["bad_arguments", "not_found", "unsupported"], what: str) -> NoReturn:
        raise _Stopped(Refusal(reason, f"The path {one_line(self._asked, told_chars_max)} {what}."))


def _trouble_with_text(asked: str) -> str | None:
    if not asked:
        return "The path is empty."
    if "\0" in asked:
        return "The path holds a NUL character."
    try:
        size = len(asked.encode("utf-8"))
    except UnicodeEncodeError:
        return "The path holds half of a surrogate pair, which is no character."
    if size > path_bytes_max:
        return f"The path is longer than {path_bytes_max} bytes."
    return None


def _within(parts: _Parts, folder: _Parts) -> bool:
    return parts[: len(folder)] == folder


def _way_in(ground: Ground, parts: _Parts) -> int:
    """How many components are opened at once: those of the workspace, for what is in it."""
    root = parts_of(ground.root or "/")
    return len(root) if _within(parts, root) else 0
