"""The name of the program that a command line runs, for titles: arguments may hold what a list should not show."""

from __future__ import annotations

import re

from steadyhand_values import pattern

SHELL = "sh"
"""The name for a command that is more than one program with arguments."""
_SHELL_WORDS = frozenset(
    {".", "alias", "case", "eval", "export", "for", "function", "if", "select", "set", "source", "trap", "umask"}
    | {"unset", "until", "while"}
)
_PREFIX_WORDS = frozenset({"builtin", "command", "exec", "nohup", "time"})
_LEADING_CD = pattern(r"\s*cd\s+[\w./+-]+\s*(?:&&|;)\s*")


def program_name(command: str) -> str:
    """Return the name of the program if the words show it plainly; else the shell's, which runs it."""
    for word in command[found.end() if (found := _LEADING_CD.match(command)) else 0 :].split():
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*=[^'\"$`\\(]*", word) or word in _PREFIX_WORDS:
            continue  # an assignment before the program; its value may be secret
        name = word.rstrip("/").rpartition("/")[2] if re.fullmatch(r"[\w./+-]+", word) else ""
        return SHELL if name in _SHELL_WORDS or not name.lstrip("._")[:1].isalnum() else name
    return SHELL
