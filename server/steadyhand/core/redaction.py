"""Command lines fit to be shown and recorded: what looks like a credential is taken out (row E2).

For the lines of processes that were found, which nobody wrote for us to keep: `NAME=value` and `--name value` with the
name of a credential, and any word that holds a known form of one (`core.environment`). It errs towards taking out. What
a tool writes and what the model sent is never passed through here.
"""

from __future__ import annotations

from steadyhand.core.environment import credential_values, looks_like_credential

TAKEN_OUT = "***"


def redacted_command(line: str) -> str:
    """The line with single blanks between its words, the words of credentials replaced."""
    shown: list[str] = []
    hidden_next = False
    for word in _without_known_forms(line).split():
        name, equals, value = word.partition("=")
        name = name.lstrip("-")
        if hidden_next:
            shown.append(TAKEN_OUT)
            hidden_next = False
        elif equals and name and looks_like_credential(name, value):
            shown.append(word[: len(word) - len(value)] + TAKEN_OUT)
        else:
            shown.append(word)
            hidden_next = not equals and word.startswith("--") and looks_like_credential(name, "x")
    return " ".join(shown)


def _without_known_forms(line: str) -> str:
    """A known form is recognised by its beginning; the word it ends in goes with it."""
    kept: list[str] = []
    at = 0
    for found in credential_values.finditer(line):
        if found.start() < at:
            continue
        start = max(line.rfind(" ", 0, found.start()) + 1, at)
        end = line.find(" ", found.end())
        kept += [line[at:start], TAKEN_OUT]
        at = end if end >= 0 else len(line)
    return "".join(kept) + line[at:]
