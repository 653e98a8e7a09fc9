"""No decision compares wall-clock times: order comes from the journals and from the process (F3, case 166).

A comparison is found by the names that times have here. What is only shown, or a hint that says so, is listed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.test_conventions import ROOT, location, python_files, syntax_tree

SERVER = ROOT / "server" / "steadyhand"
TIMES = frozenset(
    {"at", "started_at", "result_at", "inspection_at", "settled_at", "updated", "created", "since", "ended_at"}
)
PARSERS = frozenset({"strptime", "fromisoformat", "fromtimestamp"})
ORDERING = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
SORTERS = frozenset({"sorted", "sort", "min", "max"})
PERMITTED = {
    "session/service/registry.py": "the list of sessions is shown newest first",
    "session/service/startup_scan.py": "of more unsettled sessions than are opened, the newest are taken (row A8)",
    "session/service/retention.py": "two starts 7 days apart by the clock remove a content (row K6)",
    "domain/views/statistics.py": "how long a doubt lasted is shown to people and decides nothing (row A10)",
    "session/inspection/inspect.py": "files changed since a command's start are a hint, by modification time (row A4)",
}


def is_time(node: ast.AST) -> bool:
    """Whether it reads a time of a record, a session or a lock, or the clock. `self.at` is a position in a text."""
    if isinstance(node, ast.Call):
        return called_name(node) == "now"
    if not isinstance(node, ast.Attribute) or node.attr not in TIMES:
        return False
    return not (node.attr == "at" and isinstance(node.value, ast.Name) and node.value.id == "self")


def names_a_time(node: ast.AST) -> bool:
    """Whether a time is read anywhere in the expression."""
    return any(is_time(part) for part in ast.walk(node))


def called_name(call: ast.Call) -> str:
    called = call.func
    return called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""


def comparisons_of_times(tree: ast.Module) -> Iterator[int]:
    """The lines that order times, or turn a time into a number."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(isinstance(op, ORDERING) for op in node.ops) and names_a_time(node):
            yield node.lineno
        if isinstance(node, ast.Call) and called_name(node) in PARSERS:
            yield node.lineno
        if isinstance(node, ast.Call) and called_name(node) in SORTERS and names_a_time(node):
            yield node.lineno


def modules_that_compare_times() -> dict[str, list[int]]:
    files = python_files(*(SERVER / name for name in ("domain", "journal", "tools", "session", "lsp", "cli")))
    found = {location(path): list(comparisons_of_times(syntax_tree(path))) for path in files}
    return {name.removeprefix("server/steadyhand/"): lines for name, lines in found.items() if lines}


def test_only_permitted_modules_compare_times() -> None:
    """Case 166, F3: a new comparison of times fails here; a permission without a comparison fails too."""
    found = modules_that_compare_times()
    assert {name: lines for name, lines in found.items() if name not in PERMITTED} == {}
    assert set(PERMITTED) <= set(found), "a permission that nothing needs"


def test_comparison_of_times_is_found() -> None:
    """The rule sees each form that a comparison of times can take here."""
    forms = [
        "one.started_at >= begun",
        "sorted(found, key=lambda pair: pair[1].started_at or pair[1].at)",
        "max(attempt.result_at for attempt in attempts)",
        "found.sort(key=lambda view: view.updated)",
        "datetime.strptime(at, '%Y')",
        "clock.now() < limit",
    ]
    for form in forms:
        assert list(comparisons_of_times(ast.parse(form))) == [1], form
    for form in ("view.updated == other.updated", "sorted(names)", "self.at >= len(self.text)"):
        assert list(comparisons_of_times(ast.parse(form))) == [], form
