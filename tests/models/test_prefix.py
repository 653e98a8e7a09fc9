"""What `make bench` measures of a long session, asserted on a shorter one: each request begins with the one before."""

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
async def test_each_request_begins_with_the_one_before(tmp_path: Path, dialect: Dialect) -> None:
    """P4, T5: with tools, attachments, quick questions, modes that change, repeats, kills in a write and in a command,
    restarts and their notices, 100 % of each prompt begins the next one, and the simulated cache gives all of it
    back."""
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
async def test_the_measure_sees_what_breaks_it(tmp_path: Path, dialect: Dialect) -> None:
    """P4: a history of which one early word, or the system text, changes in the middle is found, and so is a miss."""
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


def test_the_simulated_cache_follows_the_rule() -> None:
    """P4: a unit is hit as a whole or not at all; where two requests part, a third one hits."""
    cache = SimulatedCache()
    assert cache.hit(b"AB") == 0
    cache.take(b"AB")
    assert cache.hit(b"ABC") == 2
    assert cache.hit(b"AC") == 0
    cache.take(b"AC")
    assert cache.hit(b"AD") == 1


@both
def test_an_answer_counts_as_seen_only_if_it_goes_back_as_it_was_said(dialect: Dialect) -> None:
    """P4: the answer to the request before is part of what can be hit, if the next request says the same words."""
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
