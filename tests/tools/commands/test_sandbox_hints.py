"""What a reply says where git met a protected file (rows O1, O3)."""

from __future__ import annotations

import pytest

from steadyhand.ports.processes import Finished
from steadyhand.ports.sandbox import Confinement
from steadyhand.tools.commands.sandbox_hints import CHANGES_GIT, KEPT_PROTECTED, MAY_HAVE_CAUSED, SandboxHints
from steadyhand.tools.prepared_command import Cause

CONFINED = Confinement(kind="bubblewrap", folders=("/work",))


@pytest.mark.parametrize(
    ("command", "output", "exit_code", "is_said"),
    [
        ("git checkout f", "error: unable to unlink old 'AGENTS.md': Device or resource busy\nSwitched to f", 0, True),
        (
            "git checkout -b mine origin/x",
            "error: could not write config file .git/config: Device busy",
            0,
            True,
        ),
        ("git merge f", "error: unable to create file .env.example: Read-only file system", 1, True),
        ("git checkout f", "Switched to branch 'f'", 0, False),
        ("git config a.b c", "error: could not write config file .git/config: Device or resource busy", 4, False),
        ("echo unable to unlink", "unable to unlink", 0, False),
    ],
)
def test_git_that_kept_a_protected_file_is_said_whatever_its_exit_code(
    command: str, output: str, exit_code: int, is_said: bool
) -> None:
    """Row O1: git can exit with 0 although it could not replace a protected file."""
    hints = SandboxHints(command, CONFINED)
    half = len(output) // 2
    hints.add(output[:half].encode())
    hints.add(output[half:].encode())
    notes = hints.notes(Finished(exit_code, None, timed_out=False, left=(), group_empty=True))
    assert (KEPT_PROTECTED in notes) == is_said


@pytest.mark.parametrize(
    ("output", "is_said"),
    [
        ("error: could not lock config file .git/config: Read-only file system", True),
        ("fatal: Unable to create '/p/.git/modules/a/config.lock': Read-only file system", True),
        ("fatal: Unable to create '/p/.git/worktrees/w/index.lock': Read-only file system", False),
    ],
)
def test_git_is_said_to_change_how_it_runs_programs_only_where_it_does(output: str, is_said: bool) -> None:
    """Row O1: a git directory that is read-only as a whole is another matter."""
    hints = SandboxHints("git commit", CONFINED)
    hints.add(output.encode())
    notes = hints.notes(Finished(128, None, timed_out=False, left=(), group_empty=True))
    assert (CHANGES_GIT in notes) == is_said


NETWORK = Cause(("EAI_AGAIN",), "no network")
CACHE = Cause(("/home/a/.npm/",), "cache", also=("Read-only file system",))
GIT = Cause(("Read-only file system",), "git directory", is_git=True)


@pytest.mark.parametrize(
    ("command", "output", "exit_code", "told"),
    [
        ("npm install", "npm error getaddrinfo EAI_AGAIN registry", 1, ["no network"]),
        ("npm install", "EROFS: read-only file system, open '/home/a/.npm/_cacache/x'", 243, ["cache"]),
        ("cargo build", "error in /home/a/.npm/x.js", 1, []),
        ("git commit", "fatal: Unable to create '/b/.git/index.lock': Read-only file system", 128, ["git directory"]),
        ("touch /b", "touch: /b: Read-only file system", 1, []),
        ("npm install", "getaddrinfo EAI_AGAIN", 0, []),
    ],
)
def test_known_cause_is_said_where_the_output_shows_it(
    command: str, output: str, exit_code: int, told: list[str]
) -> None:
    """Row O3: what was known before the start is said with the way that leads on."""
    hints = SandboxHints(command, CONFINED, (NETWORK, CACHE, GIT))
    hints.add(output.encode())
    notes = hints.notes(Finished(exit_code, None, timed_out=False, left=(), group_empty=True))
    assert [note for note in notes if note in ("no network", "cache", "git directory")] == told


def test_words_count_however_they_are_written() -> None:
    """Row O3: Node.js and Go write the system's words small."""
    hints = SandboxHints("node x.js", CONFINED)
    hints.add(b"Error: EACCES: permission denied, open 'x'")
    assert MAY_HAVE_CAUSED in hints.notes(Finished(1, None, timed_out=False, left=(), group_empty=True))
