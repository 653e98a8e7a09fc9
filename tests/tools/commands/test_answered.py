"""Commands that the server answers itself give what the program would give (row O2; case 144)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steadyhand.domain.permissions.readonly_commands import AnsweredCommand, answered_command
from steadyhand.tools.builtin.run_command import ANSWERED, RunCommand
from steadyhand.tools.commands.answered import PIECE_BYTES, answer, is_answerable
from steadyhand.tools.workspace.paths import ResolvedPath, locate
from tests.support.systems import posix_only
from tests.support.tool_calls import ToolWorkspace, carried_out

pytestmark = posix_only

LINES = st.lists(st.sampled_from([b"", b"a", b"\xff\x00", b"word " * 20, b"\r"]), max_size=30)


@pytest.fixture
def workspace(tmp_path: Path) -> ToolWorkspace:
    return ToolWorkspace.under(tmp_path)


def root_of(workspace: ToolWorkspace) -> ResolvedPath:
    found = locate(workspace.tool_context(), ".")
    assert isinstance(found, ResolvedPath)
    return found


def answered(workspace: ToolWorkspace, command: str) -> tuple[int, bytes]:
    """What the server answers: exit code and output."""
    form = answered_command(command)
    assert form is not None, command
    context, cwd = workspace.tool_context(), root_of(workspace)
    assert is_answerable(context, cwd, form), command
    pieces: list[bytes] = []
    return answer(context, cwd, form, pieces.append), b"".join(pieces)


def ran(workspace: ToolWorkspace, command: str) -> tuple[int, bytes]:
    """What the system's own program gives."""
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=workspace.root,
        capture_output=True,
        timeout=20,
        check=False,
        env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
    )
    return done.returncode, done.stdout


COMMANDS = ["cat a", "cat a b", "head a", "tail a", "head -n 3 a", "tail -n 3 a", "head -n 0 a", "tail -n 0 a"]
COMMANDS += ["tail -n 500 a", "wc -l a", "wc -l a b", "pwd", "ls", "ls d", "ls ./d/"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=25)
@given(LINES, st.booleans())
def test_answer_is_that_of_the_program(workspace: ToolWorkspace, lines: list[bytes], ends: bool) -> None:
    """O2: byte for byte what `cat`, `head`, `tail`, `wc -l`, `pwd` and `ls` write, with and without a last line end."""
    workspace.write("a", b"\n".join(lines) + (b"\n" if ends else b""))
    workspace.write("b", b"one\ntwo")
    workspace.write("d/x", b"")
    workspace.write("d/.hidden", b"")
    workspace.write("d/Y", b"")
    for command in COMMANDS:
        assert answered(workspace, command) == ran(workspace, command), command


def test_answer_of_a_large_file_reads_its_ends_only_once(workspace: ToolWorkspace) -> None:
    """O2: lines that lie across the pieces in which a file is read are whole."""
    line = b"x" * (PIECE_BYTES // 3) + b"\n"
    workspace.write("a", line * 20)
    for command in ("head -n 7 a", "tail -n 7 a", "wc -l a", "cat a"):
        assert answered(workspace, command) == ran(workspace, command), command


@pytest.mark.parametrize(
    "command",
    [
        *("cat -n a", "cat", "head -5 a", "head a b", "tail -n a", "wc a", "wc -l", "pwd -P", "ls -l", "ls a b"),
        *("cat -- a", "cat a | head", "head -n 1234567 a", "cat *", "cat 'a", "tail -f a", "wc -l -c a", "rm a", ""),
    ],
)
def test_other_form_is_not_answered(command: str) -> None:
    """O2: only the plainest forms; everything else is another command."""
    assert answered_command(command) is None


def test_path_that_is_no_readable_regular_file_of_the_workspace_is_not_answered(workspace: ToolWorkspace) -> None:
    """O2: missing, a folder, outside, by a link to the outside, a pipe, or in the state directory."""
    workspace.write("d/a", b"")
    (workspace.outside / "o").write_bytes(b"secret")
    (workspace.root / "out").symlink_to(workspace.outside)
    os.mkfifo(workspace.root / "pipe")
    context, cwd = workspace.tool_context(), root_of(workspace)
    for path in ("missing", "d", "out/o", "../out/o", "pipe", str(workspace.outside / "o")):
        assert not is_answerable(context, cwd, AnsweredCommand("cat", (path,))), path
    assert not is_answerable(context, cwd, AnsweredCommand("ls", ("d/a",)))
    assert not is_answerable(context, cwd, AnsweredCommand("ls", ("out",)))


def test_folder_exchanged_for_a_link_gives_nothing_from_outside(workspace: ToolWorkspace) -> None:
    """O2, case 144: between the decision and the reading a folder becomes a link to the outside."""
    workspace.write("d/a", b"mine")
    (workspace.outside / "a").write_bytes(b"secret")
    context, cwd = workspace.tool_context(), root_of(workspace)
    form = AnsweredCommand("cat", ("d/a",))
    assert is_answerable(context, cwd, form)
    (workspace.root / "d").rename(workspace.root / "e")
    (workspace.root / "d").symlink_to(workspace.outside)
    pieces: list[bytes] = []
    assert answer(context, cwd, form, pieces.append) == 1
    assert b"secret" not in b"".join(pieces)


@pytest.mark.anyio
async def test_reply_ends_with_the_line_that_the_server_answered(workspace: ToolWorkspace) -> None:
    """O2: output, exit code, then the fixed last line; nothing was started."""
    workspace.write("a", b"one\ntwo\n")
    done = await carried_out(RunCommand(), workspace.tool_context(), command="cat a")
    assert done.text == "one\ntwo\n[exit code 0]\n[answered by the server]"
    assert ANSWERED == "answered by the server"
    assert (done.outcome, done.exit_code, done.during) == ("returned", 0, None)
