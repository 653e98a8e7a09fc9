"""The one value of git's configuration that the server needs: the user's own ignore file (case 129).

Included files are not read, so a value that stands only there is not found.
"""

from __future__ import annotations

from steadyhand_values import pattern

_SECTION = pattern(r'\s*\[\s*([A-Za-z0-9.-]+)\s*("(?:[^"\\]|\\.)*")?\s*\]')
_VALUE = pattern(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*=\s*(.*)")
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}


def excludes_file(config: str) -> str | None:
    """Return the last value of excludesFile in section core; None if the text has none."""
    found: str | None = None
    section = ""
    for line in config.replace("\\\n", "").split("\n"):
        rest = line.removesuffix("\r")
        head = _SECTION.match(rest)
        if head is not None:
            section = "" if head[2] else head[1].lower()
            rest = rest[head.end() :]
        value = _VALUE.match(rest)
        if value is not None and section == "core" and value[1].lower() == "excludesfile":
            found = _unquoted(value[2])
    return found


def _unquoted(text: str) -> str:
    """Return a value without quotes, comments and the blanks around it."""
    value, is_quoted, kept = "", False, 0
    characters = iter(text)
    for character in characters:
        if character == '"':
            is_quoted = not is_quoted
        elif character == "\\":
            escaped = next(characters, "")
            value += _ESCAPES.get(escaped, escaped)
            kept = len(value)
            continue
        elif character in "#;" and not is_quoted:
            break
        else:
            value += character
        if is_quoted or not character.isspace():
            kept = len(value)
    return value[:kept]
