"""Commands that the server answers itself: `cat`, `head`, `tail`, `wc -l`, `pwd`, `ls` in their plainest forms, of
files and folders of the workspace (row O2; case 144).

Nothing is started, so nothing can be confined wrongly. A path is resolved again when it is read, component by component
in open folders, so a folder that was exchanged for a link meanwhile leads nowhere else.
`domain.permissions.readonly_commands` says which texts these are. Blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from steadyhand.domain.permissions.readonly_commands import AnsweredCommand
from steadyhand.domain.records.record import Shown
from steadyhand.domain.text.decoding import FileText, decode
from steadyhand.domain.text.encodings import UTF_8
from steadyhand.domain.views.render import display_path
from steadyhand.ports.disk import File
from steadyhand.tools.contract import ToolContext
from steadyhand.tools.shown_lines import shown_range
from steadyhand.tools.workspace.paths import ResolvedPath, locate, open_folder
from steadyhand.tools.writes.blob_store import OUTPUT_BYTES_MAX
from steadyhand_values import pattern

PIECE_BYTES = 64 * 1024
ANSWERED_BYTES_MAX = OUTPUT_BYTES_MAX
"""Bytes that are read of one file; an output has no more on disk."""

Output = Callable[[bytes], None]
NotedFile = Callable[[Shown, bytes], None]
"""Takes which lines of a file were written, and the whole file."""
SHOWN_BYTES_MAX = 8 * 1024 * 1024
"""Of a larger file nothing is noted: it is never held whole in memory."""


def locate_operand(tool_context: ToolContext, cwd: ResolvedPath, path: str) -> ResolvedPath | None:
    """Return where a word of a command leads if that is in the workspace, and not in the state directory."""
    here = display_path(cwd.resolved, tool_context.root)
    located = locate(tool_context, path if path.startswith("/") else f"{here}/{path}")
    if not isinstance(located, ResolvedPath) or not located.is_inside or located.is_in_state_directory:
        return None
    return located


def must_ask(tool_context: ToolContext, located: ResolvedPath) -> bool:
    """Return whether a file may hold a secret, and no rule allows to read it (case 137)."""
    return located.is_secret and not tool_context.allows_secret(located.resolved)


def is_answerable(tool_context: ToolContext, cwd: ResolvedPath, command: AnsweredCommand) -> bool:
    """Return whether each path is what the form demands: a readable regular file, or a folder for `ls`."""
    kind = "folder" if command.program == "ls" else "file"
    for path in command.paths:
        located = locate_operand(tool_context, cwd, path)
        if located is None or located.kind != kind or must_ask(tool_context, located):
            return False
        try:
            if kind == "file":
                with _opened(tool_context, located):
                    pass
        except OSError:
            return False
    return True


def answer(
    tool_context: ToolContext,
    cwd: ResolvedPath,
    command: AnsweredCommand,
    output: Output,
    note: NotedFile = lambda shown, raw: None,
) -> int:
    """Write to `output` what the program would write; return its exit code. `note`: takes what the model sees (V3)."""
    if command.program == "pwd":
        output(f"{cwd.resolved}\n".encode("utf-8", "surrogateescape"))
        return 0
    if command.program == "wc":
        return _count_lines(tool_context, cwd, command, output)
    return _read_each(
        tool_context, cwd, command, output, lambda at, _: _read_one(tool_context, at, command, output, note)
    )


def _read_each(
    tool_context: ToolContext,
    cwd: ResolvedPath,
    command: AnsweredCommand,
    output: Output,
    read: Callable[[ResolvedPath, str], None],
) -> int:
    """Read each operand, and say which could not be read; return the exit code."""
    code = 0
    for path in command.paths or (".",):
        try:
            located = locate_operand(tool_context, cwd, path)
            if located is None:
                raise OSError("it leads elsewhere now")
            read(located, path)
        except OSError as error:
            code = 1
            output(f"{command.program}: {path}: {error.strerror or error}\n".encode("utf-8", "surrogateescape"))
    return code


def _read_one(
    tool_context: ToolContext, located: ResolvedPath, command: AnsweredCommand, output: Output, note: NotedFile
) -> None:
    if command.program == "ls":
        with open_folder(tool_context, located.parts) as folder:
            names = [name for name in tool_context.disk.names(folder) if not name.startswith(".")]
        output("".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape"))
        return
    with _opened(tool_context, located) as (file, size):
        if size <= SHOWN_BYTES_MAX:
            raw = b"".join(_pieces(tool_context, file, size))
            first, last, cut = _lines_of(raw, command)
            output(cut)
            found = decode(raw)
            if isinstance(found, FileText) and found.encoding is UTF_8 and not _UNSHOWN.search(raw):
                note(shown_range(located.resolved, found, first, last, len(cut) == len(raw)), raw)
            return
        if command.program == "tail":
            tool_context.disk.move_to(file, _start_of_last_lines(tool_context, file, size, command.lines))
        left = command.lines if command.program == "head" else None
        for piece in _pieces(tool_context, file, size):
            cut = piece if left is None else _first_lines(piece, left)
            output(cut)
            if left is not None:
                left -= cut.count(b"\n")
                if left <= 0:
                    return


def _count_lines(tool_context: ToolContext, cwd: ResolvedPath, command: AnsweredCommand, output: Output) -> int:
    """Count line ends as `wc -l` does; several files have one width and a total."""
    rows: list[tuple[int, str]] = []
    sizes: list[int] = []

    def count(located: ResolvedPath, path: str) -> None:
        with _opened(tool_context, located) as (file, size):
            rows.append((sum(piece.count(b"\n") for piece in _pieces(tool_context, file, size)), path))
            sizes.append(size)

    code = _read_each(tool_context, cwd, command, output, count)
    if len(command.paths) > 1:
        rows.append((sum(lines for lines, _ in rows), "total"))
    width = len(str(sum(sizes))) if len(command.paths) > 1 else 1
    for lines, path in rows:
        output(f"{lines:{width}} {path}\n".encode("utf-8", "surrogateescape"))
    return code


@contextmanager
def _opened(tool_context: ToolContext, located: ResolvedPath) -> Iterator[tuple[File, int]]:
    """Open a regular file for reading; with the size that it has then, beyond which nothing is read."""
    disk = tool_context.disk
    with open_folder(tool_context, located.folders) as folder:
        file = disk.open_read(folder, located.name)
        try:
            yield file, min(disk.look_open(file).size, ANSWERED_BYTES_MAX)
        finally:
            disk.close(file)


def _pieces(tool_context: ToolContext, file: File, size: int) -> Iterator[bytes]:
    """Yield the bytes from the present position on, at most `size`."""
    while size > 0 and (piece := tool_context.disk.read_piece(file, min(PIECE_BYTES, size))):
        size -= len(piece)
        yield piece


_UNSHOWN = pattern(rb"[\x08\x1b]|\r(?!\n)")
"""What a reply shows otherwise than it is in the file."""


def _lines_of(raw: bytes, command: AnsweredCommand) -> tuple[int, int, bytes]:
    """Return the first and the last line that the command writes, and these bytes."""
    total = raw.count(b"\n") + (0 if not raw or raw.endswith(b"\n") else 1)
    if command.program == "head":
        return 1, min(command.lines, total), _first_lines(raw, command.lines) if command.lines else b""
    if command.program == "tail":
        first = max(total - command.lines, 0) + 1
        before = _first_lines(raw, first - 1) if first > 1 else b""
        return first, total, raw[len(before) :]
    return 1, total, raw


def _first_lines(piece: bytes, count: int) -> bytes:
    end = 0
    for _ in range(count):
        found = piece.find(b"\n", end)
        if found < 0:
            return piece
        end = found + 1
    return piece[:end]


def _start_of_last_lines(tool_context: ToolContext, file: File, size: int, count: int) -> int:
    """Return where the last `count` lines of a file begin, in bytes; reads it from its end backwards."""
    if count == 0:
        return size
    seen, end = 0, size
    while end > 0:
        start = max(0, end - PIECE_BYTES)
        tool_context.disk.move_to(file, start)
        piece = b"".join(_pieces(tool_context, file, end - start))
        place = len(piece)
        if end == size and piece.endswith(b"\n"):
            place -= 1  # the end of the last line
        while (place := piece.rfind(b"\n", 0, place)) >= 0:
            seen += 1
            if seen == count:
                return start + place + 1
        end = start
    return 0
