"""An edit in another encoding than the one that the model saw (rows W10, V3)."""

from __future__ import annotations

import pytest

from steadyhand.domain.model.readings import Reading
from steadyhand.tools.contract import Refusal
from steadyhand.tools.writes.staleness import FRESH, FileNow, KnownFiles, judge_edit


@pytest.mark.parametrize(
    ("was", "is_now", "text"),
    [
        ("iso8859-1", "cp1252", "It was read as ISO-8859-1 and is windows-1252 now."),
        ("cp1252", "cp1252", None),
        (None, "cp1252", None),
        ("no such name", "cp1252", None),
    ],
)
def test_edit_in_another_encoding_than_the_model_saw_is_refused(was: str | None, is_now: str, text: str | None) -> None:
    """W10, V3: also if the bytes are the same; an encoding that is not known is not compared."""
    known = KnownFiles({"/a": Reading("d", True, encoding=was)}, {}, (), lambda digest: None)
    judged = judge_edit(known, FileNow("/a", "a", "d", "one\n", 4, is_now), "two\n")
    assert judged == (FRESH if text is None else Refusal("stale", text))
