"""The method table is the contract, and the files generated from it are current.

This file repeats names, codes and the unbuilt parts on purpose. Other programs rely on them, so a change of the
table must also change this file.
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

GENERATE_S_MAX = 60

REQUESTS = """
    session/create session/list session/open session/close session/rebind session/rename session/delete
    session/fork session/compact
    session/export session/setMode session/setModel model/list model/check turn/start turn/status turn/cancel
    turn/events
    queue/edit queue/resume recovery/snapshot recovery/resolve checkpoint/list checkpoint/rewind usage
    review/list review/resolve turn/revise turn/steer
"""
NOTIFICATIONS = "turn/event recovery/changed session/changed queue/changed"
QUESTIONS = "permission/ask user/ask document/save document/encoding secret/get"
COMMANDS = """
    recovery.list recovery.inspect recovery.confirm recovery.reject recovery.waive recovery.retry
    recovery.restore recovery.endSurvivors review.keep review.undo permissions.list permissions.forget ask cancel doctor
"""
NOT_BUILT = ""
KINDS = """
    unknownSession staleEpoch turnRunning staleSnapshot inspectFirst alreadyResolved retryDisabled retryUnsafe
    notOwner journalBroken recoveryRequired notOffered
"""


def generate(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(PROTOCOL / "generate.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=GENERATE_S_MAX,
        check=False,
    )


def test_generated_schema_files_are_current() -> None:
    """The types have one source, and its outputs are committed and checked."""
    done = generate("--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("name", ["protocol.json", "protocol.ts"])
def test_generate_check_finds_a_stale_file_without_writing(tmp_path: Path, name: str) -> None:
    """One extra byte is enough. A check writes nothing, and the next run repairs the file."""
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


def test_method_table_contains_every_method_of_the_contract() -> None:
    """Names, who sends them, and whether they have a response."""
    rows = {(method.name, method.direction, method.result is not None) for method in methods.METHODS}
    assert rows == {
        *((f"steadyhand/{name}", "to_server", True) for name in REQUESTS.split()),
        *((f"steadyhand/{name}", "to_editor", False) for name in NOTIFICATIONS.split()),
        *((f"steadyhand/{name}", "to_editor", True) for name in QUESTIONS.split()),
    }
    assert len(methods.METHODS) == len(methods.BY_NAME) == len(rows)


def test_method_table_contains_every_command_and_error_code() -> None:
    """Codes run from -32050 in the order of the contract, and the data of each kind carries its own name."""
    assert [command.name for command in methods.COMMANDS] == [f"steadyhand.{name}" for name in COMMANDS.split()]
    assert dict(methods.ERRORS) == {kind: -32050 - number for number, kind in enumerate(KINDS.split())}
    for error in methods.ERROR_KINDS:
        assert attrs.fields_dict(error.data)["kind"].default == error.kind


def test_method_table_marks_exactly_the_unbuilt_methods() -> None:
    """An unbuilt method is answered with -32601, and the schema says so."""
    missing = {row.name for row in methods.METHODS if not row.built}
    assert missing == {f"steadyhand/{name}" for name in NOT_BUILT.split()}
    assert [row.name for row in methods.COMMANDS if not row.built] == []


def test_schema_describes_every_type_and_field() -> None:
    """Each class has a docstring and each field one line of comment. The schema carries both."""
    text = (PROTOCOL / "schema" / "protocol.json").read_text("utf-8")
    assert text.count('"description"') > 300
    assert re.search(r'"description": "\s*"', text) is None


def test_wire_classes_define_no_methods() -> None:
    """No wire class defines a method: behaviour belongs to `edge` [I14]."""
    folder = Path(str(steadyhand_protocol.__file__)).parent
    assert (folder / "py.typed").exists()
    for module in ("values", "turn", "recovery", "session", "approval", "commands", "refusals", "methods"):
        tree = ast.parse((folder / f"{module}.py").read_text("utf-8"))
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        assert classes
        assert not [part for node in classes for part in node.body if isinstance(part, ast.FunctionDef)]
