"""Rules of the settings: what fits surely, what may be meant, and what is no rule (row G2)."""

from __future__ import annotations

import time

import pytest

from steadyhand.core.record import Scope
from steadyhand.core.rules import BadRule, Rule, Target, loosening, parse, rule_chars_max, tightening
from steadyhand.core.scope import EVERYTHING, NOTHING
from steadyhand.tools.catalogue import SUBJECTS


def rule(text: str) -> Rule:
    found = parse(text, SUBJECTS)
    assert isinstance(found, Rule), found
    return found


def on(tool: str, *paths: str) -> Target:
    """A call on these paths of the workspace `/w`, or on absolute ones."""
    return Target(tool, Scope(tuple(path if path.startswith("/") else f"/w/{path}" for path in paths)), "/w", None)


def running(command: str) -> Target:
    return Target("run_command", EVERYTHING, "/w", command)


def fits(text: str, target: Target) -> tuple[bool, bool]:
    """(surely, perhaps): whether it would let the call pass, and whether it would hold it up."""
    one = (rule(text),)
    return loosening(one, target) is not None, tightening(one, target) is not None


PATHS = [
    ("write_file", on("write_file", "a.txt"), True),
    ("*", on("write_file", "a.txt"), True),
    ("edit_file", on("write_file", "a.txt"), False),
    ("write_file(src/**)", on("write_file", "src/a/b.py"), True),
    ("write_file(src/**)", on("write_file", "lib/src/b.py"), False),
    ("write_file(src/)", on("write_file", "src/a/b.py"), True),
    ("write_file(src/*)", on("write_file", "src/a/b.py"), False),
    ("write_file(*.py)", on("write_file", "src/a/b.py"), True),
    ("write_file(*.{js,ts})", on("write_file", "src/a.ts"), True),
    ("write_file(b.py)", on("write_file", "src/b.py"), True),
    ("*(b.py)", on("delete_file", "src/b.py"), True),
    ("write_file(/w/src/**)", on("write_file", "src/b.py"), True),
    ("read_file(/etc/**)", on("read_file", "/etc/passwd"), True),
    ("read_file(etc/**)", on("read_file", "/etc/passwd"), False),
    ("read_file(passwd)", on("read_file", "/etc/passwd"), True),
    ("read_file(w/a.txt)", on("read_file", "/w2/w/a.txt"), False),
    ("search_text(**)", on("search_text", "/w"), True),
    ("run_command(src/**)", on("write_file", "src/b.py"), False),
]


@pytest.mark.parametrize(("text", "target", "expected"), PATHS)
def test_a_path_is_compared_from_the_workspace_on(text: str, target: Target, expected: bool) -> None:
    """G2: patterns are those of `globs`; a beginning `/` means an absolute path, an ending one what is below."""
    assert fits(text, target) == (expected, expected)


def test_of_several_paths_all_must_fit_to_pass_and_one_to_hold_up() -> None:
    """G2: a move out of an allowed folder is not allowed by it; one into a denied folder is denied."""
    assert fits("move_file(src/**)", on("move_file", "src/a", "lib/a")) == (False, True)
    assert fits("move_file(src/**)", on("move_file", "src/a", "src/b")) == (True, True)


def test_case_counts_only_for_what_loosens() -> None:
    """G2: where a file system knows no case, `SECRETS` is `secrets`."""
    assert fits("write_file(secrets/**)", on("write_file", "Secrets/a")) == (False, True)
    assert fits("write_file(Secrets/**)", on("write_file", "secrets/a")) == (False, True)
    assert fits("run_command(rm *)", running("RM a")) == (False, True)


def test_a_call_that_touches_no_path_is_let_pass_by_no_path() -> None:
    """G2: a pattern is no rule for what it cannot be compared with."""
    assert fits("*(**)", Target("stop_command", NOTHING, "/w", None)) == (False, False)
    assert fits("*(**)", running("make")) == (False, False)


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
def test_a_command_is_compared_as_a_text(pattern: str, command: str, surely: bool, perhaps: bool) -> None:
    """G2: that very text, with `*` for any; held up where a shell may run it as a part."""
    assert fits(f"run_command({pattern})", running(command)) == (surely, perhaps)


CHAINED = [
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
ELSEWHERE = [
    *("/etc/passwd", "~/x", "~root/x", "../x", "a/../../x", ".git/hooks/x", "x/.env.local", ".bashrc", "--out=/etc/x"),
    *("-o/etc/x", "-C ..", "a:/etc", "--out=.git/config", "-x~/y", ".GIT/x", "'.git/x'"),
]


@pytest.mark.parametrize("tail", [*CHAINED, *(f" {chained}" for chained in CHAINED)])
def test_nothing_but_one_plain_command_passes_by_a_star(tail: str) -> None:
    """G2: chaining, pipes, substitution, redirection, globs, line ends and open quotes ask all the same."""
    assert not fits("run_command(npm test*)", running(f"npm test{tail}"))[0]


@pytest.mark.parametrize("word", ELSEWHERE)
def test_a_star_stands_for_nothing_outside_or_protected(word: str) -> None:
    """G2: a word that leads out of the workspace or to a protected path asks all the same."""
    assert fits("run_command(npm test *)", running("npm test a/b.js --config=c/d.js"))[0]
    assert not fits("run_command(npm test *)", running(f"npm test {word}"))[0]


def test_what_the_pattern_names_itself_passes() -> None:
    """G2: an absolute path that stands in the rule is the user's own word; another beside it is not."""
    assert fits("run_command(/usr/bin/make *)", running("/usr/bin/make all"))[0]
    assert not fits("run_command(/usr/bin/make *)", running("/usr/bin/make -C /etc"))[0]


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
        f"run_command({'a' * rule_chars_max})",
    ],
)
def test_what_is_no_rule(text: str) -> None:
    """G2: a rule that could never fit, or names no tool, is no rule, so that nobody trusts in it."""
    assert isinstance(parse(text, SUBJECTS), BadRule)


def test_every_tool_can_be_named() -> None:
    """G2: alone; with a pattern where it has paths or a command."""
    assert all(isinstance(parse(name, SUBJECTS), Rule) for name in SUBJECTS)
    assert {name for name in SUBJECTS if isinstance(parse(f"{name}(a)", SUBJECTS), Rule)} == {
        *("delete_file", "diagnostics", "edit_file", "find_files", "list_files", "move_file", "read_file"),
        *("run_command", "search_text", "write_file"),
    }


def test_hard_patterns_are_soon_compared() -> None:
    """I13: many stars against a long command take no long time."""
    begun = time.monotonic()
    fits("run_command(" + "a*" * 400 + "b)", running("a; " * 20_000))
    fits("run_command(" + "*a" * 400 + ")", running("a" * 60_000 + "b"))
    assert time.monotonic() - begun < 2
