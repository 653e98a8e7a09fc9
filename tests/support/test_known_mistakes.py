"""The mistakes of tests/mutants/known.py can still be made, and each names a test that exists."""

from __future__ import annotations

import pytest

from tests.mutants.known import MISTAKES, ROOT, Mistake, changed


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.what)
def test_known_mistake_can_be_made_and_names_its_test(mistake: Mistake) -> None:
    """A mistake whose text is gone from the code would be noticed by every test, and prove nothing."""
    assert changed(mistake) != ""
    text = (ROOT / mistake.test).read_text(encoding="utf-8")
    named = [line for line in text.split("\n") if line.lstrip().startswith(("def test_", "async def test_"))]
    assert any(mistake.named in line for line in named)
