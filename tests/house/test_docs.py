"""What the documents say is looked up: tables against the code, names against the files, links against the folders.

docs/features.md names a module and a test for each row; docs/recovery.md repeats the tables that the server decides
by; docs/protocol.md repeats bounds, errors and what is not built. A page that says otherwise fails here.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import attrs
import pytest

from steadyhand.core import attempt, reading_commands, record, recovery, words
from steadyhand_protocol import methods

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SERVER = ROOT / "server" / "steadyhand"
TESTS = ROOT / "tests"

# How many rows each part of the contract has; every id from 1 on stands in docs/features.md once.
COUNTS = (14, 8, 7, 2, 9, 8, 9, 5, 7, 3, 4, 2, 5, 5, 3, 1, 9, 3, 16)
ROWS = dict(zip("JCTNWBAFSKDUPERXGVI", COUNTS, strict=True))
STATES = {"built", "partly", "not built", "not run"}
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def table_after(page: str, heading: str) -> list[dict[str, str]]:
    """The first Markdown table below a heading, a row as column → cell, code marks taken off whole cells."""
    lines = page.split("\n")
    at = next(number for number, line in enumerate(lines) if line.lstrip("# ") == heading and line[:1] == "#")
    rows: list[list[str]] = []
    for line in lines[at + 1 :]:
        if line.startswith("|"):
            rows.append([_bare(cell) for cell in line.strip("|").split("|")])
        elif rows or line.startswith("#"):
            break
    assert len(rows) > 2, f"no table below {heading}"
    return [dict(zip(rows[0], cells, strict=True)) for cells in rows[2:]]


def _bare(cell: str) -> str:
    cell = cell.strip()
    whole = re.fullmatch(r"`([^`]*)`", cell)
    return whole[1] if whole else cell


def read(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


# --- docs/features.md ---------------------------------------------------------------------------------------


@attrs.frozen
class Row:
    """One row: `where` and `tests` are the names in code marks of their cells."""

    id: str
    state: str
    where: tuple[str, ...]
    tests: tuple[str, ...]
    gap: str


def rows_of(page: str) -> list[Row]:
    """Every row of a feature table: a line whose first cell is an id."""
    found: list[Row] = []
    for line in page.split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and re.fullmatch(r"[A-Z]\d+", cells[0]):
            assert len(cells) == 5, f"five cells: {line}"
            where, tests = (tuple(re.findall(r"`([^`]+)`", cell)) for cell in cells[2:4])
            found.append(Row(cells[0], cells[1], where, tests, cells[4]))
    return found


@cache
def feature_rows() -> tuple[Row, ...]:
    return tuple(rows_of(read("features.md")))


@cache
def docstrings() -> dict[str, str]:
    """`file::name` → docstring, of every test function; the file is named from `tests/` on."""
    found: dict[str, str] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                found[f"{path.relative_to(TESTS).as_posix()}::{node.name}"] = ast.get_docstring(node) or ""
    return found


def cites(docstring: str, id: str) -> bool:
    """Whether a docstring names a row; an invariant counts in brackets alone or beside others."""
    return re.search(rf"\b{id}\b", docstring) is not None


def missing_places(row: Row) -> Iterator[str]:
    """Modules and tests that a row names and nobody finds."""
    for place in row.where:
        if not any((folder / place).exists() for folder in (SERVER, ROOT)):
            yield f"{row.id}: no {place}"
    for test in row.tests:
        if "::" in test:
            if test not in docstrings():
                yield f"{row.id}: no test {test}"
        elif not (TESTS / test).exists():
            yield f"{row.id}: no {test}"


def unproved(row: Row) -> bool:
    """Whether a row says that it is built, and none of the tests it names says that it proves it."""
    named = [text for test, text in docstrings().items() if test in row.tests or test.split("::")[0] in row.tests]
    return row.state == "built" and not any(cites(text, row.id) for text in named)


def test_every_row_stands_once() -> None:
    """All ids are there, none twice, each with one of the four states."""
    ids = [row.id for row in feature_rows()]
    assert sorted(ids) == sorted(f"{part}{number}" for part, count in ROWS.items() for number in range(1, count + 1))
    assert {row.state for row in feature_rows()} <= STATES


def test_what_a_row_names_is_there() -> None:
    """Every module and every test that a row names exists."""
    assert [found for row in feature_rows() for found in missing_places(row)] == []


def test_what_is_built_is_proved() -> None:
    """A row that is built names a test whose docstring cites it."""
    assert [row.id for row in feature_rows() if unproved(row)] == []


def test_what_is_not_whole_says_what_is_missing() -> None:
    """A row that is not built, partly built or not run says so in a sentence, and a built one names its place."""
    assert [row.id for row in feature_rows() if row.state != "built" and len(row.gap) < 10] == []
    assert [row.id for row in feature_rows() if row.state in ("built", "partly") and not row.where] == []


def test_a_row_that_lies_is_seen() -> None:
    """A missing module, a missing test, and a test that proves something else are found."""
    lying = "| J1 | built | `core/nowhere.py` | `house/test_docs.py::test_of_nothing` | |"
    (row,) = rows_of(lying)
    assert list(missing_places(row)) == ["J1: no core/nowhere.py", "J1: no test house/test_docs.py::test_of_nothing"]
    assert unproved(row)
    (row,) = rows_of("| J1 | built | `core/ledger.py` | `core/test_scope.py` | |")
    assert list(missing_places(row)) == []
    assert unproved(row)


# --- docs/recovery.md ---------------------------------------------------------------------------------------

FLAGS: dict[str, "bool | str"] = {"yes": True, "no": False, "any": "any"}


def test_the_page_classifies_as_the_server_does() -> None:
    """The table of verdicts in docs/recovery.md is the one that recovery reads (C1, C2)."""
    written = [
        (
            ("proposed", "intent", "started") if row["reached"] == "any" else tuple(row["reached"].split(", ")),
            FLAGS[row["only reads"]],
            FLAGS[row["joint broken"]],
            FLAGS[row["reply readable"]],
            row["verdict"],
        )
        for row in table_after(read("recovery.md"), "The verdict")
    ]
    assert written == [(row.reached, row.reads, row.broken, row.replied, row.verdict) for row in recovery.CLASSIFY]


def test_the_page_settles_as_the_server_does() -> None:
    """The table of settlements in docs/recovery.md is the one that recovery reads (B3)."""
    written = [
        (
            tuple(None if word == "nothing to check" else word for word in row["check"].split(", ")),
            FLAGS[row["executor gone"]],
            FLAGS[row["made durable"]],
            row["recovery.settle"],
            None if row["settlement"] == "none" else row["settlement"],
        )
        for row in table_after(read("recovery.md"), "Settled by proof")
    ]
    assert written == [(row.check, row.executor_gone, row.durable, row.setting, row.settled) for row in recovery.SETTLE]


def test_the_page_names_states_as_the_server_does() -> None:
    """The words of the journal, their words on the wire, and which of them hold back (C6, B1)."""
    written = {
        row["in the journal"]: (row["on the wire"], row["holds back"])
        for row in table_after(read("recovery.md"), "The words for an end")
    }
    expected = {
        outcome: (
            words.state_of(outcome),
            "until settled" if outcome in attempt.UNCERTAIN_OUTCOMES else "no",
        )
        for outcome in get_args(record.Outcome)
    }
    assert written == expected


# --- docs/protocol.md ---------------------------------------------------------------------------------------


def test_the_page_names_the_bounds_of_the_code() -> None:
    """Each bound in docs/protocol.md has the number its module gives it [I13]."""
    rows = table_after(read("protocol.md"), "Bounds")
    assert len(rows) > 10
    for row in rows:
        module = importlib.import_module(row["module"])
        assert getattr(module, row["bound"]) == float(row["value"].replace(",", "")), row["bound"]


def test_the_page_lists_the_reading_commands() -> None:
    """B2: the documented list is the one that decides, word for word."""
    written = {
        tuple(row["command"].split()): {
            "letters": row["letters"],
            "options": set(row["options"].replace("`", "").split()),
            "numbers": set(row["with a number behind"].replace("`", "").split()),
            "texts": set(row["with any text behind"].replace("`", "").split()),
        }
        for row in table_after(read("protocol.md"), "Commands that only read")
    }
    assert written == {
        command: {
            "letters": options.letters,
            "options": set(options.words),
            "numbers": {*options.numbered, *options.number_follows},
            "texts": set(options.prefixes),
        }
        for command, options in reading_commands.LISTED.items()
    }


def test_the_page_names_the_errors_of_the_table() -> None:
    """Kinds and codes in docs/protocol.md are those of the wire."""
    rows = table_after(read("protocol.md"), "Errors")
    assert {row["kind"]: int(row["code"]) for row in rows} == dict(methods.ERRORS)


def test_the_page_names_what_is_not_built() -> None:
    """The methods and commands that docs/protocol.md calls not built are those of the table."""
    written = {row["name"] for row in table_after(read("protocol.md"), "Not built yet")}
    missing = {method.name for method in methods.METHODS if not method.built}
    missing |= {command.name for command in methods.COMMANDS if not command.built}
    assert written == missing


# --- docs/architecture.md -----------------------------------------------------------------------------------


def test_every_room_has_its_line() -> None:
    """Each module of the server is named among the rooms of docs/architecture.md, and no room that is not there."""
    page = read("architecture.md")
    rooms = page[page.index("\n## Rooms\n") : page.index("\n## Invariants\n")]
    for layer in ("core", "journal", "tools", "session", "edge", "adapters", "cli"):
        found = re.search(rf"^\*\*{layer}\*\*(.*?)(?:\n\n|\Z)", rooms, re.MULTILINE | re.DOTALL)
        assert found is not None, layer
        named = set(re.findall(r"`(\w+)`", found[1]))
        there = {path.stem for path in (SERVER / layer).glob("*.py")} - {"__init__"}
        assert there - named == set(), f"rooms of {layer} without a line"
        assert named - there == set(), f"lines of {layer} without a room"


# --- every page ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    """A link inside the house leads to a file or folder that is there."""
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_decision_is_whole_and_numbered() -> None:
    """Decisions are numbered from 1 without a gap, and say context, decision and consequence."""
    pages = sorted((DOCS / "decisions").glob("*.md"))
    assert [page.name[:5] for page in pages] == [f"{number:04d}-" for number in range(1, len(pages) + 1)]
    for page in pages:
        headings = re.findall(r"^## (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert headings == ["Context", "Decision", "Consequence"], page.name
