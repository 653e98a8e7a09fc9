"""The measurement of `make bench` on a shorter session, asserted: each request begins with the previous one."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from tests.bench.prefix import Exchange, SimulatedCache, measured, record
from tests.models.dialogue import Reply, Text, said
from tests.models.streams import DIALECTS, Dialect, End, Say

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("dialect", DIALECTS)
turns = 18


@both
async def test_each_request_begins_with_the_previous_prompt(tmp_path: Path, dialect: Dialect) -> None:
    """P4, T5: with tools, attachments, quick questions, mode changes, repeats, kills in a write and in a command,
    restarts and their notices, 100 % of each prompt begins the next one, and the simulated cache returns all of it."""
    exchanges = await record(tmp_path, dialect, turns)
    found = measured(dialect, exchanges)
    assert (found.kept, found.kept_least, found.hit_least) == (1.0, 1.0, 1.0)
    assert found.hit == found.seen > 0.95
    assert found.requests > 1.5 * turns
    told = said(dialect, exchanges[-1].body)
    notices = [turned for turned in told if isinstance(turned, Text) and turned.text.startswith("[Notice]")]
    assert len(notices) == 2
    replies = [turned.text for turned in told if isinstance(turned, Reply)]
    assert any("plan mode" in text or "denied" in text for text in replies)
    assert any("outcome of this call is unknown" in text for text in replies)
    assert any(isinstance(turned, Text) and "f1.txt" in turned.text for turned in told), "something was attached"
    assert any(exchange.aside for exchange in exchanges)


@both
async def test_measurement_finds_a_changed_prefix(tmp_path: Path, dialect: Dialect) -> None:
    """P4: if one early word of the history, or the system text, changes in the middle, the measurement finds it and the
    miss."""
    exchanges = await record(tmp_path, dialect, 6)
    middle = len(exchanges) // 2
    for old, new in ((b"You are Steadyhand", b"It is 12:00. You are"), (b"Do number 0", b"Did number 0")):
        broken = [
            attrs.evolve(exchange, body=exchange.body.replace(old, new)) if at >= middle else exchange
            for at, exchange in enumerate(exchanges)
        ]
        found = measured(dialect, broken)
        assert found.kept_least < 0.99
        assert found.kept < 1.0
        assert found.hit < measured(dialect, exchanges).hit


def test_simulated_cache_hits_whole_units_only() -> None:
    """P4: a unit is hit as a whole or not at all; where two requests diverge, a third one hits."""
    cache = SimulatedCache()
    assert cache.hit(b"AB") == 0
    cache.take(b"AB")
    assert cache.hit(b"ABC") == 2
    assert cache.hit(b"AC") == 0
    cache.take(b"AC")
    assert cache.hit(b"AD") == 1


@pytest.mark.parametrize("dialect", ["chat", "messages"])  # in the Responses dialect an answer is several items
def test_answer_counts_as_seen_only_if_sent_back_unchanged(dialect: Dialect) -> None:
    """P4: the answer to the previous request is part of what can be hit, if the next request contains the same
    words."""
    bodies = {
        "chat": (
            b'{"messages":[{"role":"user","content":"Hi"}],"stream":true}',
            b'{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"\xc3\xa9","reasoning_content":""}'
            b',{"role":"user","content":"So"}],"stream":true}',
        ),
        "messages": (
            b'{"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}],"stream":true}',
            b'{"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]},{"role":"assistant","content":'
            b'[{"type":"text","text":"\xc3\xa9"}]},{"role":"user","content":[{"type":"text","text":"So"}]}],"stream":true}',
        ),
    }[dialect]
    same, other = (
        measured(dialect, [Exchange(bodies[0], (Say(text), End("stop"))), Exchange(bodies[1], None)])
        for text in ("é", "e")
    )
    assert same.kept == other.kept == 1.0
    assert same.seen > other.seen
    assert same.hit == same.seen
