"""Repository rules that no linter checks.

The top level is fixed, names describe what they name, the core only computes, every test has a docstring, every
invariant is tested or documented as not built, and no file reveals the machine it was written on.
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
CORE = ROOT / "server" / "steadyhand" / "domain"

TOP_LEVEL = {
    *("pyproject.toml", "README.md", "LICENSE", "server", "protocol", "editor-client", "tests", "docs"),
    *("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", ".editorconfig", ".pre-commit-config.yaml", ".github"),
    *("Makefile", ".ci", ".gitignore", "requirements.lock", "requirements-dev.lock"),
    "requirements-mutants.lock",
    "requirements-realmodel.lock",
}
TESTED = (
    *("architecture", "domain", "journal", "protocol", "config", "tools", "adapters", "session", "lsp", "support"),
    *("scenarios", "crash", "e2e", "models", "prove"),
)
INVARIANTS = {f"I{number}" for number in range(1, 17)}

# Words that say nothing about what is named. `process` is a noun here (a child process), never a verb.
BANNED = {"manager", "handler", "helper", "util", "common", "misc", "base", "data", "info"}
BANNED |= {f"{word}s" for word in BANNED}

# The patterns are assembled from pieces, or this file would break its own rule. Only the start of a path counts.
MACHINE_PATHS = re.compile(r"(?<![\w.-])/(?:" + "|".join(("root", "work", "tmp/v")) + r")/")
PACKAGE_HOSTS = re.compile(
    r"\b(?:" + "|".join(("pypi", "pythonhosted", "npmjs", "yarnpkg", "rubygems", "crates")) + r")\.(?:org|com|io)\b"
)


@cache
def repository_files() -> tuple[Path, ...]:
    """Every file that git tracks or would track if it were added."""
    listed = subprocess.run(
        [require_tool("git"), "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout: the files of the repository are not known")
    files = (ROOT / name for name in listed.stdout.decode().split("\0") if name)
    return tuple(file for file in files if file.is_file())


@cache
def syntax_tree(path: Path) -> ast.Module:
    """The syntax tree of one file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def python_files(*folders: Path) -> list[Path]:
    """All Python files below some folders, in order."""
    return sorted(file for folder in folders for file in folder.rglob("*.py"))


def location(path: Path, line: int | None = None) -> str:
    """Where something is, in a form that an editor can open."""
    return str(path.relative_to(ROOT)) + (f":{line}" if line else "")


def words(name: str) -> list[str]:
    """The words of a name, in either case: `ToolRecovery` and `tool_recovery` have the same two."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def is_poor_name(name: str, *, function: bool = False) -> bool:
    """Whether a name contains a banned word, or is a function whose verb is `process`."""
    parts = words(name)
    return bool(BANNED.intersection(parts)) or (function and parts[:1] == ["process"])


def poor_names(path: Path, tree: ast.Module) -> Iterator[str]:
    """The module, classes and functions of one file whose names say nothing."""
    if is_poor_name(path.stem):
        yield location(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and is_poor_name(node.name):
            yield f"{location(path, node.lineno)} {node.name}"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_poor_name(node.name, function=True):
            yield f"{location(path, node.lineno)} {node.name}"


ACTING_CALLS = {"open", "input", "print", "exec", "eval", "__import__", "breakpoint"}
CLOCK_CALLS = {"now", "utcnow", "today"}
ASYNCHRONOUS = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)


def impure_operations(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Each place where a module does more than compute: (line, what it does). test_layers checks the imports."""
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
    """Every test function of the tested folders."""
    for path in python_files(*(ROOT / "tests" / folder for folder in TESTED)):
        if path.name.startswith("test_"):
            for node in ast.walk(syntax_tree(path)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                    yield path, node


def cited_in(text: str) -> set[str]:
    """The invariants a text cites, as `[I3]` or `[I3, I5]`."""
    groups = re.findall(r"\[(I\d+(?:,\s*I\d+)*)\]", text)
    return {name.strip() for group in groups for name in group.split(",")}


def documented_not_built(features: str) -> set[str]:
    """The invariants that docs/features.md documents as not built: each is named on a line that also says
    "not built".
    """
    documented = (line for line in features.splitlines() if "not built" in line.lower())
    return {name for line in documented for name in re.findall(r"\bI\d+\b", line)}


def test_top_level_is_fixed() -> None:
    """The top level contains only what belongs there, neither build output nor leftovers."""
    found = {file.relative_to(ROOT).parts[0] for file in repository_files()}
    assert found <= TOP_LEVEL, f"not of the top level: {sorted(found - TOP_LEVEL)}"


def test_server_and_protocol_names_contain_no_banned_word() -> None:
    """No module, class or function of server and protocol has a name that says nothing."""
    files = python_files(ROOT / "server", ROOT / "protocol")
    assert files
    assert [found for path in files for found in poor_names(path, syntax_tree(path))] == []


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
def test_poor_name_check_finds_banned_words_in_either_case(name: str, function: bool, poor: bool) -> None:
    """A banned word is found as a whole word in either case, and not as a part of another word."""
    assert is_poor_name(name, function=function) is poor


def test_core_opens_nothing_reads_no_clock_and_awaits_nothing() -> None:
    """The core opens nothing, reads no clock and waits for nothing [I11]."""
    files = python_files(CORE)
    assert files
    assert [
        f"{location(path, line)} {what}" for path in files for line, what in impure_operations(syntax_tree(path))
    ] == []


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
def test_purity_check_finds_each_forbidden_operation(source: str) -> None:
    """A forbidden operation of the core is found anywhere in a module [I11]."""
    assert list(impure_operations(ast.parse(source)))


THROUGH_THE_PORT = ("domain", "journal", "tools", "session")
BYPASS_MODULES = {
    "builtins", "fcntl", "glob", "io", "mmap", "os", "pathlib", "shutil", "socket", "sqlite3", "subprocess", "tempfile",
}  # fmt: skip


def port_bypasses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Each place where a module could reach the disk without ports.Disk: (line, by which name)."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt | ast.expr):
            continue
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            names = ["builtins"] if node.func.id in ("open", "__import__", "exec", "eval") else []
        for name in names:
            if name.partition(".")[0] in BYPASS_MODULES:
                yield node.lineno, name


def test_journal_session_and_tools_reach_the_disk_only_by_its_port() -> None:
    """Journal, checkpoints, outputs and file tools reach the disk only through ports.Disk (rows J4, W9; [I1])."""
    files = python_files(*(ROOT / "server" / "steadyhand" / package for package in THROUGH_THE_PORT))
    assert len(files) > 60
    found = [f"{location(path, line)} {by}" for path in files for line, by in port_bypasses(syntax_tree(path))]
    assert found == []


@pytest.mark.parametrize(
    "source", ["import os", "from os import path", "import os.path", "open('x')", "from pathlib import Path"]
)
def test_disk_port_check_finds_each_kind_of_bypass(source: str) -> None:
    """Each kind of bypass of the port is found. `posixpath`, which only computes, is none [I1]."""
    assert list(port_bypasses(ast.parse(source)))
    assert not list(port_bypasses(ast.parse("import posixpath")))


def self_lambdas(tree: ast.Module) -> Iterator[int]:
    """The lines of lambdas that read `self`: such a lambda may run before the attribute that it reads is set."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            read = (name for name in ast.walk(node.body) if isinstance(name, ast.Name))
            yield from (name.lineno for name in read if name.id == "self")


def test_lsp_app_hands_objects_to_the_features_and_no_lambdas() -> None:
    """`lsp/app.py` builds each part before the parts that use it: it contains no lambda that reads `self`."""
    path = ROOT / "server" / "steadyhand" / "lsp" / "app.py"
    assert [location(path, line) for line in self_lambdas(syntax_tree(path))] == []


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("Feature(\n    lambda: self._registry)", [2]),
        ("run = lambda text: shown(self.other.flush(), text)", [1]),
        ("connect(lambda: context.settings, self._secret)", []),
    ],
)
def test_self_lambda_check_finds_lambdas_that_read_self(source: str, lines: list[int]) -> None:
    """A lambda that reads an attribute of `self` is found; a bound method and other lambdas are none."""
    assert list(self_lambdas(ast.parse(source))) == lines


def test_every_test_has_a_docstring() -> None:
    """Each test function has a docstring: the sentence that is true when it passes."""
    without_docstring = [
        f"{location(path, node.lineno)} {node.name}"
        for path, node in all_tests()
        if not (ast.get_docstring(node) or "").strip()
    ]
    assert without_docstring == []


def test_every_invariant_is_cited_by_a_test_or_documented_unbuilt() -> None:
    """Each invariant is cited by a test or documented in docs/features.md as not built, and not both."""
    features = ROOT / "docs" / "features.md"
    cited = set().union(*(cited_in(ast.get_docstring(node) or "") for _, node in all_tests()))
    assert cited <= INVARIANTS, f"no such invariant: {sorted(cited - INVARIANTS)}"
    documented = documented_not_built(features.read_text(encoding="utf-8"))
    assert INVARIANTS - cited - documented == set(), "neither cited by a test nor documented as not built"
    assert cited & documented == set(), "documented as not built, but a test cites it"


def test_citation_and_not_built_parsers_read_only_their_form() -> None:
    """A citation needs its brackets. A documented gap needs both the name and "not built" on one line."""
    assert cited_in("held back [I6], [I1, I2]; I5 is only spoken of") == {"I6", "I1", "I2"}
    assert documented_not_built("| I9 | Not built yet |\n| I4 | built |\nnot built: J3, I12") == {"I9", "I12"}


@pytest.mark.parametrize(("what", "pattern"), [("machine path", MACHINE_PATHS), ("package host", PACKAGE_HOSTS)])
def test_no_file_contains_a_machine_path_or_package_host(what: str, pattern: re.Pattern[str]) -> None:
    """No file contains a path of the machine it was written on, or the name of a package host."""
    found = []
    for path in repository_files():
        text = path.read_bytes().decode("utf-8", errors="replace")
        found += [
            f"{location(path, text.count(chr(10), 0, hit.start()) + 1)} {hit[0]}" for hit in pattern.finditer(text)
        ]
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
def test_machine_path_and_package_host_patterns_match_exactly(pattern: re.Pattern[str], text: str, seen: bool) -> None:
    """The two patterns find what they are for and nothing similar."""
    assert bool(pattern.search(text)) is seen
