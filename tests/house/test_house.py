"""Rules of the house that no linter knows.

The top level is fixed, names say what a thing is, the core only computes, tests say what they prove, every
invariant is proved or admitted as not built, and no file tells of the machine it was written on.
"""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.tools import require_tool

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "server" / "steadyhand" / "core"

TOP_LEVEL = {
    *("pyproject.toml", "README.md", "LICENSE", "server", "protocol", "editor-client", "tests", "docs"),
    *("Makefile", ".ci", ".gitignore", "requirements.lock", "requirements-dev.lock"),
    "requirements-realmodel.lock",
}
TESTED = ("core", "journal", "session", "scenarios", "crash", "e2e", "house")
INVARIANTS = {f"I{number}" for number in range(1, 17)}

# Words that stand where a name should. `process` is a thing here (a child), never a verb.
BANNED = {"manager", "handler", "helper", "util", "common", "misc", "base", "data", "info"}
BANNED |= {f"{word}s" for word in BANNED}

# Written in pieces, or this file would break its own rule. A path counts where it begins, not inside another.
MACHINE_PATHS = re.compile(r"(?<![\w.-])/(?:" + "|".join(("root", "work", "tmp/v")) + r")/")
PACKAGE_HOSTS = re.compile(
    r"\b(?:" + "|".join(("pypi", "pythonhosted", "npmjs", "yarnpkg", "rubygems", "crates")) + r")\.(?:org|com|io)\b"
)


@cache
def house_files() -> tuple[Path, ...]:
    """Every file git tracks, or would if it were added."""
    listed = subprocess.run(
        [require_tool("git"), "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout: what belongs to the house is not known")
    files = (ROOT / name for name in listed.stdout.decode().split("\0") if name)
    return tuple(file for file in files if file.is_file())


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of one file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def python_files(*folders: Path) -> list[Path]:
    """All modules below some folders, in order."""
    return sorted(file for folder in folders for file in folder.rglob("*.py"))


def place(path: Path, line: int | None = None) -> str:
    """Where something is, as an editor can open it."""
    return str(path.relative_to(ROOT)) + (f":{line}" if line else "")


def words(name: str) -> list[str]:
    """The words of a name, in either case: `ToolRecovery` and `tool_recovery` have the same two."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def poor_name(name: str, *, function: bool = False) -> bool:
    """Whether a name holds a banned word, or is a function that processes."""
    parts = words(name)
    return bool(BANNED.intersection(parts)) or (function and parts[:1] == ["process"])


def poor_names(path: Path, tree: ast.Module) -> Iterator[str]:
    """The module, classes and functions of one file whose names say nothing."""
    if poor_name(path.stem):
        yield place(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and poor_name(node.name):
            yield f"{place(path, node.lineno)} {node.name}"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and poor_name(node.name, function=True):
            yield f"{place(path, node.lineno)} {node.name}"


ACTING_CALLS = {"open", "input", "print", "exec", "eval", "__import__", "breakpoint"}
CLOCK_CALLS = {"now", "utcnow", "today"}
ASYNCHRONOUS = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)


def acts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Each place where a module does more than compute: (line, what it does). test_layers sees imports."""
    for node in ast.walk(tree):
        if isinstance(node, ASYNCHRONOUS):
            yield node.lineno, type(node).__name__
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id in ACTING_CALLS:
                yield node.lineno, f"{called.id}()"
            if isinstance(called, ast.Attribute) and called.attr in CLOCK_CALLS:
                yield node.lineno, f".{called.attr}()"


def all_tests() -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every test function of the house."""
    for path in python_files(*(ROOT / "tests" / folder for folder in TESTED)):
        if path.name.startswith("test_"):
            for node in ast.walk(parsed(path)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                    yield path, node


def cited_in(text: str) -> set[str]:
    """The invariants a text cites, as `[I3]` or `[I3, I5]`."""
    groups = re.findall(r"\[(I\d+(?:,\s*I\d+)*)\]", text)
    return {name.strip() for group in groups for name in group.split(",")}


def not_built(features: str) -> set[str]:
    """The invariants that docs/features.md admits: each named on a line that also says "not built"."""
    admitted = (line for line in features.splitlines() if "not built" in line.lower())
    return {name for line in admitted for name in re.findall(r"\bI\d+\b", line)}


def test_top_level_is_fixed() -> None:
    """Nothing stands at the top level but what belongs there, built or left behind."""
    found = {file.relative_to(ROOT).parts[0] for file in house_files()}
    assert found <= TOP_LEVEL, f"not of the top level: {sorted(found - TOP_LEVEL)}"


def test_names_say_what_a_thing_is() -> None:
    """No module, class or function of server and protocol has a name that says nothing."""
    files = python_files(ROOT / "server", ROOT / "protocol")
    assert files
    assert [found for path in files for found in poor_names(path, parsed(path))] == []


@pytest.mark.parametrize(
    ("name", "function", "poor"),
    [
        ("SessionManager", False, True),
        ("path_utils", False, True),
        ("HTTPHandler", False, True),
        ("process_call", True, True),
        ("process", False, False),
        ("end_process", True, False),
        ("rebased_metadata", True, False),
    ],
)
def test_a_poor_name_is_seen(name: str, function: bool, poor: bool) -> None:
    """A banned word is found as a word in either case, not as a part of another word."""
    assert poor_name(name, function=function) is poor


def test_core_only_computes() -> None:
    """The core opens nothing, asks no clock and waits for nothing [I11]."""
    files = python_files(CORE)
    assert files
    assert [f"{place(path, line)} {what}" for path in files for line, what in acts(parsed(path))] == []


@pytest.mark.parametrize(
    "source",
    [
        "async def late(): ...",
        "open('x')",
        "datetime.datetime.now()",
        "def f():\n    return date.today()",
        "__import__('os')",
        "print(1)",
    ],
)
def test_an_act_is_seen(source: str) -> None:
    """What a core may not do is found wherever it stands in a module [I11]."""
    assert list(acts(ast.parse(source)))


THROUGH_THE_PORT = ("core", "journal", "tools", "session")
WAYS_ROUND_THE_PORT = {
    "builtins", "fcntl", "glob", "io", "mmap", "os", "pathlib", "shutil", "socket", "sqlite3", "subprocess", "tempfile",
}  # fmt: skip


def ways_round_the_port(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Each place where a module could reach the disk otherwise than through ports.Disk: (line, by what)."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            names = ["builtins"] if node.func.id in ("open", "__import__", "exec", "eval") else []
        for name in names:
            if name.partition(".")[0] in WAYS_ROUND_THE_PORT:
                yield node.lineno, name


def test_all_product_io_goes_through_the_disk_port() -> None:
    """Journal, checkpoints, outputs and file tools reach the disk through ports.Disk alone (rows J4, W9; [I1])."""
    files = python_files(*(ROOT / "server" / "steadyhand" / room for room in THROUGH_THE_PORT))
    assert len(files) > 60
    found = [f"{place(path, line)} {by}" for path in files for line, by in ways_round_the_port(parsed(path))]
    assert found == []


@pytest.mark.parametrize(
    "source", ["import os", "from os import path", "import os.path", "open('x')", "from pathlib import Path"]
)
def test_a_way_round_the_port_is_seen(source: str) -> None:
    """Each kind of way round the port is found; `posixpath`, which only computes, is none [I1]."""
    assert list(ways_round_the_port(ast.parse(source)))
    assert not list(ways_round_the_port(ast.parse("import posixpath")))


def test_every_test_says_what_it_proves() -> None:
    """Each test function has a docstring: the sentence that is true when it passes."""
    silent = [
        f"{place(path, node.lineno)} {node.name}"
        for path, node in all_tests()
        if not (ast.get_docstring(node) or "").strip()
    ]
    assert silent == []


def test_every_invariant_is_proved_or_admitted() -> None:
    """Each invariant is cited by a test or is said in docs/features.md not to be built, and not both."""
    features = ROOT / "docs" / "features.md"
    cited = set().union(*(cited_in(ast.get_docstring(node) or "") for _, node in all_tests()))
    assert cited <= INVARIANTS, f"no such invariant: {sorted(cited - INVARIANTS)}"
    if not features.exists():
        pytest.skip(f"docs/features.md is not written yet; uncited so far: {sorted(INVARIANTS - cited)}")
    admitted = not_built(features.read_text(encoding="utf-8"))
    assert INVARIANTS - cited - admitted == set(), "neither cited by a test nor admitted as not built"
    assert cited & admitted == set(), "admitted as not built, but a test cites it"


def test_citations_and_admissions_are_read() -> None:
    """A citation needs its brackets; an admission needs both the name and "not built" on one line."""
    assert cited_in("held back [I6], [I1, I2]; I5 is only spoken of") == {"I6", "I1", "I2"}
    assert not_built("| I9 | Not built yet |\n| I4 | built |\nnot built: J3, I12") == {"I9", "I12"}


@pytest.mark.parametrize(("what", "pattern"), [("machine path", MACHINE_PATHS), ("package host", PACKAGE_HOSTS)])
def test_no_file_tells_of_its_machine(what: str, pattern: re.Pattern[str]) -> None:
    """No file holds a path of the machine it was written on, or the name of a host of packages."""
    found = []
    for path in house_files():
        text = path.read_bytes().decode("utf-8", errors="replace")
        found += [f"{place(path, text.count(chr(10), 0, hit.start()) + 1)} {hit[0]}" for hit in pattern.finditer(text)]
    assert found == [], what


@pytest.mark.parametrize(
    ("pattern", "text", "seen"),
    [
        (MACHINE_PATHS, "see /" + "root/x", True),
        (MACHINE_PATHS, "file:///" + "work/a.py", True),
        (MACHINE_PATHS, "project/" + "work/a.py and /homework/", False),
        (PACKAGE_HOSTS, "https://" + "pypi" + ".org/simple", True),
        (PACKAGE_HOSTS, "registry." + "npmjs" + ".org", True),
        (PACKAGE_HOSTS, "example.org", False),
    ],
)
def test_a_trace_of_a_machine_is_seen(pattern: re.Pattern[str], text: str, seen: bool) -> None:
    """The two patterns find what they are for and nothing like it."""
    assert bool(pattern.search(text)) is seen
