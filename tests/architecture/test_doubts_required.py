"""Whoever builds the sessions of a process for people makes their effects wait for the doubts (case 163)."""

from __future__ import annotations

import ast

from tests.architecture.test_conventions import ROOT, location, python_files, syntax_tree

SERVER = ROOT / "server" / "steadyhand"


def constructed(tree: ast.Module) -> set[str]:
    """The names that a module calls."""
    return {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}


def test_each_composition_root_requires_known_doubts() -> None:
    """Case 163: a module of the server that builds a registry also says what its effects wait for."""
    builders = [path for path in python_files(SERVER) if "SessionRegistry" in constructed(syntax_tree(path))]
    assert {location(path) for path in builders} == {
        "server/steadyhand/cli/program.py",
        "server/steadyhand/lsp/app.py",
    }
    assert [location(path) for path in builders if "KnownDoubts" not in constructed(syntax_tree(path))] == []
