"""Which commands a command starts: wrappers such as `timeout` and `sudo`, shells, `xargs`, `find` (case 115).

`STARTERS` has one row for each program whose words are known: the options that take a value, the operands before the
command, and whether the rest is words or a shell's text. What the row does not explain makes the answer unclear, and
then every word behind may begin a command. Any other program may also start one that it names; `NAMES_NO_COMMAND` has
those of which that is not to be expected. Deliberately absent: what a program does by itself, and scripts in files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from steadyhand.domain.shell.sink import UNKNOWN
from steadyhand_values import frozen, pattern

_ASSIGNMENT = pattern(r"[A-Za-z_][A-Za-z0-9_]*=.*")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


@frozen
class Starter:
    """The words of one program that starts another.

    The letters are one-letter options; `long` are the long options whose value is the next word, without `--`.
    """

    flags: str = ""
    valued: str = ""  # the value is joined or the next word
    joined: str = ""  # a value can only be joined
    text: str = ""  # the value is a shell's text
    long: tuple[str, ...] = ()
    long_flags: tuple[str, ...] = ()
    long_text: tuple[str, ...] = ()
    operands: int = 0  # before the command
    assigns: bool = False  # NAME=value may stand before the command
    is_text: bool = False  # the rest, joined by blanks, is a shell's text
    appends: bool = False  # words that are not shown follow the command's own
    until: str = ""  # a word that ends the command
    shows: str = ""  # with one of these letters nothing is started
    bare_dash: bool = False  # `-` is an option


_WRAPPER = Starter()
SHELLS = frozenset({"sh", "bash", "dash", "ksh", "mksh", "zsh", "ash", "rbash", "fish", "yash"})

STARTERS: Mapping[str, Starter] = {
    "builtin": _WRAPPER,
    "busybox": _WRAPPER,
    "catchsegv": _WRAPPER,
    "chroot": Starter(long=("groups", "userspec"), long_flags=("skip-chdir",), operands=1),
    "chronic": Starter(flags="ev"),
    "chrt": Starter(flags="abdfior", valued="TPD", operands=1),
    "command": Starter(flags="p", shows="vV"),
    "dbus-run-session": Starter(long=("config-file", "dbus-daemon")),
    "doas": Starter(flags="Lns", valued="uC"),
    "env": Starter(
        flags="0iv",
        valued="uC",
        text="S",
        long=("unset", "chdir"),
        long_flags=("ignore-environment", "null", "debug"),
        long_text=("split-string",),
        assigns=True,
        bare_dash=True,
    ),
    "eval": Starter(is_text=True),
    "exec": Starter(flags="cl", valued="a"),
    "fakeroot": Starter(valued="lsib", long_flags=("unknown-is-real",)),
    "flock": Starter(
        flags="senuxoFv",
        valued="wE",
        text="c",
        long=("timeout", "wait", "conflict-exit-code"),
        long_flags=("shared", "exclusive", "nonblock", "nb", "unlock", "close", "no-fork", "verbose"),
        long_text=("command",),
        operands=1,
    ),
    "ionice": Starter(flags="t", valued="cnpPu", long=("class", "classdata"), long_flags=("ignore",)),
    "linux32": _WRAPPER,
    "linux64": _WRAPPER,
    "ltrace": Starter(flags="bcCfhirStTLV", valued="aAdDeFlnosuwxp"),
    "nice": Starter(valued="n", flags="0123456789", long=("adjustment",)),
    "nohup": _WRAPPER,
    "numactl": Starter(long_flags=("all", "hardware", "show", "localalloc"), valued="imNCp", flags="alsH"),
    "parallel": Starter(
        flags="0kmXtqu",
        valued="jIaSNLPn",
        long=("jobs", "max-procs", "arg-file", "sshlogin", "delay", "timeout", "max-args", "joblog", "retries"),
        long_flags=("keep-order", "dry-run", "verbose", "bar", "progress", "eta", "null", "pipe", "group", "ungroup"),
        is_text=True,
        appends=True,
        until=":::",
    ),
    "script": Starter(
        flags="aefqV", valued="BEIOTmot", text="c", long_text=("command",), long_flags=("quiet", "append", "return")
    ),
    "setarch": Starter(flags="3BFILRSTXZv", operands=1),
    "setpriv": Starter(long_flags=("no-new-privs", "clear-groups", "keep-groups", "init-groups", "reset-env")),
    "setsid": Starter(flags="cfw", long_flags=("ctty", "fork", "wait")),
    "ssh": Starter(flags="46AaCfGgKkMNnqsTtVvXxYy", valued="BbcDEeFIiJLlmOPpQRSWw", operands=1, is_text=True),
    "stdbuf": Starter(valued="ioe", long=("input", "output", "error")),
    "strace": Starter(flags="cCdfhikqrtTvVxyFwzZDYn", valued="abeEIoOpPsSuUX"),
    "su": Starter(
        flags="lfmpP",
        valued="gGsw",
        text="c",
        operands=1,
        long=("group", "shell"),
        long_flags=("login", "preserve-environment"),
        long_text=("command", "session-command"),
        bare_dash=True,
    ),
    "sudo": Starter(
        flags="ABbEeHiKklNnPSsVv",
        valued="CDgpRrTtUuh",
        long=("user", "group", "prompt", "chdir", "chroot", "host", "role", "type", "other-user", "close-from"),
        long_flags=("non-interactive", "preserve-env", "login", "shell", "stdin", "background", "set-home", "askpass"),
        assigns=True,
    ),
    "taskset": Starter(flags="ac", long_flags=("all-tasks", "cpu-list"), operands=1),
    "time": Starter(flags="apqvV", valued="fo", long=("format", "output"), long_flags=("append", "portability")),
    "timeout": Starter(
        flags="vpf",
        valued="ks",
        long=("kill-after", "signal"),
        long_flags=("foreground", "preserve-status"),
        operands=1,
    ),
    "toybox": _WRAPPER,
    "unbuffer": Starter(flags="p"),
    "unshare": Starter(flags="fimnprUCTc", valued="RSGw", joined="imnpuUCTr"),
    "watch": Starter(
        flags="bcCegprtwx",
        valued="nqs",
        joined="d",
        long=("interval", "equexit"),
        long_flags=("beep", "color", "errexit", "chgexit", "differences", "precise", "no-title", "no-wrap", "exec"),
        is_text=True,
    ),
    "xargs": Starter(
        flags="0oprtx",
        valued="adEILnPsS",
        joined="eil",
        long=("arg-file", "delimiter", "max-lines", "max-args", "max-procs", "max-chars", "replace"),
        long_flags=("null", "no-run-if-empty", "verbose", "interactive", "open-tty", "exit"),
        appends=True,
    ),
    "xvfb-run": Starter(
        flags="al", valued="efnpsw", long=("server-args", "server-num"), long_flags=("auto-servernum",)
    ),
}

NAMES_NO_COMMAND = _names(
    ": . [ alias basename break cat cd chgrp chmod chown cksum cmp comm continue cp cut date df diff dirname du echo"
    " egrep exit expr export false fgrep file fold grep head hash hostname id install join kill ln local ls md5sum"
    " mkdir mkfifo mktemp mv nl od paste pgrep printf ps pwd read readlink readonly realpath return rm rmdir seq set"
    " sha256sum shift shred sleep source split stat sum tail tee test touch tr true truncate tsort tty type ulimit"
    " umask unalias uname unexpand uniq unlink unset wait wc whereis which whoami yes"
)
"""Programs and built-in commands whose words name no command that they start."""

RUNS_CODE = pattern(
    r"(python|perl|ruby|node|nodejs|php|lua|[gm]?awk|deno|bun|tclsh|expect|osascript|vim?|ed|sed)[0-9.]*"
)
"""Programs whose words may be code of another language, in which any name may be a program."""

HAS_SUBCOMMANDS = _names("apt apt-get brew cargo docker dnf gh git go hg npm pip pip3 pnpm svn yarn")
"""Programs whose first operand is a command of their own, not a program."""

_GIT_STARTS_NONE = _names(
    "add branch checkout cherry-pick commit diff init log merge mv notes reset restore revert rm show stash status"
    " switch tag"
)
_FIND_STARTS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_GIT_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix"})
_SPECIAL = frozenset({"find", "trap", ".", "source", "alias"})
_STANDARD_INPUT = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})


@frozen
class Started:
    """What a command starts. `commands`: by words; `texts`: by a shell's text; not `is_clear`: perhaps more."""

    commands: tuple[tuple[str, ...], ...] = ()
    texts: tuple[str, ...] = ()
    is_clear: bool = True


def program_of(word: str) -> str:
    """Return the name of a program without its folder."""
    return word.rpartition("/")[2]


def starts_others(words: Sequence[str]) -> bool:
    """Return whether the program is known to start a command that its words name."""
    program = program_of(words[0])
    return program in STARTERS or program in SHELLS or program in _SPECIAL


def reads_commands(words: Sequence[str]) -> bool:
    """Return whether the command is a shell that reads commands from its input."""
    if program_of(words[0]) not in SHELLS:
        return False
    started = _started_by_shell(list(words), ())
    return not started.is_clear and not started.texts


def started_by(words: Sequence[str], input_texts: Sequence[str] = ()) -> Started | None:
    """Return what a command starts; None: its program is in no row. `words` is not empty."""
    words = list(words)
    program = program_of(words[0])
    if program in SHELLS:
        return _started_by_shell(words, input_texts)
    if program == "find":
        return _started_by_find(words)
    if program == "trap":
        rest = words[2:] if words[1:2] == ["--"] else words[1:]
        return Started(texts=tuple(rest[:1]) if len(rest) > 1 else ())
    if program in (".", "source") and len(words) > 1:
        if words[1] in _STANDARD_INPUT:
            return Started(texts=tuple(input_texts), is_clear=bool(input_texts))
        return Started((tuple(words[1:]),))  # the file may be found like a program
    if program == "alias":
        return Started(is_clear=len(words) == 1)
    row = STARTERS.get(program)
    return None if row is None else _started_by_row(row, words)


def names_no_command(words: Sequence[str]) -> bool:
    """Return whether no word of the command is expected to be a command that it starts."""
    program = program_of(words[0])
    if program == "git":  # its options before the subcommand may name programs
        return len(words) > 1 and words[1] in _GIT_STARTS_NONE
    return program in NAMES_NO_COMMAND


def without_leading_options(words: Sequence[str]) -> tuple[str, ...] | None:
    """Return a command of git without the options before its subcommand; None for other commands, or without any."""
    if not words or program_of(words[0]) != "git":
        return None
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _GIT_VALUED else 1
    return ("git", *words[at:]) if at > 1 else None


def _started_by_shell(words: Sequence[str], input_texts: Sequence[str]) -> Started:
    """A shell runs the text behind `-c`, else a file, else what it reads."""
    has_text = False
    at = 1
    while at < len(words) and words[at][:1] in ("-", "+") and words[at] not in ("-", "--"):
        word = words[at]
        at += 1
        if UNKNOWN in word:
            return Started(is_clear=False)
        if word.startswith("--"):
            at += word in ("--rcfile", "--init-file")
            continue
        has_text = has_text or (word[0] == "-" and "c" in word)
        at += "o" in word or "O" in word
    if at < len(words) and words[at] in ("-", "--"):
        at += 1
    rest = words[at:]
    if has_text:
        return Started(texts=tuple(rest[:1]))
    if rest and rest[0] not in _STANDARD_INPUT and UNKNOWN not in rest[0]:
        return Started()
    return Started(texts=tuple(input_texts), is_clear=bool(input_texts))


def _started_by_find(words: Sequence[str]) -> Started:
    commands: list[tuple[str, ...]] = []
    at = 1
    while at < len(words):
        if words[at] in _FIND_STARTS:
            end = at + 1
            while end < len(words) and words[end] not in (";", "+"):
                end += 1
            commands.append((*words[at + 1 : end], UNKNOWN))
            at = end
        at += 1
    return Started(
        tuple(one for one in commands if len(one) > 1), is_clear=not any(UNKNOWN in word for word in words[1:])
    )


def _started_by_row(row: Starter, words: Sequence[str]) -> Started:
    at, texts, is_clear = _skip_options(row, words)
    if at < 0:
        return Started()
    rest = list(words[at:])
    if row.operands and not texts:
        rest = rest[row.operands :]
        if rest[:1] and rest[0].startswith("-"):  # flock FILE -c TEXT
            at, texts, clear = _skip_options(row, ["", *rest])
            is_clear, rest = is_clear and clear, rest[at - 1 :]
    if texts:
        rest = []
    if row.until and row.until in rest:
        rest = rest[: rest.index(row.until)]
    if row.appends and rest:
        rest.append(UNKNOWN)
    if row.is_text and rest:
        texts.append(" ".join(rest))
        rest = []
    return Started((tuple(rest),) if rest else (), tuple(texts), is_clear)


def _skip_options(row: Starter, words: Sequence[str]) -> tuple[int, list[str], bool]:
    """Return the place behind the options, the texts among them, and whether all are known. -1: nothing is started."""
    texts: list[str] = []
    is_clear = True
    at = 1
    while at < len(words):
        word = words[at]
        if row.assigns and _ASSIGNMENT.fullmatch(word):
            at += 1
            continue
        if word == "-" and row.bare_dash:
            at += 1
            continue
        if not word.startswith("-") or word == "-":
            return at, texts, is_clear and not word.startswith(UNKNOWN)
        at += 1
        if word == "--":
            while row.assigns and at < len(words) and _ASSIGNMENT.fullmatch(words[at]):
                at += 1
            return at, texts, is_clear
        if UNKNOWN in word:
            is_clear = False
        elif word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            if name in row.long_text:
                texts.append(value if equals else "".join(words[at : at + 1]))
            elif name not in (*row.long, *row.long_flags) and not equals:
                is_clear = False  # it may take the next word
            at += not equals and (name in row.long or name in row.long_text)
        else:
            letter_at = next((k for k in range(1, len(word)) if word[k] not in row.flags), len(word))
            letter, value = word[letter_at : letter_at + 1], word[letter_at + 1 :]
            if letter and letter in row.shows:
                return -1, [], True
            if letter and letter in row.text:
                texts.append(value or "".join(words[at : at + 1]))
            is_clear = is_clear and (not letter or letter in row.valued + row.joined + row.text)
            at += bool(letter) and not value and letter in row.valued + row.text
    return at, texts, is_clear
