"""A turn's end tells which files its answer claims to have written and did not (row G6, case 35)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.core.views import ChangedFile
from tests.support.turns import Place, rig

pytestmark = pytest.mark.anyio


async def test_a_claim_without_a_write_is_flagged(tmp_path: Path) -> None:
    """G6, case 35: a guard that asks "did any write tool run" is fooled by another file; this one is not."""
    async with rig(Place.under(tmp_path / "place")) as house:
        session_id = await house.create()
        ended = await house.say(session_id, "write a.py with x\nsay I wrote a.py and b.json")
        assert ended.changed == (ChangedFile("a.py", "created"),)
        assert ended.unclaimed == ("b.json",)


async def test_nothing_is_flagged_where_nothing_is_claimed(tmp_path: Path) -> None:
    """G6: absent, not empty, when the answer claims what was done, or nothing."""
    async with rig(Place.under(tmp_path / "place")) as house:
        session_id = await house.create()
        for number, text in enumerate(
            ["write a.py with x\nsay I wrote a.py", "say nothing was changed", "show b.json"]
        ):
            ended = await house.say(session_id, text, f"prompt-{number}")
            assert ended.reason == "done"
            assert ended.unclaimed is None
