"""Reads the setting `files.encoding`: `[{match?, language?, encoding}]`, the first that fits (row W10).

It is no setting of the machine alone: the answer of `workspace/configuration` replaces the machine's list, because it
holds the user's own value too where the workspace sets none. An invalid entry is left out and named, and the others
hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steadyhand.config.sources import SettingSources, at, quoted
from steadyhand.domain.settings import EncodingRule
from steadyhand.domain.text.encodings import encoding_named
from steadyhand.domain.text.globs import BadPattern, glob

SETTING = "files.encoding"
RULES_MAX = 100
UNKNOWN = "names no encoding that the server knows"
MEMBERS = frozenset({"match", "language", "encoding"})


def read_encodings(sources: SettingSources, workspace: object) -> tuple[EncodingRule, ...]:
    """Return the rules; a clause for each invalid value goes into `sources.faults`. `workspace`: its answer, JSON."""
    of_workspace = SettingSources(
        [(lambda path: at(workspace, path) or None, lambda path: f"steadyhand.{path}")], sources.faults
    )
    expected = "a list of objects"
    given = of_workspace.take(SETTING, _is_list, expected, None)
    if given is None:
        given = sources.take(SETTING, _is_list, expected, [])
    rules: list[EncodingRule] = []
    for item in given[:RULES_MAX]:
        trouble = _trouble_of(item)
        if trouble is None:
            rules.append(EncodingRule(item["encoding"], item.get("match"), item.get("language")))
        else:
            sources.faults.append(f"an entry of steadyhand.{SETTING} {trouble}: {quoted(item)}{_advice(trouble)}")
    if len(given) > RULES_MAX:
        sources.faults.append(f"steadyhand.{SETTING} has more than {RULES_MAX} entries; the others are ignored")
    return tuple(rules)


def _advice(trouble: str) -> str:
    return ", use a name such as windows-1252 (docs/encodings.md)" if trouble == UNKNOWN else ""


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _trouble_of(item: Any) -> str | None:
    """Return why this is no rule, as a clause; None: it is one."""
    if not isinstance(item, Mapping):
        return "is not an object"
    if unknown := sorted(set(item) - MEMBERS):
        return f"has the unknown member {unknown[0]}"
    if not isinstance(item.get("encoding"), str) or encoding_named(item["encoding"]) is None:
        return UNKNOWN
    if not all(isinstance(item.get(name, ""), str) for name in ("match", "language")):
        return "has a member that is not a string"
    if "match" in item and isinstance(wanted := glob(item["match"]), BadPattern):
        return f"has a pattern that {wanted.why}"
    return None
