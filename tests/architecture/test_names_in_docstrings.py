"""Names in backticks, in docstrings, comments and docs/architecture.md, exist in the code.

A rename that forgets a sentence leaves a name that leads nowhere. A name is known if the server or the wire types have
an identifier, a word of a string or a module of that name.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.architecture.test_docs import read
from tests.support.markdown import table_after

ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / "server" / "steadyhand"
SOURCES = (SERVER, ROOT / "protocol" / "steadyhand_protocol", ROOT / "protocol" / "steadyhand_values")
NAME = re.compile(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(\))?`")
OUTSIDE = {"steadyhand_protocol", "flock", "LockFileEx", "aclosing", "contextlib", "generate", "py", "__class__"}
"""Names of the operating system, of Python and of files that are no module of the server."""


@cache
def sources() -> tuple[tuple[Path, str, ast.Module], ...]:
    """Path, text and syntax tree of every module of the server and of the wire types."""
    paths = [path for folder in SOURCES for path in sorted(folder.rglob("*.py"))]
    texts = [(path, path.read_text(encoding="utf-8")) for path in paths]
    return tuple((path, text, ast.parse(text)) for path, text in texts)


def prose(text: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every docstring and comment of a module: (line, text)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def identifiers(tree: ast.Module) -> Iterator[str]:
    """Every name of a module, and every word of its strings that are no docstrings."""
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.keyword(arg=str(name)):
                yield name
            case ast.alias(name=name, asname=other):
                yield from (other or name).split(".")
            case ast.Constant(value=str(words)) if id(node) not in documented:
                yield from re.findall(r"[A-Za-z_]\w*", words)
            case _:
                pass


@cache
def known() -> frozenset[str]:
    """Every name that may stand in backticks."""
    found = set(OUTSIDE)
    for path, _, tree in sources():
        found.update(identifiers(tree))
        found.update(path.with_suffix("").parts)
    return frozenset(found)


def unknown_names(text: str) -> list[str]:
    """The names in backticks of which a part is not known."""
    return [name for name in NAME.findall(text) if not known().issuperset(name.split("."))]


def test_names_in_docstrings_and_comments_exist() -> None:
    """Every name in backticks in the server and the wire types is a name of the code."""
    found = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path, text, tree in sources()
        for line, passage in prose(text, tree)
        for name in unknown_names(passage)
    ]
    assert found == []


def test_architecture_page_names_functions_that_exist() -> None:
    """In "What happens where", each function in parentheses is defined in the module that stands before it."""
    for row in table_after(read("architecture.md"), "What happens where"):
        for module, names in re.findall(r"`([\w/]+\.py)` \(([^)]*)\)", row["read, in this order"]):
            text = (SERVER / module).read_text(encoding="utf-8")
            for name in re.findall(r"`(\w+)`", names):
                assert re.search(rf"\b{name}\b", text), f"{module} has no {name}"


def test_unknown_name_is_found() -> None:
    """A renamed function in a sentence is found, and a known one is not."""
    assert unknown_names("`Session` calls `no_such_function` and `Session.nor_this()`") == [
        "no_such_function",
        "Session.nor_this",
    ]
