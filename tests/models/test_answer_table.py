"""The table of answers, read in this process and over HTTP, and two laws that hold over all of it.

A turn that ends `done` has shown or done something, or says why not. A provider's own words about a failure reach the
person, without keys.
"""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from steadyhand.adapters.models.error_words import find_words, parse_body
from steadyhand.domain.model.messages import Finish, ModelRequest, ProviderError, StreamPart, TextPart, UserMessage
from steadyhand.domain.settings import CompactionSettings, Settings
from steadyhand.domain.views.types import CallChanged, Event, TextDelta, Warned
from tests.models.answer_table import FOLDER, Row, outcome_of, read_row, rows
from tests.models.streams import DIALECTS, KEY, Dialect, Heard, remote
from tests.support.in_process_server import scripted_server
from tests.support.scripted_provider import CUT, Scripted, ScriptedProvider

pytestmark = pytest.mark.anyio
each_dialect = pytest.mark.parametrize("dialect", DIALECTS)
patience_s = 100.0
ROWS = rows()
REQUEST = ModelRequest("Be good.", (), (UserMessage("Hi"),))
WORDLESS_KINDS = ("garbled", "settings")  # what came cannot be read, so there is nothing to quote


def of(dialect: Dialect) -> list[Row]:
    return [row for row in ROWS if row.dialect == dialect]


def test_table_has_at_least_250_lines() -> None:
    """The table covers 250 answers at least, none of them twice, in each of the three dialects (P1, P6)."""
    lines = [line for path in FOLDER.glob("*.txt") for line in path.read_text(encoding="utf-8").splitlines()]
    assert sum(" | " in line for line in lines) >= 250
    assert len({(row.dialect, row.bytes, row.is_cut, row.status) for row in ROWS}) == len(ROWS)
    assert all(len(of(dialect)) >= 100 for dialect in DIALECTS)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_row_of_the_table_becomes_its_outcome(row: Row) -> None:
    """What a provider sends becomes what the table says, at every split (P1, P3, P6, T6, cases 108, 110, 111, 113)."""
    for size in (1 << 30, 1):
        assert outcome_of(read_row(row, size), row.words if row.fails else "") == row.outcome, size


@pytest.mark.parametrize("row", [row for row in ROWS if row.fails and not row.words], ids=str)
def test_row_without_words_has_none_to_quote(row: Row) -> None:
    """Law: a provider's words reach the person. A row that quotes none is one in which there are none (case 111)."""
    kind = row.outcome.split("; ")[-1].split(" ")[1]
    if kind in WORDLESS_KINDS:
        return
    bodies = [
        parse_body(line.removeprefix(b"data: "))
        for line in row.bytes.splitlines()
        if line.startswith((b"data: {", b"{"))
    ]
    choices = [choice for body in bodies if isinstance(body, dict) for choice in body.get("choices") or ()]
    assert not any(map(find_words, [*bodies, *choices]))


@each_dialect
async def test_row_over_http_becomes_its_outcome(dialect: Dialect) -> None:
    """Every row over a real connection: status, stream and cut give the same outcome (P1, P3, P6)."""
    answers = []
    for row in of(dialect):
        kind = "text/event-stream" if row.status == 200 else "application/json"
        steps = [row.bytes, CUT] if row.is_cut else [row.bytes]
        framing = "chunked" if row.is_cut else "close"
        answers.append(Scripted(steps, row.status, {"content-type": kind}, framing))  # type: ignore[arg-type]  # words
    async with ScriptedProvider(*answers) as provider:
        model = remote(dialect, provider.address)
        with anyio.fail_after(patience_s):
            for row in of(dialect):
                heard = Heard()
                try:
                    async for part in model.ask(REQUEST):
                        heard.parts.append(part)
                except ProviderError as trouble:
                    heard.trouble = trouble
                assert outcome_of(heard, row.words if row.fails else "") == row.outcome, row.name
        await model.client.close()
    assert len(provider.asked) == len(of(dialect)), "nothing is asked twice"


def play_of(row: Row) -> list[StreamPart | Exception]:
    heard = read_row(row)
    return [*heard.parts, *([heard.trouble] if heard.trouble is not None else [])]


def has_shown(event: Event) -> bool:
    return isinstance(event, Warned | CallChanged) or (isinstance(event, TextDelta) and bool(event.delta.strip()))


@each_dialect
async def test_turn_that_ends_done_has_shown_something_or_says_why_not(tmp_path: Path, dialect: Dialect) -> None:
    """Law over the whole table: `done` has shown or done something, or says why not; every other end says why (cases
    110, 111)."""
    ok: list[StreamPart | Exception] = [TextPart("ok"), Finish("stop")]
    silent: list[str] = []
    settings = Settings(compaction=CompactionSettings(auto=False))  # after "too long" nothing else is asked
    async with scripted_server(tmp_path, settings=settings) as stage:
        session = await stage.session()
        for row in of(dialect):
            stage.model.answers[:] = [play_of(row), ok]
            accepted = await stage.send(session, row.name)
            reason = (await stage.ended(session, accepted.turn_id)).reason
            events = stage.events(accepted.turn_id)
            said = [event for event in events if isinstance(event, Warned)]
            if not any(map(has_shown, events)) and reason != "filtered":
                silent.append(row.name)
            if row.fails:
                again = "error reasoning" in row.outcome  # it is asked once more, without reasoning
                assert reason == ("done" if again else "modelFailed"), row.name
                assert len(said) == 1, row.name
                assert row.words in said[0].text, row.name
                assert KEY not in said[0].text
            elif row.outcome.endswith("cut"):
                assert (reason, [warned.code for warned in said]) == ("cut", ["cut"]), row.name
    assert silent == []


async def test_empty_answer_says_that_it_is_empty_and_names_its_end(tmp_path: Path) -> None:
    """Case 110: an empty answer, and one of reasoning alone, end `done` with one sentence; after a call there is
    something to see, and none is said."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        for name, code, words in (
            ("nothing at all", "emptyAnswer", "The model sent an empty answer (“stop”)."),
            ("only reasoning", "emptyAnswer", "The model reasoned but gave no answer (“stop”)."),
            ("a whole answer with an empty reason", "unknownEnd", "ended for an unknown reason, so"),
        ):
            (row,) = [row for row in of("chat") if row.name == name]
            stage.model.answers[:] = [play_of(row)]
            accepted = await stage.send(session, name)
            assert (await stage.ended(session, accepted.turn_id)).reason == "done"
            (warned,) = [event for event in stage.events(accepted.turn_id) if isinstance(event, Warned)]
            assert warned.code == code
            assert words in warned.text
        (row,) = [row for row in of("chat") if row.name == "empty arguments"]
        stage.model.answers[:] = [play_of(row), [Finish("stop", "stop")]]
        accepted = await stage.send(session, "a call, then nothing")
        assert (await stage.ended(session, accepted.turn_id)).reason == "done"
        assert [event for event in stage.events(accepted.turn_id) if isinstance(event, Warned)] == []
