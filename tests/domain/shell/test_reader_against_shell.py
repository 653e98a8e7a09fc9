"""The reader of shell text compared with the shells of this machine: words, and commands that run (case 115)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steadyhand.domain.permissions.command_patterns import fit_tightening, judge_command, parse_command_pattern
from steadyhand.domain.shell.reader import read_shell_line
from steadyhand.domain.shell.sink import UNKNOWN

SHELLS = sorted({os.path.realpath(path) for name in ("sh", "dash", "bash") if (path := shutil.which(name))})
EXAMPLES = int(os.environ.get("SHELL_EXAMPLES", "150"))
WORD_PIECES = st.sampled_from(
    [
        *("a", "rm", "-x", "=", "é", "1", "~", "#", "]", "}", "{", "!", "%", ":", "^", ",", "@"),
        *("\\a", "\\ ", "\\\\", "\\'", '\\"', "\\$", "\\;", "\\\n", "\\#", "\\*"),
        *("''", "'a b'", "'\\'", "'$A'", "'\"'", "'#'", "'a\nb'", "'*'", "';'"),
        *('""', '"a b"', '"\\""', '"\\\\"', '"\\$A"', '"\\a"', '"\'"', '"\\`"', '"a\\\nb"', '"*"', '"<"'),
    ]
)
WORDS = st.lists(WORD_PIECES, min_size=1, max_size=5).map("".join)
LINES = st.lists(WORDS, min_size=1, max_size=4)


def _is_plain(word: str) -> bool:
    """Whether the word is one that every shell reads alike: no home folder, no comment, no braces with a comma."""
    return not word.startswith(("~", "#")) and ":~" not in word and "=~" not in word


@pytest.mark.parametrize("shell", SHELLS)
@given(words=LINES)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_words_are_those_that_the_shell_makes(shell: str, words: list[str]) -> None:
    """Case 115: quotes, escapes and line ends inside a word, as the shell itself removes them."""
    line = "printf %s\\\\0 " + " ".join(word for word in words if _is_plain(word.replace("\\\n", "")))
    read = read_shell_line(line)
    if not read.is_clear or len(read.commands) != 1 or any(UNKNOWN in word for word in read.commands[0].words):
        return
    run = subprocess.run([shell, "-c", line], capture_output=True, check=True, env={"PATH": os.defpath, "LC_ALL": "C"})
    expected = run.stdout.decode("utf-8").split("\0")[:-1]
    assert list(read.commands[0].words[2:]) == (expected if len(read.commands[0].words) > 2 else [])


TOKENS = st.sampled_from(
    [
        *("rm", "rm ", " ", " ", "\n", ";", ";", "&", "&&", "||", "|", "(", ")", "{ ", "}", "; }", "!", "! "),
        *("if ", "then ", "else ", "fi", "case a in ", "a) ", "*)", ";;", "esac", "for i in a; ", "do ", "done"),
        *("f() ", "f", "true", ":", "echo ", "eval ", "command ", "exec ", ". ", "trap ", "EXIT", "A=", "A=rm ", "$A"),
        *(
            "$(",
            "`",
            "'",
            '"',
            "\\",
            "\\\n",
            "${A:-",
            "${A",
            "$((",
            "))",
            "<<E",
            "<<-E",
            "<<'E'",
            "\nE\n",
            "E",
            "<",
            ">",
        ),
        *(">a ", "2>&1 ", "#", "=", "[", "]", "[[ ", " ]]", "$", "*", "?", "~", "{fd}", "function ", "<(", "&>", "<<<"),
        *(
            "timeout 5 ",
            "timeout -k 1 5 ",
            "nice ",
            "nice -n 5 ",
            "nice -5 ",
            "env ",
            "env A=1 ",
            "env -u A ",
            "env -S '",
        ),
        *("nohup ", "setsid ", "stdbuf -oL ", "xargs ", "xargs -n 1 ", "xargs -I{} ", "-- ", "- ", "-x ", "5 "),
        *("find . -exec ", " {} ", "\\;", "+", "sh -c ", "sh -c '", 'sh -ec "', "sh -s ", "sh ", "-c "),
        *("alias g=rm\n", "g", "set -- rm;", '"$@"', "$*", "$'", '$"', "r", "m", "x", "1", "coproc ", "time "),
    ]
)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an `rm` that only says that it ran, and with programs that start others."""
    folder = tmp_path_factory.mktemp("programs")
    for name in ("timeout", "nice", "env", "nohup", "setsid", "stdbuf", "xargs", "find", "sh"):
        if (path := shutil.which(name)) is not None:
            (folder / name).symlink_to(path)
    program = folder / "rm"
    program.write_text('#!/bin/sh\necho ran >> "$RAN"\n')
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize("shell", SHELLS)
@given(tokens=st.lists(TOKENS, min_size=1, max_size=14))
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_no_line_runs_a_program_that_the_reader_does_not_find(
    shell: str, tokens: list[str], programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Case 115: whatever the line, if the shell runs `rm`, a rule that denies `rm*` denies or asks."""
    line = "".join(tokens)
    if "rm" not in line and "r" not in tokens:
        return
    if fit_tightening(parse_command_pattern("rm*"), judge_command(line)) != "no":
        return
    folder = tmp_path_factory.mktemp("run")
    ran = folder.parent / f"{folder.name}.ran"
    environment = {"PATH": str(programs), "RAN": str(ran)}
    try:
        subprocess.run(
            [shell, "-c", line], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=20
        )
    except subprocess.TimeoutExpired:
        return
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    assert not ran.exists(), line
