"""A session owns its state: no module but its own assigns to an attribute of a session or of its running turn.

The tests read the sources. They know a session's attributes by the assignments to `self` in its classes, and look for
an assignment to an attribute of that name on anything but `self`. A class that is no part of a session may use the
same name for an attribute of its own.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / "server" / "steadyhand"
SESSION = SERVER / "session"
OWN = [
    SESSION / f"{name}.py"
    for name in ("session", "session_state", "session_log", "session_feed", "active_turn", "reasoning_refusals")
]
JOBS = (SESSION / "job.py", "SessionJobs")
CHANGES = {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "setdefault", "update"}
PARTS = {"log", "feed", "jobs", "reasoning", "events"}
"""Attributes that have methods of these names: a call of one is no write from outside."""
METHODS_MAX = 20


def parse(path: Path) -> ast.Module:
    """The syntax tree of one file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def targets(node: ast.AST) -> list[ast.expr]:
    """What a statement assigns to or deletes, tuples taken apart."""
    found: list[ast.expr] = []
    match node:
        case ast.Assign(targets=many) | ast.Delete(targets=many):
            found = list(many)
        case ast.AugAssign(target=one) | ast.AnnAssign(target=one) | ast.For(target=one) | ast.AsyncFor(target=one):
            found = [one]
        case ast.With(items=items) | ast.AsyncWith(items=items):
            found = [item.optional_vars for item in items if item.optional_vars is not None]
        case _:
            pass
    return [leaf for one in found for leaf in (one.elts if isinstance(one, ast.Tuple | ast.List) else [one])]


def session_attributes() -> set[str]:
    """The attributes of a session, its log, its feed and its running turn."""
    found: set[str] = set()
    for path in OWN:
        for owner in (node for node in parse(path).body if isinstance(node, ast.ClassDef)):
            for node in ast.walk(owner):
                for target in targets(node):
                    if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                        found.add(target.attr)
            found |= {
                node.target.id
                for node in owner.body
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
            }
    return found


def foreign_writes(tree: ast.Module, attributes: set[str]) -> Iterator[tuple[int, str]]:
    """Each place that changes such an attribute of anything but `self`: (line, source)."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt | ast.expr):
            continue
        changed = targets(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
            changed = [] if is_part(node.func.value) else [node.func.value]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr"):
            yield node.lineno, ast.unparse(node)
        for target in changed:
            while isinstance(target, ast.Subscript):
                target = target.value
            if isinstance(target, ast.Attribute) and target.attr in attributes and not is_own(target.value):
                yield target.lineno, ast.unparse(node)


def is_part(value: ast.expr) -> bool:
    """Whether an expression is a part of a session, which changes itself."""
    return isinstance(value, ast.Attribute) and value.attr in PARTS


def is_own(value: ast.expr) -> bool:
    """Whether an attribute belongs to the object whose method this is."""
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


# Attributes of other classes that have the name of one of a session's: what is changed there is no session.
OTHERS = {
    "session/service/acquire.py": {"self._sessions.by_id[session_id] = session"},
}


def modules() -> list[Path]:
    """The modules that may hold a session and are no part of it."""
    found = [path for folder in ("session", "lsp", "cli") for path in sorted((SERVER / folder).rglob("*.py"))]
    return [path for path in found if path not in OWN]


def test_only_a_session_changes_its_attributes() -> None:
    """No module outside a session's own changes an attribute of it, of its log, its feed or its turn."""
    attributes = session_attributes()
    assert {"turn", "status", "ledger", "epoch", "journal", "lock", "stopping", "is_kept_open"} <= attributes
    found = [
        f"{path.relative_to(SERVER)}:{line} {source}"
        for path in modules()
        for line, source in foreign_writes(parse(path), attributes)
        if source not in OTHERS.get(str(path.relative_to(SERVER)), ())
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "session.turn = None",
        "session.resolutions += 1",
        "other.status: object = None",
        "self._session.ledger = Ledger()",
        "before, session.epoch = session.epoch, None",
        "del session.turn",
        "session.log.journal = None",
        "session.turn.stopping = 'closed'",
        "session._side_turns.add(turn_id)",
        "session.jobs._running[job_id] = job",
        "turn._calls.clear()",
        "setattr(session, name, None)",
        "for session.turn in turns: pass",
    ],
)
def test_planted_write_is_found(line: str) -> None:
    """A write is found in whatever form it is made."""
    attributes = session_attributes() | {"_running"}
    assert list(foreign_writes(ast.parse(line), attributes)), line


def test_own_change_is_not_found() -> None:
    """A class changes its own attributes of the same name."""
    assert not list(foreign_writes(ast.parse("self.turn = None\nself._calls.clear()"), session_attributes()))


def test_classes_of_a_session_stay_small() -> None:
    """No class of a session collects what belongs into another one."""
    sizes = {
        owner.name: sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in owner.body)
        for path in [*OWN, JOBS[0]]
        for owner in parse(path).body
        if isinstance(owner, ast.ClassDef)
    }
    assert {"Session", "SessionState", "SessionLog", "SessionFeed", "ActiveTurn", JOBS[1]} <= set(sizes)
    assert {name: size for name, size in sizes.items() if size > METHODS_MAX} == {}
