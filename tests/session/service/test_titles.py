"""A title by the model: one request after the first turn (rows K3, K5)."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import attrs
import pytest

from steadyhand.domain.model.messages import ModelRequest, ProviderError
from steadyhand.domain.settings import Price, Settings
from steadyhand.session.service import session_settings
from steadyhand.session.session import Session
from tests.support.in_process_server import InProcessServer, practice_server, scripted_server
from tests.support.model import Play, says
from tests.support.session_state import kinds
from tests.support.waiting import Gate, until
from tests.support.workspace import Workspace

pytestmark = pytest.mark.anyio

BY_MODEL = Settings(titles="model", mode="auto")
PROMPT = "please rename the parser of the old format\nand test it"


def titled(stage: InProcessServer) -> list[ModelRequest]:
    return [request for request in stage.model.requests if request.purpose == "title"]


def asked_for(session: Session, requests: int) -> bool:
    return session.ledger.usage_sums.auxiliary[0] == requests


async def test_practice_model_names_a_session_by_its_first_words(tmp_path: Path) -> None:
    """K5, P5: the first five words of the first prompt; later turns ask no more."""
    async with practice_server(Workspace.under(tmp_path), settings=BY_MODEL) as stage:
        session = await stage.session()
        await stage.say(session, "say one and two and three and four")
        await until(lambda: session.ledger.title == "say one and two and")
        assert session.view().title_source == "auto"
        await stage.say(session, "say another thing")
        assert session.ledger.title == "say one and two and"
        assert asked_for(session, 1)


async def test_title_is_one_line_of_the_answer_and_counted_apart(tmp_path: Path) -> None:
    """K5, U1: the answer's first line without quotation marks, bounded; the request has no tools and no repeat."""
    answer = says('"Rename the parser"\nBecause it is old.')
    async with scripted_server(tmp_path, says("done"), answer, settings=BY_MODEL) as stage:
        session = await stage.session()
        await stage.say(session, PROMPT)
        await until(lambda: session.ledger.title == "Rename the parser")
        (request,) = titled(stage)
        assert (request.tools, request.can_call) == ((), False)
        assert request.messages[0].text == PROMPT
        assert asked_for(session, 1)
        assert [record for record in kinds(session) if record == "title"] == ["title", "title"]


@pytest.mark.parametrize("what", ["renamed", "untitled", "epoch", "closed"])
async def test_late_title_is_dropped(tmp_path: Path, what: str) -> None:
    """K3, K5, S1, case 80: it commits only where the title is automatic, the epoch the same and the session there."""
    gate = Gate()
    late: Play = [gate, *says("Late title")]
    async with scripted_server(tmp_path, says("done"), late, settings=BY_MODEL) as stage:
        session = await stage.session()
        await stage.say(session, PROMPT)
        await gate.wait_reached()
        if what == "renamed":
            await session_settings.rename(session, "Mine")
        elif what == "untitled":
            await session_settings.rename(session, "")
        elif what == "epoch":
            session.use_folders(session.tool_context, stage.registry.context.ids.new())
        else:
            await stage.registry.close(session.session_id)
        before = session.ledger.title
        gate.go.set()
        await until(lambda: len(stage.model.requests) == 2)
        again = await stage.opened(session.session_id)
        await stage.say(again, "more")
        assert again.ledger.title == before != "Late title"


@pytest.mark.parametrize("answer", [says(""), says("half", finish=None), [ProviderError("No.", kind="server")]])
async def test_title_that_does_not_come_leaves_the_first_line(tmp_path: Path, answer: Play) -> None:
    """K5: one request, whatever comes of it."""
    async with scripted_server(tmp_path, says("done"), answer, settings=BY_MODEL) as stage:
        session = await stage.session()
        await stage.say(session, PROMPT)
        await until(lambda: len(stage.model.requests) == 2)
        await stage.say(session, "more")
        assert session.ledger.title == "please rename the parser of the old format"
        assert len(titled(stage)) == 1


async def test_no_title_is_asked_for_without_the_setting_or_at_the_cap(tmp_path: Path) -> None:
    """K5, G7: the default is the first line; a failed first turn and a title of the user ask nothing either."""
    price = Price(Decimal(1), Decimal(1))
    capped = attrs.evolve(BY_MODEL, prices={"practice/*": price}, cost_cap=Decimal("0.00001"))
    cases: list[tuple[Settings, Play]] = [
        (Settings(), says("done")),
        (capped, says("done")),
        (BY_MODEL, [ProviderError("No.", kind="rejected")]),
    ]
    for number, (settings, first) in enumerate(cases):
        async with scripted_server(tmp_path / str(number), first, settings=settings) as stage:
            session = await stage.session()
            await stage.say(session, PROMPT)
            await stage.say(session, "/help")
            assert titled(stage) == []
    async with scripted_server(tmp_path / "named", says("done"), settings=BY_MODEL) as stage:
        session = await stage.registry.open_session(await stage.create("Mine"))
        await stage.say(session, PROMPT)
        await stage.say(session, "/help")
        assert titled(stage) == []
