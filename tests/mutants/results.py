"""What mutmut found: the verdict on each mistake, and the lines that a mistake changes."""

from __future__ import annotations

import ast
import difflib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from steadyhand_values import frozen
from tests.mutants.workspace import WORK

Verdict = Literal["tests", "types", "time", "survived", "no test", "open"]
"""What caught it: a test, the type checker, or the time limit. `open`: not tried yet."""
TYPES_CODE, SKIPPED_CODE = 37, 34
_OF_EXIT_CODE: dict[int | None, Verdict] = {
    None: "open",
    0: "survived",
    1: "tests",
    3: "tests",
    5: "no test",
    33: "no test",
    SKIPPED_CODE: "open",
    36: "time",
    TYPES_CODE: "types",
    24: "time",
    -24: "time",
    152: "time",
    255: "time",
}


@frozen
class Mutant:
    """One mistake, by mutmut's name for it."""

    name: str
    module: str  # as in modules.py
    function: str  # `name`, or `Class.name`
    verdict: Verdict
    version: str  # digest of the function that it changes


def mutants_of(module: str) -> list[Mutant]:
    """Return the mistakes in a module, in the order of its text; none if mutmut has not seen the module."""
    meta = _read_meta(module)
    versions = meta.get("hash_by_function_name", {})
    return [
        Mutant(name, module, _function_of(name), _OF_EXIT_CODE.get(code, "tests"), versions.get(_mangled(name), ""))
        for name, code in meta.get("exit_code_by_key", {}).items()
    ]


def record_type_errors(module: str, lines: set[int]) -> None:
    """Record the mistakes in a module that have one of these lines of the mutated file as caught by the types."""
    spans = {mutant.name: span for mutant, span in _spans(module)}
    ordered = sorted(lines)
    caught = {
        name for name, (first, last) in spans.items() if bisect_left(ordered, first) < bisect_right(ordered, last)
    }
    _change_codes(module, lambda name, code: TYPES_CODE if name in caught else None if code == TYPES_CODE else code)


def try_again(module: str) -> None:
    """Open the mistakes of a module that survived: tests were added since."""
    opened = [code for code, verdict in _OF_EXIT_CODE.items() if verdict in ("survived", "no test")]
    _change_codes(module, lambda name, code: None if code in opened else code)


def set_aside(module: str) -> None:
    """Let mutmut skip the open mistakes of a module in its next run; `take_back` opens them again."""
    _change_codes(module, lambda name, code: SKIPPED_CODE if code is None else code)


def take_back(module: str) -> None:
    """Open what was set aside."""
    _change_codes(module, lambda name, code: None if code == SKIPPED_CODE else code)


def changes_of(mutants: list[Mutant]) -> Iterator[tuple[Mutant, tuple[str, ...]]]:
    """Yield each mistake of one module with its lines: `-` what the code has, `+` what the mistake makes of it."""
    if not mutants:
        return
    text = mutated_file(mutants[0].module).read_text(encoding="utf-8").split("\n")
    bodies = {name: text[first:last] for name, (first, last) in _all_spans(mutants[0].module).items()}
    for mutant in mutants:
        changed = mutant.name.rpartition(".")[2]
        before, after = bodies[f"{changed.rpartition('_')[0]}_orig"], bodies[changed]
        lines = [line for line in difflib.ndiff(_plain(before), _plain(after)) if line[0] in "-+"]
        yield mutant, tuple(f"{line[0]} {line[2:].strip()}" for line in lines)


def mutated_file(module: str) -> Path:
    """Return the path of the file in which mutmut keeps all mistakes of a module."""
    return WORK / "mutants" / "src" / "steadyhand" / f"{module}.py"


def _spans(module: str) -> Iterator[tuple[Mutant, tuple[int, int]]]:
    spans = _all_spans(module)
    for mutant in mutants_of(module):
        yield mutant, spans[mutant.name.rpartition(".")[2]]


def _all_spans(module: str) -> dict[str, tuple[int, int]]:
    """Return the first and the last line of each function and method of the mutated file, by its name."""
    tree = ast.parse(mutated_file(module).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {one.name: (one.lineno, one.end_lineno or one.lineno) for one in ast.walk(tree) if isinstance(one, kinds)}


def _read_meta(module: str) -> dict[str, Any]:
    path = mutated_file(module).with_suffix(".py.meta")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def _change_codes(module: str, change: Callable[[str, int | None], int | None]) -> None:
    meta = _read_meta(module)
    if meta:
        meta["exit_code_by_key"] = {name: change(name, code) for name, code in meta["exit_code_by_key"].items()}
        mutated_file(module).with_suffix(".py.meta").write_text(json.dumps(meta, indent=4), encoding="utf-8")


def _plain(lines: list[str]) -> list[str]:
    return [line for line in lines if line.strip()]


def _mangled(name: str) -> str:
    return name.partition("__mutmut_")[0].rpartition(".")[2]


def _function_of(name: str) -> str:
    mangled = _mangled(name)
    return mangled[1:].strip("ǁ").replace("ǁ", ".") if "ǁ" in mangled else mangled[2:]
