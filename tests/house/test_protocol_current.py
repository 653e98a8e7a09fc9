"""The table is the contract, and what is generated from it is current.

Names, codes and what is not built yet are written out here once more on purpose: other programs rely on them,
so a change of the table must be a change of this file too.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

import steadyhand_protocol
from steadyhand_protocol import methods

PROTOCOL = Path(__file__).parents[2] / "protocol"

generate_seconds_max = 60

REQUESTS = """
    session/create session/list session/open session/close session/rename session/delete session/fork
    session/export session/setMode session/setModel model/list turn/start turn/status turn/cancel turn/events
    queue/edit queue/resume recovery/snapshot recovery/resolve checkpoint/list checkpoint/rewind usage
"""
NOTIFICATIONS = "turn/event recovery/changed session/changed queue/changed"
QUESTIONS = "permission/ask user/ask document/save secret/get"
COMMANDS = """
    recovery.list recovery.inspect recovery.confirm recovery.reject recovery.waive recovery.retry
    recovery.restore recovery.endSurvivors permissions.list permissions.forget ask cancel doctor
"""
NOT_BUILT = "session/fork checkpoint/rewind"
KINDS = """
    unknownSession staleEpoch turnRunning staleSnapshot inspectFirst alreadyResolved retryDisabled retryUnsafe
    notOwner journalBroken recoveryRequired notOffered
"""


def generate(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(PROTOCOL / "generate.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=generate_seconds_max,
        check=False,
    )


def test_the_generated_files_are_current() -> None:
    """One source of types; its outputs are committed and checked."""
    done = generate("--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("name", ["protocol.json", "protocol.ts"])
def test_a_file_that_is_not_current_is_found(tmp_path: Path, name: str) -> None:
    """One byte more is enough; a check writes nothing; the next run mends it."""
    assert generate("--directory", str(tmp_path)).returncode == 0
    assert (tmp_path / name).read_bytes() == (PROTOCOL / "schema" / name).read_bytes()
    stale = (tmp_path / name).read_bytes() + b"\n"
    (tmp_path / name).write_bytes(stale)
    done = generate("--check", "--directory", str(tmp_path))
    assert done.returncode == 1
    assert done.stdout.startswith(name)
    assert (tmp_path / name).read_bytes() == stale
    assert generate("--directory", str(tmp_path)).returncode == 0
    assert generate("--check", "--directory", str(tmp_path)).returncode == 0


def test_the_table_holds_every_method_of_the_contract() -> None:
    """Names, who sends them, and whether they are answered."""
    rows = {(method.name, method.direction, method.result is not None) for method in methods.METHODS}
    assert rows == {
        *((f"steadyhand/{name}", "to_server", True) for name in REQUESTS.split()),
        *((f"steadyhand/{name}", "to_editor", False) for name in NOTIFICATIONS.split()),
        *((f"steadyhand/{name}", "to_editor", True) for name in QUESTIONS.split()),
    }
    assert len(methods.METHODS) == len(methods.BY_NAME) == len(rows)


def test_the_table_holds_every_command_and_error_of_the_contract() -> None:
    """Codes run from -32050 in the order of the contract; each kind's data says its own word."""
    assert [command.name for command in methods.COMMANDS] == [f"steadyhand.{name}" for name in COMMANDS.split()]
    assert dict(methods.ERRORS) == {kind: -32050 - number for number, kind in enumerate(KINDS.split())}
    for error in methods.ERROR_KINDS:
        assert attrs.fields_dict(error.data)["kind"].default == error.kind


def test_what_is_not_built_is_said() -> None:
    """A method of a part that is not built yet is answered -32601, and the schema says so."""
    missing = {row.name for row in methods.METHODS if not row.built}
    assert missing == {f"steadyhand/{name}" for name in NOT_BUILT.split()}
    assert [row.name for row in methods.COMMANDS if not row.built] == []


def test_every_shape_and_field_says_what_it_is() -> None:
    """Each class has a docstring and each field one line of comment; the schema carries both."""
    text = (PROTOCOL / "schema" / "protocol.json").read_text("utf-8")
    assert text.count('"description"') > 300
    assert re.search(r'"description": "\s*"', text) is None


def test_the_rooms_hold_values_without_behaviour() -> None:
    """No wire class defines a method: what is done with them belongs to `edge` [I14]."""
    folder = Path(str(steadyhand_protocol.__file__)).parent
    assert (folder / "py.typed").exists()
    for room in ("values", "turn", "recovery", "session", "approval", "commands", "refusals", "methods"):
        tree = ast.parse((folder / f"{room}.py").read_text("utf-8"))
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        assert classes
        assert not [part for node in classes for part in node.body if isinstance(part, ast.FunctionDef)]
