"""Resolve a path component by component, links included, and open the result without following links (row E3).

`locate` reads only. It begins at the workspace for a relative path and at `/` for an absolute one. It stats each
component in its open folder, replaces a link by its target (at most `LINKS_MAX` of them), and only then goes up for
`..`, as the system does. A path may end in missing components, which can be created later; a dangling link leads to its
target. Inside and outside are decided on the components of the result, never on a prefix of text (case 103), and for
the target of a link (case 104). A move or a deletion means the name itself: with `follow=False` a link at the end is
the result, and only the folders before it are followed.

`open_folder` opens a folder of the result without following any link, so a link that is created later changes nothing.

Paths are POSIX paths. Forms of other systems (`C:\\x`, `\\\\?\\`, UNC, `file:`, `~`) are refused unless something has
exactly that name.

Where a file system takes several spellings for one name, the result has the entry's own one, and the workspace is found
by what it is if it is not found by its name (row W12). The workspace is the session's folder and the client's others;
relative paths are those of the first (row S11).
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Literal, NoReturn

from steadyhand.domain.permissions.protected_paths import protected_kind
from steadyhand.domain.permissions.secret_names import looks_secret
from steadyhand.domain.text.folding import fold
from steadyhand.ports.disk import EntryStat, Folder, Kind
from steadyhand.tools.contract import Refusal, ToolContext
from steadyhand.tools.workspace.folder_names import paths_meant
from steadyhand.tools.workspace.spelling import open_own, own_spelling
from steadyhand_values import frozen, pattern

LINKS_MAX = 40  # as Linux allows in one path (path_resolution(7))
PATH_BYTES_MAX = 4096
NAME_BYTES_MAX = 255
SENTENCE_CHARS_MAX = 200
"""Of a path in a sentence."""
GO_ON_ELSEWHERE = (
    "start a new session there, or bind this session to it (in VS Code: open this session and choose the folder)"
)
"""What to do once the folder of a session is open at its new place (row S10)."""
OF_SERVER = "the server's programs"
"""The protected kind of the interpreter that runs the server, and of its packages (row O4)."""
NEW_FOLDER_MODE = 0o777
"""The umask clears bits of it, as for any program's new folder."""

_FOREIGN_FIRST = pattern(r"[A-Za-z][A-Za-z0-9+.-]*:|~")
_CONTROL = pattern("[\x00-\x1f\x7f-\x9f\u2028\u2029]")

_Parts = tuple[str, ...]


@frozen
class ResolvedPath:
    """A path as it was asked for, and where it leads."""

    asked: str
    parts: tuple[str, ...]  # components of the result from `/` on; empty: `/` itself
    kind: Kind | None  # at the time of the stat; "link" only with `follow=False`; None: nothing has this name
    is_inside: bool  # in the workspace, or the workspace itself
    is_in_state_directory: bool
    protected_kind: str | None  # of a name in it, or of a link to it, that asks in every mode; None: there is none
    is_secret: bool  # a name in it, or of a link to it, is a secret's (case 137)
    missing_count: int  # components at the end that do not exist; more than 1: folders are missing too

    @property
    def is_protected(self) -> bool:
        """Whether a change there asks in every mode (row G2)."""
        return self.protected_kind is not None

    @property
    def resolved(self) -> str:
        """Absolute, no links."""
        return "/" + "/".join(self.parts)

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders to open from `/` on, in order."""
        return self.parts[:-1]

    @property
    def name(self) -> str:
        """The last component; empty for `/`."""
        return self.parts[-1] if self.parts else ""


def parts_of(path: str) -> tuple[str, ...]:
    """The components of an absolute path that has no links."""
    return tuple(part for part in path.split("/") if part)


def one_line(text: str, chars_max: int | None = None) -> str:
    """Return a name for a sentence or a title: control characters are escaped, and a long name loses its middle."""
    shown = _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
    if chars_max is None or len(shown) <= chars_max:
        return shown
    head = (chars_max - 1) // 3
    return shown[:head] + "…" + shown[len(shown) - (chars_max - 1 - head) :]


def locate(tool_context: ToolContext, asked: str, follow: bool = True) -> ResolvedPath | Refusal:
    """Return where the path leads now, or why that is not known. The result can be out of date: resolve again before
    acting.

    `follow` false: a link at the end of the path is not followed.
    """
    if tool_context.root is None:
        return refuse_without_folder(tool_context)
    trouble = _text_fault(asked)
    if trouble is not None:
        return Refusal("bad_arguments", trouble)
    try:
        with ExitStack() as opened:
            return _PathWalk(tool_context, tool_context.root, _expand(tool_context, asked), opened, follow).resolve()
    except _WalkStopped as stopped:
        return stopped.refusal
    except OSError as error:
        shown = one_line(asked, SENTENCE_CHARS_MAX)
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENOENT):
            return Refusal("changed", f"The path {shown} does not exist or changed while it was checked.")
        return Refusal("io_error", f"{shown} cannot be checked: {error.strerror or error}.")


def refuse_without_folder(tool_context: ToolContext) -> Refusal:
    """Return the refusal of a call that needs the session's folder, where there is none."""
    if tool_context.missing is None:
        return Refusal("unsupported", "No folder is open, so there are no files to work on.")
    where = one_line(tool_context.missing)
    text = f"The session's folder {where} is gone, so there are no files to work on. The user can put it back, or"
    return Refusal("not_found", f"{text} open the folder at its new place and {GO_ON_ELSEWHERE}.")


def locate_for_call(tool_context: ToolContext, asked: str, follow: bool = True) -> ResolvedPath | Refusal:
    """Return where the path of a proposed call leads, before anybody has permitted it (case 125).

    Whatever stops the resolution outside the workspace is not told: the rest of the path then counts by its text, as
    if nothing had that name. The caller asks for permission, resolves again, and reports what `locate` says then.
    """
    if tool_context.root is None or _text_fault(asked) is not None:
        return locate(tool_context, asked, follow)
    with suppress(_WalkStopped, OSError):  # `locate` says the same
        asked = _expand(tool_context, asked)
    with ExitStack() as opened:
        walk = _PathWalk(tool_context, tool_context.root, asked, opened, follow)
        try:
            return walk.resolve()
        except (_WalkStopped, OSError):
            unseen = walk.unseen()
    return locate(tool_context, asked, follow) if unseen is None else unseen


@contextmanager
def open_folder(tool_context: ToolContext, folders: Sequence[str]) -> Iterator[Folder]:
    """Open the folder with these components from `/` on; no link is followed.

    It begins at the workspace if it can: the user may not be allowed to read the folders above. Raises OSError: ENOENT
    if a folder is missing, ELOOP or ENOTDIR for a link.
    """
    with ExitStack() as opened:
        yield _OpenFolders(tool_context, opened).open(tuple(folders))


def make_folders(tool_context: ToolContext, folders: Sequence[str]) -> None:
    """Create the missing ones of these folders, durably; no link is followed. Raises OSError.

    They belong to the user and have the mode that the umask leaves.
    """
    for length in range(root_depth(tool_context, tuple(folders)), len(folders)):
        with open_folder(tool_context, folders[:length]) as parent:
            if tool_context.disk.look(parent, folders[length]) is None:
                # Another process may create it first; opening it then shows what it is.
                with suppress(FileExistsError):
                    tool_context.disk.make_folder(parent, folders[length], NEW_FOLDER_MODE)
                tool_context.disk.sync_folder(parent)


def sync_folder_names(tool_context: ToolContext, folders: Sequence[str]) -> None:
    """Make the names of these folders durable, as far as they are in the workspace. Raises OSError.

    Whatever created a folder, for instance a command, may not have synced its name.
    """
    depth = root_depth(tool_context, tuple(folders))
    for length in range(depth, len(folders)) if depth or tool_context.root == "/" else ():
        with open_folder(tool_context, folders[:length]) as parent:
            tool_context.disk.sync_folder(parent)


class _WalkStopped(Exception):
    """The path cannot be resolved; `refusal` says why."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal


class _OpenFolders:
    """The folders that one resolution has opened, each once."""

    def __init__(self, tool_context: ToolContext, opened: ExitStack) -> None:
        self._tool_context = tool_context
        self._opened = opened
        self._handles: dict[_Parts, Folder] = {}

    def open(self, parts: _Parts) -> Folder:
        disk = self._tool_context.disk
        first = root_depth(self._tool_context, parts)
        for length in range(first, len(parts) + 1):
            here = parts[:length]
            if here not in self._handles:
                if length == first:
                    handle = open_own(disk, "/" + "/".join(here))
                else:
                    handle = disk.enter(self._handles[here[:-1]], here[-1])
                self._opened.callback(disk.close, handle)
                self._handles[here] = handle
        return self._handles[parts]


class _PathWalk:
    """One resolution. `_pending` are the components still to be resolved, `_parts` the resolved ones, without links."""

    def __init__(self, tool_context: ToolContext, root: str, asked: str, opened: ExitStack, follow: bool) -> None:
        self._tool_context = tool_context
        self._root = parts_of(root)
        self._roots = tuple(map(parts_of, tool_context.folders))
        self._asked = asked
        self._follow_end = follow
        self._folders = _OpenFolders(tool_context, opened)
        self._links = 0
        self._root_identities: dict[tuple[int, int], _Parts] | None = None  # None: not looked up yet
        self._names: list[str] = []
        self._current = ""
        self._missing = 0
        self._kind: Kind | None = "folder"
        self._parts: _Parts = self._root
        self._pending = asked.split("/")
        if asked.startswith("/"):
            self._restart(self._pending)

    def resolve(self) -> ResolvedPath:
        while self._pending:
            self._current = self._pending.pop(0)
            self._step(self._current)
            self._current = ""
        if self._kind != "folder" and self._asked.endswith(("/", "/.")):
            self._stop("bad_arguments", "ends like a folder, but there is no such folder")
        try:
            self._current_path().encode("utf-8")
        except UnicodeEncodeError:
            self._stop("unsupported", "leads to a name that is not UTF-8")
        return self._result(self._kind, self._is_inside(), self._missing)

    def unseen(self) -> ResolvedPath | None:
        """Return the path by its text alone from where the walk stopped outside the workspace; None: it did not."""
        if self._is_inside():
            return None
        for name in (self._current, *self._pending):
            if name == "..":
                self._parts = self._parts[:-1]
            elif name not in ("", "."):
                self._parts = (*self._parts, name)
        self._names += self._pending
        return self._result(None, False, 1)

    def _result(self, kind: Kind | None, is_inside: bool, missing: int) -> ResolvedPath:
        own = self._parts[root_depth(self._tool_context, self._parts) :] if is_inside else self._parts
        return ResolvedPath(
            self._asked,
            self._parts,
            kind,
            is_inside,
            _is_within(_folded(self._parts), _folded(parts_of(self._tool_context.state_directory))),
            protected_kind(own) or protected_kind(self._names) or (OF_SERVER if self._is_of_server() else None),
            looks_secret(own) or looks_secret(self._names),
            missing,
        )

    def _step(self, name: str) -> None:
        if name in ("", "."):
            return
        if self._kind not in ("folder", None):
            self._stop("not_found", f"leads through {one_line(self._current_path())}, which is not a folder")
        if name == "..":
            if self._missing:
                self._stop("bad_arguments", "goes up from a folder that does not exist")
            self._parts = self._parts[:-1]
            return
        if len(name.encode("utf-8", "surrogateescape")) > NAME_BYTES_MAX:
            self._stop("bad_arguments", f"contains a name longer than {NAME_BYTES_MAX} bytes")
        self._names.append(name)
        if self._missing:
            self._enter_missing(name)
            return
        here = self._folders.open(self._parts)
        seen = self._tool_context.disk.look(here, name)
        if seen is None:
            self._enter_missing(name)
        elif seen.kind == "link" and (self._pending or self._follow_end):
            self._follow(seen.target or "")
        elif self._is_inside():
            own = own_spelling(self._tool_context.disk, here, name, seen)
            self._parts, self._kind = (*self._parts, own), seen.kind
        else:
            self._parts, self._kind = self._find_root(seen) or (*self._parts, name), seen.kind

    def _find_root(self, seen: EntryStat) -> _Parts | None:
        """Return the folder of the workspace that this is under another path: in other letters, or mounted there."""
        if seen.kind != "folder":
            return None
        if self._root_identities is None:
            look = self._tool_context.disk.look_path
            found = {parts: look("/" + "/".join(parts)) for parts in reversed(self._roots) if parts}
            self._root_identities = {stat.identity: parts for parts, stat in found.items() if stat is not None}
        return self._root_identities.get(seen.identity)

    def _follow(self, target: str) -> None:
        self._links += 1
        if self._links > LINKS_MAX:
            self._stop("unsupported", f"leads through more than {LINKS_MAX} links, perhaps in a circle")
        self._pending[:0] = target.split("/")
        if target.startswith("/"):
            self._restart(self._pending)

    def _restart(self, pending: list[str]) -> None:
        """Continue from `/`, or directly from the workspace: its path has no links, so its folders need not be
        opened.
        """
        self._parts = ()
        names = [name for name in pending if name not in ("", ".")]
        around = max((root for root in self._roots if _is_within(tuple(names), root)), key=len, default=None)
        if around is not None:
            pending[:] = names[len(around) :]
            self._parts = around

    def _enter_missing(self, name: str) -> None:
        first = name == self._asked.split("/", 1)[0]
        if "\\" in name or (first and _FOREIGN_FIRST.fullmatch(name)):
            self._stop("bad_arguments", "does not exist; give it relative to the workspace, with `/` between names")
        if _CONTROL.search(name):
            self._stop("bad_arguments", "does not exist, and a new name must not contain a control character")
        self._parts, self._kind = (*self._parts, name), None
        self._missing += 1

    def _is_inside(self) -> bool:
        return any(_is_within(self._parts, root) for root in self._roots)

    def _is_of_server(self) -> bool:
        """Whether a change of the path could change the code of the server (row O4).

        A folder of the server around the whole workspace does not count, for instance the prefix `/usr`."""
        own = [parts_of(folder) for folder in self._tool_context.own_folders]
        counting = [folder for folder in own if folder and not any(_is_within(root, folder) for root in self._roots)]
        depth = root_depth(self._tool_context, self._parts)
        around = len(self._parts) > depth and self._is_inside()  # a folder of the workspace may hold one
        return any(
            _is_within(self._parts, folder) or (around and _is_within(folder, self._parts)) for folder in counting
        )

    def _current_path(self) -> str:
        return "/" + "/".join(self._parts)

    def _stop(self, reason: Literal["bad_arguments", "not_found", "unsupported"], what: str) -> NoReturn:
        raise _WalkStopped(Refusal(reason, f"The path {one_line(self._asked, SENTENCE_CHARS_MAX)} {what}."))


def _text_fault(asked: str) -> str | None:
    if not asked:
        return "The path is empty."
    if "\0" in asked:
        return "The path contains a NUL character."
    try:
        size = len(asked.encode("utf-8"))
    except UnicodeEncodeError:
        return "The path contains half of a surrogate pair, which is not a character."
    if size > PATH_BYTES_MAX:
        return f"The path is longer than {PATH_BYTES_MAX} bytes."
    return None


def _is_within(parts: _Parts, folder: _Parts) -> bool:
    return parts[: len(folder)] == folder


def _folded(parts: _Parts) -> _Parts:
    return tuple(map(fold, parts))


def _expand(tool_context: ToolContext, asked: str) -> str:
    """Return the path with the name of a folder of the workspace at its beginning replaced (row S11)."""
    found = paths_meant(tool_context, asked)
    if len(found) > 1:
        first = one_line(asked.partition("/")[0], SENTENCE_CHARS_MAX)
        both = " and ".join(map(one_line, found))
        raise _WalkStopped(Refusal("bad_arguments", f"{first} is not unique: {both}. Use the absolute path."))
    return found[0]


def root_depth(tool_context: ToolContext, parts: _Parts) -> int:
    """Return how many components are opened by path: those of the workspace's outermost folder around it, else none."""
    depths = (len(root) for root in map(parts_of, tool_context.folders) if _is_within(parts, root))
    return min(depths, default=0)
