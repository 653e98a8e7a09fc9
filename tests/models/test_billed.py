"""What a provider says an answer cost: read as the number that was sent, and only where its profile says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from steadyhand.adapters.model_answer import decimal_text
from steadyhand.adapters.providers import AllModels
from steadyhand.core.record import ModelName
from steadyhand.core.settings import Settings
from steadyhand.core.usage import usage_view
from steadyhand.core.views import Cost
from tests.models.streams import KEY
from tests.support.scripted_provider import Asked, Scripted, ScriptedProvider
from tests.support.turns import Place, rig

pytestmark = pytest.mark.anyio
patience_s = 30.0


@pytest.mark.parametrize(
    ("told", "read"),
    [
        (0.00014, "0.00014"), (1e-7, "0.0000001"), (1, "1"), ("0.5", "0.5"), (0, "0"),
        (-1, None), (None, None), (True, None), ([], None), ("much", None), ("NaN", None), ("Infinity", None),
        (1e300, None), ("0." + "1" * 60, None),
    ],
)  # fmt: skip
def test_amounts(told: Any, read: str | None) -> None:
    """U2: a number or a text of one, without an exponent and within bounds; anything else is no amount."""
    assert decimal_text(told) == read


@pytest.mark.parametrize(("provider", "cost"), [("openrouter", Cost("0.00014", "USD")), ("compatible", None)])
async def test_the_cost_in_an_answer(tmp_path: Path, provider: str, cost: Cost | None) -> None:
    """U2: OpenRouter's own word is the cost of a turn; another server's `cost`, in whatever it is, is not taken."""
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.00014}
    message = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "usage": usage}

    def answering(asked: Asked) -> Scripted:
        told = {"data": []} if asked.method == "GET" else message
        return Scripted([json.dumps(told).encode()], headers={"content-type": "application/json"})

    async with ScriptedProvider(answering=answering) as served:
        settings = Settings(model=ModelName(provider, "a/b"), base_url=served.address, key_variable="MINE")
        models = AllModels(lambda: {"MINE": KEY})
        models.connect(lambda: settings, None)
        with anyio.fail_after(patience_s):
            async with rig(Place.under(tmp_path), models=models) as house:
                house.house.world.settings = settings
                session = await house.create()
                assert (await house.say(session, "Hi")).reason == "done"
                assert usage_view(house.ledger(session)).cost == cost
