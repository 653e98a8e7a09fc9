"""Kinds of files: how each is made, and what a call of each tool answers for it.

docs/files.md has a table with one row for each kind and one column for each tool; `tests/tools/test_kinds.py` compares
it with what happens. A new kind is one line in `KINDS` and one line in that table.
"""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import anyio
import attrs
import pytest

from steadyhand.tools.builtin.delete_file import DeleteFile
from steadyhand.tools.builtin.edit_file import EditFile
from steadyhand.tools.builtin.move_file import MoveFile
from steadyhand.tools.builtin.read_file import ReadFile
from steadyhand.tools.builtin.search_text import SearchText
from steadyhand.tools.builtin.write_file import WriteFile
from steadyhand.tools.contract import EvidenceResult, Planned, Preview, Refusal, Tool, ToolContext, ToolOutcome
from tests.support.systems import access_list, append_only, bound_to
from tests.support.tool_calls import ATTEMPT, ToolWorkspace, arguments, running

TEXT = b"one\ntwo\n"
NAME = "it"
LONG_NAME = "n" * 255
LARGE_BYTES = 70 * 1024 * 1024
LINE_BYTES = 40 * 1024 * 1024

Make = Callable[[ToolWorkspace, ExitStack], str]
"""Make the kind in a workspace and return its path for a call; what must be undone is put on the stack."""


def at(make: Callable[[Path, ToolWorkspace], object], name: str = NAME) -> Make:
    """A kind that is made at one path and needs nothing undone."""

    def made(workspace: ToolWorkspace, stack: ExitStack) -> str:
        path = workspace.root / name
        path.parent.mkdir(exist_ok=True)
        make(path, workspace)
        return name

    return made


def text(path: Path) -> Path:
    path.write_bytes(TEXT)
    return path


def link(path: Path, target: str | Path) -> None:
    path.symlink_to(target)


def chain(path: Path) -> None:
    text(path.with_name("real"))
    path.with_name("second").symlink_to("real")
    path.symlink_to("second")


def to_folder(path: Path) -> None:
    path.with_name("real").mkdir()
    path.symlink_to("real")


def other_name(path: Path, other: Path) -> None:
    os.link(text(path), other)


def mode(path: Path, bits: int) -> None:
    text(path).chmod(bits)


def extended(path: Path, name: str, value: bytes) -> None:
    try:
        os.setxattr(text(path), name, value)
    except (OSError, AttributeError):
        pytest.skip("this file system keeps no such attributes")


def device(path: Path) -> None:
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    except OSError:
        pytest.skip("this user may not make a device")


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


def sparse(path: Path, size: int) -> None:
    os.truncate(text(path), size)


def not_utf_8(path: Path) -> None:
    Path(os.fsdecode(os.fsencode(path.parent) + b"/caf\xe9")).write_bytes(TEXT)
    path.symlink_to(os.fsdecode(b"caf\xe9"))


def closed_folder(path: Path) -> None:
    text(path)
    path.parent.chmod(0o555)


def of_appending(workspace: ToolWorkspace, stack: ExitStack) -> str:
    stack.enter_context(append_only(text(workspace.root / NAME)))
    return NAME


def in_appending(workspace: ToolWorkspace, stack: ExitStack) -> str:
    folder = workspace.root / "log"
    folder.mkdir()
    text(folder / NAME)
    stack.enter_context(append_only(folder))
    return f"log/{NAME}"


def missing_in_appending(workspace: ToolWorkspace, stack: ExitStack) -> str:
    folder = workspace.root / "log"
    folder.mkdir()
    stack.enter_context(append_only(folder))
    return f"log/{NAME}"


def mounted(workspace: ToolWorkspace, stack: ExitStack) -> str:
    stack.enter_context(contextmanager(bound_to)(text(workspace.outside / "source"), text(workspace.root / NAME)))
    return NAME


@attrs.frozen
class Kind:
    """One kind. `is_ordinary`: as root the system refuses nothing, so it is tried as an ordinary user."""

    make: Make
    is_ordinary: bool = False


KINDS: Mapping[str, Kind] = {
    "a text file": Kind(at(lambda path, _: text(path))),
    "an empty file": Kind(at(lambda path, _: path.touch())),
    "nothing": Kind(at(lambda path, _: None)),
    "a folder": Kind(at(lambda path, _: path.mkdir())),
    "a link to a file": Kind(at(lambda path, _: link(path, text(path.with_name("real")).name))),
    "a link to a link to a file": Kind(at(lambda path, _: chain(path))),
    "a link to a folder": Kind(at(lambda path, _: to_folder(path))),
    "a dangling link": Kind(at(lambda path, _: link(path, "gone"))),
    "a circle of links": Kind(at(lambda path, _: link(path, path.name))),
    "a link to a file outside": Kind(at(lambda path, ws: link(path, text(ws.outside / "far")))),
    "a file with two names here": Kind(at(lambda path, _: other_name(path, path.with_name("second")))),
    "a file with a name outside": Kind(at(lambda path, ws: other_name(path, ws.outside / "far"))),
    "a file that is mounted": Kind(mounted),
    "a file in an append-only folder": Kind(in_appending),
    "nothing, in an append-only folder": Kind(missing_in_appending),
    "an append-only file": Kind(of_appending),
    "a read-only file": Kind(at(lambda path, _: mode(path, 0o444))),
    "a file in a read-only folder": Kind(at(lambda path, _: closed_folder(path), f"closed/{NAME}"), is_ordinary=True),
    "nothing, in a read-only folder": Kind(
        at(lambda path, _: path.parent.chmod(0o555), f"closed/{NAME}"), is_ordinary=True
    ),
    "a file that this user may not read": Kind(at(lambda path, _: mode(path, 0o200)), is_ordinary=True),
    "a set-user-id file": Kind(at(lambda path, _: mode(path, 0o4755))),
    "a file with attributes": Kind(at(lambda path, _: extended(path, "user.note", b"kept"))),
    "a file with an access list": Kind(
        at(lambda path, _: extended(path, "system.posix_acl_access", access_list(4242)))
    ),
    "a pipe": Kind(at(lambda path, _: os.mkfifo(path))),
    "a socket": Kind(at(lambda path, _: listening(path))),
    "a device": Kind(at(lambda path, _: device(path))),
    "a file with NUL bytes": Kind(at(lambda path, _: path.write_bytes(b"one\0two\n"))),
    "a line of 40 MB": Kind(at(lambda path, _: path.write_bytes(b"one\n" + b"x" * LINE_BYTES + b"\n"))),
    "a text above 64 MiB": Kind(at(lambda path, _: path.write_bytes(b"one\ntwo\n" * (LARGE_BYTES // 8)))),
    "a sparse file above 64 MiB": Kind(at(lambda path, _: sparse(path, LARGE_BYTES))),
    "a name with a line end": Kind(at(lambda path, _: text(path), "a\nb")),
    "a name that is not UTF-8, by a link": Kind(at(lambda path, _: not_utf_8(path))),
    "a name of 255 bytes": Kind(at(lambda path, _: text(path), LONG_NAME)),
}


# The calls.


def fields_of(column: str, path: str) -> tuple[Tool, dict[str, object]]:
    """The tool of a column of the table, and its arguments."""
    match column:
        case "read_file":
            return ReadFile(), {"path": path}
        case "search_text":
            return SearchText(), {"pattern": "one", "path": path}
        case "edit_file":
            return EditFile(), {"path": path, "edits": [{"old": "one", "new": "1"}]}
        case "write_file":
            return WriteFile(), {"path": path, "content": "new\n"}
        case "move_file":
            return MoveFile(), {"from": path, "to": "moved"}
        case _:
            assert column == "delete_file", column
            return DeleteFile(), {"path": path}


COLUMNS = ("read_file", "search_text", "edit_file", "write_file", "move_file", "delete_file")


def answer_of(column: str, context: ToolContext, path: str) -> str:
    """What the call is answered, as the table says it: words joined by commas."""
    tool, fields = fields_of(column, path)
    planned = tool.prepare(arguments(**fields), context)
    if isinstance(planned, Refusal):
        return planned.reason
    before = "asks, " if planned.outside else ""
    preview = planned.preview()
    if isinstance(preview, Refusal):
        return before + preview.reason
    return before + _done(planned, preview)


def _done(planned: Planned, preview: Preview) -> str:
    found = getattr(planned, "find_in_place", lambda: None)() if planned.outside and planned.effect != "reads" else None
    gathered = found or planned.gather(ATTEMPT, preview)
    if isinstance(gathered, Refusal):
        return gathered.reason
    assert isinstance(gathered, EvidenceResult)

    async def body() -> ToolOutcome:
        return await planned.run(running(gathered.evidence))

    try:
        done = anyio.run(body)
    except OSError as error:
        return f"fails with {error.strerror}"
    if done.outcome != "returned":
        return done.reason or done.outcome
    if any(one.in_place for one in gathered.evidence):
        return "in place"
    return "cut" if done.is_truncated else "done"
