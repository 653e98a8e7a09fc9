"""The documents are compared with the code: tables, names of files and tests, and links.

docs/features.md names a requirement, a module and a test for each row, and docs/requirements.md has the requirement's
text. docs/recovery.md repeats the tables that the server decides by. docs/protocol.md repeats bounds, errors and the
unbuilt methods. A page that disagrees fails here.
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

from steadyhand.domain.ledger import attempt_states
from steadyhand.domain.permissions import readonly_commands
from steadyhand.domain.permissions.protected_paths import ALWAYS_ASKED_KINDS, PROTECTED_KINDS
from steadyhand.domain.permissions.secret_names import SECRET_KINDS
from steadyhand.domain.records import record
from steadyhand.domain.recovery import tables
from steadyhand.domain.views import sentences
from steadyhand_protocol import methods
from tests.support.markdown import sections, table_after

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SERVER = ROOT / "server" / "steadyhand"
TESTS = ROOT / "tests"

# The highest number of each part; every id from 1 on stands in docs/features.md once, but for the unused ones.
COUNTS = (14, 8, 7, 2, 12, 8, 10, 5, 11, 6, 4, 2, 7, 5, 3, 1, 15, 5, 7, 3, 16)
ROWS = dict(zip("JCTNWBAFSKDUPERXGVOMI", COUNTS, strict=True))
UNUSED = {"G12"}
IDS = {f"{part}{number}" for part, count in ROWS.items() for number in range(1, count + 1)} - UNUSED
STATES = {"built", "partly", "not built", "not run"}
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def read(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


# docs/features.md.


@attrs.frozen
class Row:
    """One row: `where` and `tests` are the names in code marks of their cells."""

    id: str
    anchor: str  # of its section in docs/requirements.md
    requirement: str  # one sentence
    state: str
    where: tuple[str, ...]
    tests: tuple[str, ...]
    gap: str


def rows_of(page: str) -> list[Row]:
    """Every row of a feature table: a line whose first cell is an id, linked to its requirement."""
    found: list[Row] = []
    for line in page.split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        first = re.fullmatch(r"\[([A-Z]\d+)\]\(requirements\.md#([\w-]+)\)", cells[0])
        if line.startswith("|") and first is not None:
            assert len(cells) == 6, f"six cells: {line}"
            where, tests = (tuple(re.findall(r"`([^`]+)`", cell)) for cell in cells[3:5])
            found.append(Row(first[1], first[2], cells[1], cells[2], where, tests, cells[5]))
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
    """The modules and tests that a row names and that do not exist."""
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
    """Whether a row says that it is built although no test that it names cites it."""
    named = [text for test, text in docstrings().items() if test in row.tests or test.split("::")[0] in row.tests]
    return row.state == "built" and not any(cites(text, row.id) for text in named)


def unexplained(row: Row, requirements: dict[str, str]) -> Iterator[str]:
    """What a row lacks to be understood: a sentence of its own, and a section (anchor → text) under its id."""
    if not re.fullmatch(r"\S.{14,}\.", row.requirement):
        yield f"{row.id}: no sentence"
    if not row.anchor.startswith(f"{row.id.lower()}-") or len(requirements.get(row.anchor, "").strip()) < 40:
        yield f"{row.id}: no requirement at {row.anchor}"


def test_features_lists_every_row_once_with_a_known_state() -> None:
    """All ids are present, none twice, each with one of the four states."""
    ids = [row.id for row in feature_rows()]
    assert sorted(ids) == sorted(IDS)
    assert {row.state for row in feature_rows()} <= STATES


def test_features_every_row_has_its_requirement() -> None:
    """Each row says in a sentence what it asks for, and links to a section of docs/requirements.md with its text."""
    requirements = sections(read("requirements.md"))
    assert [found for row in feature_rows() for found in unexplained(row, requirements)] == []


def test_requirements_every_section_has_its_row() -> None:
    """No section of docs/requirements.md has an id that docs/features.md lacks, and none occurs twice."""
    named = re.findall(r"^### ([A-Z]\d+)\.", read("requirements.md"), re.MULTILINE)
    assert sorted(named) == sorted(IDS)


def test_features_check_finds_a_row_without_its_requirement() -> None:
    """A missing sentence, a missing section, an empty one and another row's section are found."""
    requirements = {"j1-one": "The journal is the only truth about a session.", "j2-two": " "}
    (row,) = rows_of("| [J1](requirements.md#j1-one) | The journal is the only truth. | built | | | |")
    assert list(unexplained(row, requirements)) == []
    (row,) = rows_of("| [J2](requirements.md#j2-two) | | built | | | |")
    assert list(unexplained(row, requirements)) == ["J2: no sentence", "J2: no requirement at j2-two"]
    (row,) = rows_of("| [J3](requirements.md#j1-one) | The journal is the only truth. | built | | | |")
    assert list(unexplained(row, requirements)) == ["J3: no requirement at j1-one"]
    assert list(unexplained(row, {})) == ["J3: no requirement at j1-one"]


def test_features_every_named_module_and_test_exists() -> None:
    """Every module and every test that a row names exists."""
    assert [found for row in feature_rows() for found in missing_places(row)] == []


def test_features_every_built_row_is_cited_by_a_test_it_names() -> None:
    """A built row names a test whose docstring cites it."""
    assert [row.id for row in feature_rows() if unproved(row)] == []


def test_features_incomplete_rows_say_what_is_missing() -> None:
    """A row that is not built, partly built or not run says so in a sentence. A built or partly built one names its
    module.
    """
    assert [row.id for row in feature_rows() if row.state != "built" and len(row.gap) < 10] == []
    assert [row.id for row in feature_rows() if row.state in ("built", "partly") and not row.where] == []


def test_features_check_finds_a_wrong_row() -> None:
    """The check finds a missing module, a missing test, and a test that proves something else."""
    first = "| [J1](requirements.md#j1) | One journal. | built |"
    (row,) = rows_of(f"{first} `core/nowhere.py` | `architecture/test_docs.py::test_of_nothing` | |")
    assert list(missing_places(row)) == [
        "J1: no core/nowhere.py",
        "J1: no test architecture/test_docs.py::test_of_nothing",
    ]
    assert unproved(row)
    (row,) = rows_of(f"{first} `domain/ledger/ledger.py` | `domain/records/test_scope.py` | |")
    assert list(missing_places(row)) == []
    assert unproved(row)


# docs/recovery.md.

FLAGS: dict[str, "bool | str"] = {"yes": True, "no": False, "any": "any"}


def test_recovery_page_verdict_table_equals_the_classify_table() -> None:
    """The table of verdicts in docs/recovery.md is the one that recovery uses (C1, C2)."""
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
    assert written == [(row.reached, row.reads, row.broken, row.replied, row.verdict) for row in tables.CLASSIFY]


def test_recovery_page_settlement_table_equals_the_settle_table() -> None:
    """The table of settlements in docs/recovery.md is the one that recovery uses (B3)."""
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
    assert written == [(row.check, row.executor_gone, row.durable, row.setting, row.settled) for row in tables.SETTLE]


def test_recovery_page_outcome_table_equals_the_server_states() -> None:
    """The outcomes in the journal, their names on the wire, and which of them hold calls back (C6, B1)."""
    written = {
        row["in the journal"]: (row["on the wire"], row["holds back"])
        for row in table_after(read("recovery.md"), "The words for an end")
    }
    expected = {
        outcome: (
            sentences.state_of(outcome),
            "until settled" if outcome in attempt_states.UNCERTAIN_OUTCOMES else "no",
        )
        for outcome in get_args(record.Outcome)
    }
    assert written == expected


# docs/protocol.md.


def test_protocol_page_bounds_equal_the_constants() -> None:
    """Each bound in docs/protocol.md has the number that its module defines [I13]."""
    rows = table_after(read("protocol.md"), "Bounds")
    assert len(rows) > 10
    for row in rows:
        module = importlib.import_module(row["module"])
        assert getattr(module, row["bound"]) == float(row["value"].replace(",", "")), row["bound"]


def _names_by_kind(heading: str) -> dict[str, list[str]]:
    return {row["kind"]: row["names"].replace("`", "").split() for row in table_after(read("protocol.md"), heading)}


def test_protocol_page_lists_exactly_the_protected_and_secret_names() -> None:
    """Cases 137 and 145: the documented lists are those that decide, name by name."""
    assert _names_by_kind("Protected names") == {kind: text.split() for kind, text in PROTECTED_KINDS.items()}
    assert _names_by_kind("Secret names") == {kind: text.split() for kind, text in SECRET_KINDS.items()}
    rows = table_after(read("protocol.md"), "Protected names")
    assert {row["kind"] for row in rows if row["a rule can allow"] == "no"} == ALWAYS_ASKED_KINDS


def test_protocol_page_lists_exactly_the_reading_commands() -> None:
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
        for command, options in readonly_commands.LISTED.items()
    }


def test_protocol_page_lists_the_forms_that_the_server_answers() -> None:
    """O2: the page has the forms that the server answers itself, in their order, and no other."""
    page = " ".join(read("protocol.md").split())
    forms = " · ".join(f"`{form}`" for form in readonly_commands.ANSWERED_FORMS)
    assert f"starts nothing: {forms}, where FILE is a readable regular file" in page


def test_protocol_page_errors_equal_the_wire_errors() -> None:
    """Kinds and codes in docs/protocol.md are those of the wire."""
    rows = table_after(read("protocol.md"), "Errors")
    assert {row["kind"]: int(row["code"]) for row in rows} == dict(methods.ERRORS)


def test_protocol_page_unbuilt_list_equals_the_method_table() -> None:
    """The methods and commands that docs/protocol.md calls not built are those of the table."""
    page = read("protocol.md")
    is_empty = "\nEvery method and command of the tables above is built.\n" in page
    written = set() if is_empty else {row["name"] for row in table_after(page, "Not built yet")}
    missing = {method.name for method in methods.METHODS if not method.built}
    missing |= {command.name for command in methods.COMMANDS if not command.built}
    assert written == missing


# docs/architecture.md.


def test_architecture_page_lists_every_server_package() -> None:
    """docs/architecture.md lists every package of the server with a sentence, and no package that is not there."""
    named = [row["package"] for row in table_after(read("architecture.md"), "Packages")]
    there = {path.parent.relative_to(SERVER).as_posix() for path in SERVER.rglob("__init__.py")} - {"."}
    assert sorted(named) == sorted(there)


def test_package_docstrings_say_promise_limits_and_exports() -> None:
    """Every package's `__init__` says what the package promises, does not know and exports, and holds no code."""
    for path in SERVER.rglob("__init__.py"):
        if path.parent == SERVER:
            continue
        module = ast.parse(path.read_text(encoding="utf-8"))
        text = ast.get_docstring(module) or ""
        assert len(module.body) == 1, f"{path} has code"
        assert "Does not know:" in text, path
        assert "Exports:" in text, path


# The tests' tree.

SUITES = {
    "architecture",
    "bench",
    "crash",
    "demo",
    "e2e",
    "editors",
    "models",
    "prove",
    "realmodel",
    "scenarios",
    "hostile",
    "support",
}
"""Folders of tests/ that cross the packages; all others have the name of what they test."""


def test_tests_tree_mirrors_the_packages() -> None:
    """Each folder of tests has the name of a package (or of a wire package), or is a suite across packages."""
    folders = {path.parent.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")}
    mirrored = {folder for folder in folders if folder.split("/")[0] not in SUITES}
    assert len(mirrored) > 20
    unknown = {
        folder for folder in mirrored if folder != "protocol" and not (SERVER / folder / "__init__.py").is_file()
    }
    assert unknown == set()


# Every page.


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_docs_relative_links_point_to_existing_files(page: Path) -> None:
    """A link inside the repository leads to an existing file or folder."""
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_decisions_are_numbered_once_and_complete() -> None:
    """Each decision has a number of its own, a context, a decision and a consequence."""
    pages = sorted((DOCS / "decisions").glob("*.md"))
    assert all(re.match(r"\d{4}-", page.name) for page in pages)
    assert len({page.name[:4] for page in pages}) == len(pages)
    for page in pages:
        headings = re.findall(r"^## (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert headings == ["Context", "Decision", "Consequence"], page.name
