"""The end of a turn names the files that its answer claims to have written and did not (row G6, case 35)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.domain.views.types import ChangedFile
from tests.support.in_process_server import practice_server
from tests.support.workspace import Workspace

pytestmark = pytest.mark.anyio


async def test_turn_end_names_a_file_claimed_but_not_written(tmp_path: Path) -> None:
    """G6, case 35: a check for any write call would accept another file. This one does not."""
    async with practice_server(Workspace.under(tmp_path / "place")) as harness:
        session_id = await harness.create()
        ended = await harness.say(session_id, "write a.py with x\nsay I wrote a.py and b.json")
        assert ended.changed == (ChangedFile("a.py", "created"),)
        assert ended.unclaimed == ("b.json",)


async def test_turn_end_without_a_false_claim_has_no_unclaimed_list(tmp_path: Path) -> None:
    """G6: the list is absent, and not empty, when the answer claims what was done, or nothing."""
    async with practice_server(Workspace.under(tmp_path / "place")) as harness:
        session_id = await harness.create()
        for number, text in enumerate(
            ["write a.py with x\nsay I wrote a.py", "say nothing was changed", "show b.json"]
        ):
            ended = await harness.say(session_id, text, f"prompt-{number}")
            assert ended.reason == "done"
            assert ended.unclaimed is None
