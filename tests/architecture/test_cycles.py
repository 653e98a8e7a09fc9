"""No import cycle between packages of the server, nor between its modules.

import-linter checks the layers that pyproject.toml names. These tests read the sources instead and know no layers, so
they also see a cycle inside one layer. Every import counts: those inside functions and under TYPE_CHECKING, too.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / "server" / "steadyhand"

Graph = Mapping[str, set[str]]


def modules_below(package: Path) -> dict[str, Path]:
    """Every module of a package by its dotted name; a package's own module is its `__init__.py`."""
    found: dict[str, Path] = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported_names(tree: ast.Module, module: str, is_package: bool) -> Iterator[str]:
    """Each dotted name that a module imports, relative imports resolved."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if node.level:
                parts = module.split(".")
                above = parts[: len(parts) - node.level + is_package]
                origin = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def module_graph(package: Path) -> dict[str, set[str]]:
    """Each module with the modules of the same package that it imports."""
    modules = modules_below(package)
    graph: dict[str, set[str]] = {name: set() for name in modules}
    for name, path in modules.items():
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        for imported in imported_names(tree, name, path.name == "__init__.py"):
            target = imported if imported in modules else imported.rpartition(".")[0]
            if target in modules and target != name:
                graph[name].add(target)
    return graph


def package_graph(modules: Graph) -> dict[str, set[str]]:
    """The same imports between packages.

    A module counts as its folder. Where a folder has packages below it, its modules stand for themselves: they are
    layers of their own, as `session/context.py` is.
    """
    folders = {name.rpartition(".")[0] for name in modules}
    has_packages = {folder.rpartition(".")[0] for folder in folders if folder}

    def node(name: str) -> str:
        folder = name if name in folders else name.rpartition(".")[0]
        return name if folder in has_packages else folder

    graph: dict[str, set[str]] = {}
    for name, imported in modules.items():
        graph.setdefault(node(name), set()).update({node(other) for other in imported} - {node(name)})
    return graph


def find_cycles(graph: Graph) -> list[list[str]]:
    """Each set of nodes that reach each other, sorted; none where the graph has no cycle."""
    reached = {start: _reachable(graph, start) for start in graph}
    found = {tuple(sorted(b for b in reached[a] if a in reached.get(b, set()))) for a in graph if a in reached[a]}
    return [list(cycle) for cycle in sorted(found)]


def _reachable(graph: Graph, start: str) -> set[str]:
    seen: set[str] = set()
    left = list(graph[start])
    while left:
        node = left.pop()
        if node not in seen:
            seen.add(node)
            left.extend(graph.get(node, ()))
    return seen


def write_package(root: Path, modules: Mapping[str, str]) -> Path:
    """A package `planted` with these modules, by path; the folders between get their `__init__.py`."""
    package = root / "planted"
    for name, text in modules.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    folders: Iterable[Path] = {package, *(path.parent for path in package.rglob("*.py"))}
    for folder in folders:
        (folder / "__init__.py").touch()
    return package


def test_server_packages_have_no_import_cycle() -> None:
    """No two packages of the server import each other, on whatever way."""
    graph = package_graph(module_graph(SERVER))
    assert {"steadyhand.session.calls", "steadyhand.session.context", "steadyhand.domain.ledger"} <= set(graph)
    assert graph["steadyhand.session.calls"], "the imports are read"
    assert find_cycles(graph) == []


def test_server_modules_have_no_import_cycle() -> None:
    """No two modules of the server import each other, on whatever way."""
    assert find_cycles(module_graph(SERVER)) == []


@pytest.mark.parametrize(
    "back",
    [
        "from planted.one import first",
        "from planted.one.first import name",
        "import planted.one.first",
        "from ..one import first",
        "def late():\n    from planted.one import first",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from planted.one.first import name",
    ],
)
def test_planted_cycle_is_found(tmp_path: Path, back: str) -> None:
    """A cycle over a third package is found, wherever its last import is written."""
    package = write_package(
        tmp_path,
        {
            "one/first.py": "from planted.two import second\n",
            "two/second.py": "from planted.three import third\n",
            "three/third.py": back,
        },
    )
    assert find_cycles(package_graph(module_graph(package))) == [["planted.one", "planted.three", "planted.two"]]


def test_package_cycle_is_found_where_modules_have_none(tmp_path: Path) -> None:
    """Two packages that import each other through different modules are a cycle of packages only."""
    package = write_package(
        tmp_path,
        {
            "one/high.py": "import planted.two.high",
            "one/low.py": "",
            "two/high.py": "",
            "two/low.py": "import planted.one.low",
        },
    )
    modules = module_graph(package)
    assert find_cycles(modules) == []
    assert find_cycles(package_graph(modules)) == [["planted.one", "planted.two"]]
