"""The cost that a provider puts into an answer: read as the number that was sent, and only if its profile says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from steadyhand.adapters.models.catalog import ModelCatalog
from steadyhand.adapters.models.stream_parser import decimal_text
from steadyhand.domain.model.usage import usage_view
from steadyhand.domain.records.record import ModelName
from steadyhand.domain.settings import Settings
from steadyhand.domain.views.types import Cost
from tests.models.streams import KEY
from tests.support.in_process_server import practice_server
from tests.support.scripted_provider import Asked, Scripted, ScriptedProvider
from tests.support.workspace import Workspace

pytestmark = pytest.mark.anyio
patience_s = 60.0


@pytest.mark.parametrize(
    ("told", "read"),
    [
        (0.00014, "0.00014"), (1e-7, "0.0000001"), (1, "1"), ("0.5", "0.5"), (0, "0"),
        (-1, None), (None, None), (True, None), ([], None), ("much", None), ("NaN", None), ("Infinity", None),
        (1e300, None), ("0." + "1" * 60, None),
    ],
)  # fmt: skip
def test_amount_is_a_plain_bounded_number(told: Any, read: str | None) -> None:
    """U2: a number or a text of one, without an exponent and within limits; anything else is no amount."""
    assert decimal_text(told) == read


@pytest.mark.parametrize(("provider", "cost"), [("openrouter", Cost("0.00014", "USD")), ("compatible", None)])
async def test_cost_in_an_answer_counts_for_openrouter_only(tmp_path: Path, provider: str, cost: Cost | None) -> None:
    """U2: OpenRouter's cost is the cost of a turn; another server's `cost`, in whatever currency, is ignored."""
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.00014}
    message = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "usage": usage}

    def answering(asked: Asked) -> Scripted:
        told = {"data": []} if asked.method == "GET" else message
        return Scripted([json.dumps(told).encode()], headers={"content-type": "application/json"})

    async with ScriptedProvider(answering=answering) as served:
        settings = Settings(model=ModelName(provider, "a/b"), base_url=served.address, key_variable="MINE")
        models = ModelCatalog(lambda: {"MINE": KEY})
        models.connect(lambda: settings, None)
        with anyio.fail_after(patience_s):
            async with practice_server(Workspace.under(tmp_path), models=models) as server:
                server.registry.context.settings = settings
                session = await server.create()
                assert (await server.say(session, "Hi")).reason == "done"
                assert usage_view(server.ledger(session)).cost == cost
