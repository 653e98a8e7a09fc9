"""The setting `files.encoding` (row W10)."""

from __future__ import annotations

import pytest

from steadyhand.config.encodings import RULES_MAX
from steadyhand.config.settings import read_settings
from steadyhand.domain.settings import EncodingRule

JIS = {"match": "*.txt", "encoding": "shiftjis"}


def test_rules_of_the_workspace_replace_those_of_the_machine() -> None:
    """W10: not machine-scoped; the workspace's answer holds the user's value too where it sets none."""
    machine = {"files": {"encoding": [{"encoding": "latin1"}]}}
    assert read_settings(machine, {}).settings.encodings == (EncodingRule("latin1"),)
    answers: tuple[object, ...] = (None, {}, {"files": {"encoding": None}}, {"files": {"encoding": []}})
    for answer in answers:
        assert read_settings(machine, {}, answer).settings.encodings == (EncodingRule("latin1"),)
    read = read_settings(machine, {}, {"files": {"encoding": [JIS, {"language": "xml", "encoding": "koi8r"}]}})
    assert read.settings.encodings == (EncodingRule("shiftjis", "*.txt"), EncodingRule("koi8r", language="xml"))
    assert (read.faults, read.ignored) == ((), ())


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ("latin1", "is not an object"),
        ({"match": "*"}, "names no encoding that the server knows"),
        ({"encoding": "cp437"}, "names no encoding that the server knows"),
        ({"encoding": 7}, 'knows: “{"encoding": 7}”, use a name such as windows-1252 (docs/encodings.md)'),
        ({"encoding": "latin1", "match": 1}, "is not a string"),
        ({"encoding": "latin1", "match": "[a"}, "has a pattern that"),
        ({"encoding": "latin1", "glob": "*"}, "has the unknown member glob"),
    ],
)
def test_invalid_entry_is_left_out_and_named(item: object, said: str) -> None:
    """J14: the others hold."""
    read = read_settings({"files": {"encoding": [item, JIS]}}, {})
    assert read.settings.encodings == (EncodingRule("shiftjis", "*.txt"),)
    (fault,) = read.faults
    assert fault.startswith("an entry of steadyhand.files.encoding ")
    assert said in fault


def test_entries_are_bounded() -> None:
    """I13."""
    read = read_settings({"files": {"encoding": [JIS] * (RULES_MAX + 1)}}, {})
    assert len(read.settings.encodings) == RULES_MAX
    assert "more than 100 entries" in read.faults[0]
    assert read_settings({"files": {"encoding": "latin1"}}, {}).faults == (
        "steadyhand.files.encoding is not a list of objects",
    )
