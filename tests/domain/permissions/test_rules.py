"""The permission rules of the settings: what matches certainly, what may match, and what is no rule (row G2)."""

from __future__ import annotations

import time

import pytest

from steadyhand.domain.permissions.rules import (
    RULE_CHARS_MAX,
    BadRule,
    PermissionRule,
    Target,
    find_tightening_rule,
    first_loosening_rule,
    parse_rule,
)
from steadyhand.domain.records.record import Scope
from steadyhand.domain.records.scope import EVERYTHING, NOTHING
from steadyhand.tools.registry import SUBJECTS


def rule(text: str) -> PermissionRule:
    found = parse_rule(text, SUBJECTS)
    assert isinstance(found, PermissionRule), found
    return found


def call_on(tool: str, *paths: str) -> Target:
    """A call on these paths of the workspace `/w`, or on absolute ones."""
    return Target(tool, Scope(tuple(path if path.startswith("/") else f"/w/{path}" for path in paths)), "/w", None)


def command_call(command: str) -> Target:
    return Target("run_command", EVERYTHING, "/w", command)


def fits(text: str, target: Target) -> tuple[bool, bool]:
    """(loosens, tightens): whether the rule would allow the call, and whether it would ask about it or deny it."""
    one = (rule(text),)
    tightened = find_tightening_rule(one, target)
    return first_loosening_rule(one, target) is not None, tightened is not None and tightened.is_certain


PATHS = [
    ("write_file", call_on("write_file", "a.txt"), True),
    ("*", call_on("write_file", "a.txt"), True),
    ("edit_file", call_on("write_file", "a.txt"), False),
    ("write_file(src/**)", call_on("write_file", "src/a/b.py"), True),
    ("write_file(src/**)", call_on("write_file", "lib/src/b.py"), False),
    ("write_file(src/)", call_on("write_file", "src/a/b.py"), True),
    ("write_file(src/*)", call_on("write_file", "src/a/b.py"), False),
    ("write_file(*.py)", call_on("write_file", "src/a/b.py"), True),
    ("write_file(*.{js,ts})", call_on("write_file", "src/a.ts"), True),
    ("write_file(b.py)", call_on("write_file", "src/b.py"), True),
    ("*(b.py)", call_on("delete_file", "src/b.py"), True),
    ("write_file(/w/src/**)", call_on("write_file", "src/b.py"), True),
    ("read_file(/etc/**)", call_on("read_file", "/etc/passwd"), True),
    ("read_file(etc/**)", call_on("read_file", "/etc/passwd"), False),
    ("read_file(passwd)", call_on("read_file", "/etc/passwd"), True),
    ("read_file(w/a.txt)", call_on("read_file", "/w2/w/a.txt"), False),
    ("search_text(**)", call_on("search_text", "/w"), True),
    ("run_command(src/**)", call_on("write_file", "src/b.py"), False),
]


@pytest.mark.parametrize(("text", "target", "expected"), PATHS)
def test_rule_path_pattern_matches_relative_to_the_workspace(text: str, target: Target, expected: bool) -> None:
    """G2: patterns are those of `globs`. A leading `/` means an absolute path, and a trailing one everything below."""
    assert fits(text, target) == (expected, expected)


def test_rule_with_several_paths_allows_on_all_and_denies_on_any() -> None:
    """G2: a rule for an allowed folder does not allow a move out of it. A rule for a denied folder denies a move into
    it.
    """
    assert fits("move_file(src/**)", call_on("move_file", "src/a", "lib/a")) == (False, True)
    assert fits("move_file(src/**)", call_on("move_file", "src/a", "src/b")) == (True, True)


def test_rule_case_matters_only_for_allowing() -> None:
    """G2: on a file system that ignores case, `SECRETS` is `secrets`."""
    assert fits("write_file(secrets/**)", call_on("write_file", "Secrets/a")) == (False, True)
    assert fits("write_file(Secrets/**)", call_on("write_file", "secrets/a")) == (False, True)
    assert fits("run_command(rm *)", command_call("RM a")) == (False, True)


def test_rule_path_pattern_does_not_match_a_call_without_paths() -> None:
    """G2: a pattern is no rule for a call that it cannot be compared with."""
    assert fits("*(**)", Target("stop_command", NOTHING, "/w", None)) == (False, False)
    assert fits("*(**)", command_call("make")) == (False, False)


COMMANDS = [
    ("git status", "git status", True, True),
    ("git status", "git status -s", False, False),
    ("npm test*", "npm test", True, True),
    ("npm test*", "npm test -- --watch", True, True),
    ("npm test *", "npm testing", False, False),
    ("*", "make", True, True),
    ("npm * --silent", "npm run x --silent", True, True),
    ("a*a", "a", False, False),
    ("make && make test", "make && make test", True, True),
    (r"ls \*.py", "ls *.py", True, True),
    (r"ls \*.py", "ls a.py", False, False),
    ("rm *", "sudo rm -rf x", False, True),
    ("rm *", "A=1 /bin/rm -rf x", False, True),
    ("rm *", "make\trm x", False, False),
    ("rm *", "cd a && rm  -rf   x", False, True),
    ("rm *", "echo $(rm x)", False, True),
    ("rm *", "echo `rm x`", False, True),
    ("rm *", "true\nrm x", False, True),
    ("rm *", "if true; then rm x; fi", False, True),
]


@pytest.mark.parametrize(("pattern", "command", "surely", "perhaps"), COMMANDS)
def test_rule_command_pattern_compares_the_text_of_the_command(
    pattern: str, command: str, surely: bool, perhaps: bool
) -> None:
    """G2: exactly that text, with `*` for any text. A rule that asks or denies also applies where a shell may run the
    command as a part.
    """
    assert fits(f"run_command({pattern})", command_call(command)) == (surely, perhaps)


SHELL_SYNTAX = [
    *("; rm -rf x", "&& rm x", "|| rm x", "| sh", "& rm x", "\nrm x", "\rrm x", "$(rm x)", "`rm x`", "> a", "< a"),
    *(
        ">> a",
        "<(rm x)",
        "${IFS}x",
        "$HOME",
        "a*",
        "a?",
        "[a]",
        "{a,b}",
        "(x)",
        "\\\nrm",
        "# x",
        "!x",
        '"',
        "'",
        "\x00",
    ),
]
OUTSIDE_OR_PROTECTED = [
    *("/etc/passwd", "~/x", "~root/x", "../x", "a/../../x", ".git/hooks/x", "x/.env.local", ".bashrc", "--out=/etc/x"),
    *("-o/etc/x", "-C ..", "a:/etc", "--out=.git/config", "-x~/y", ".GIT/x", "'.git/x'"),
]


@pytest.mark.parametrize("tail", [*SHELL_SYNTAX, *(f" {syntax}" for syntax in SHELL_SYNTAX)])
def test_rule_star_does_not_allow_shell_syntax(tail: str) -> None:
    """G2: chaining, pipes, substitution, redirection, globs, line ends and open quotes still ask."""
    assert not fits("run_command(npm test*)", command_call(f"npm test{tail}"))[0]


@pytest.mark.parametrize("word", OUTSIDE_OR_PROTECTED)
def test_rule_star_does_not_allow_outside_or_protected_paths(word: str) -> None:
    """G2: a word that leads out of the workspace or to a protected path still asks."""
    assert fits("run_command(npm test *)", command_call("npm test a/b.js --config=c/d.js"))[0]
    assert not fits("run_command(npm test *)", command_call(f"npm test {word}"))[0]


def test_rule_allows_an_absolute_path_that_it_names_itself() -> None:
    """G2: the user wrote the absolute path in the rule. Another absolute path beside it still asks."""
    assert fits("run_command(/usr/bin/make *)", command_call("/usr/bin/make all"))[0]
    assert not fits("run_command(/usr/bin/make *)", command_call("/usr/bin/make -C /etc"))[0]


@pytest.mark.parametrize(
    "text",
    [
        *("", "write_file(", "write_file)", "(a)", "write file", "writefile", "write_file(a) b", "write_file()"),
        *(
            "write_file( )",
            "todo(a)",
            "stop_command(x)",
            "write_file([a)",
            "write_file({a,b}{c,d}{e,f}{g,h}{i,j}{k,l}{m,n})",
        ),
        f"run_command({'a' * RULE_CHARS_MAX})",
    ],
)
def test_parse_rule_that_can_never_match_is_a_bad_rule(text: str) -> None:
    """G2: a rule that could never match, or that names no tool, is no rule, so that nobody relies on it."""
    assert isinstance(parse_rule(text, SUBJECTS), BadRule)


def test_parse_rule_accepts_every_tool_name() -> None:
    """G2: the name alone, and with a pattern where the tool has paths or a command."""
    assert all(isinstance(parse_rule(name, SUBJECTS), PermissionRule) for name in SUBJECTS)
    assert {name for name in SUBJECTS if isinstance(parse_rule(f"{name}(a)", SUBJECTS), PermissionRule)} == {
        *("delete_file", "diagnostics", "edit_file", "find_files", "list_files", "move_file", "read_file"),
        *("run_command", "search_text", "write_file"),
    }


def test_rule_pathological_pattern_is_matched_in_time() -> None:
    """I13: many stars against a long command take no long time."""
    began = time.process_time()
    fits("run_command(" + "a*" * 400 + "b)", command_call("a; " * 20_000))
    fits("run_command(" + "*a" * 400 + ")", command_call("a" * 60_000 + "b"))
    assert time.process_time() - began < 2
