"""Answers that are asked for again, as whole turns over HTTP: what was shown is withdrawn, and nothing of it runs."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import anyio
import pytest

from steadyhand.core.export import as_json, as_markdown
from steadyhand.core.prompt import Prompt
from steadyhand.core.record import Assistant, Ended, Started, Usage
from steadyhand.core.views import TextDelta, TurnEvent, Warned
from steadyhand.session import desk, prompts
from tests.models.dialogue import Call, Reply, Talk, answer, assert_answered_once, records, said, talking
from tests.models.streams import DIALECTS, Ask, Dialect, End, Fail, Say, Think, plain, written
from tests.support.scripted_provider import CUT, Scripted, ScriptedProvider
from tests.support.turns import Place

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("dialect", DIALECTS)

WRITE = Ask("write_file", ('{"path":"a.txt",', '"content":"x"}'))
DONE = (Say("Done."), End("stop"))


def deltas(talk: Talk) -> list[TextDelta]:
    events = [told.event for told in talk.editor.told if isinstance(told, TurnEvent)]
    return [event for event in events if isinstance(event, TextDelta)]


@both
async def test_what_was_shown_is_withdrawn(tmp_path: Path, dialect: Dialect) -> None:
    """T6, P3: text and reasoning shown before a repeat are said to be withdrawn, stay in the journal, and are in no
    transcript, export or request, now and after a restart; what follows has an id of its own."""
    place = Place.under(tmp_path)
    begun = plain(written(dialect, (Think("half thought"), Say("half said"), WRITE)))
    whole = answer(dialect, Think("Well."), Say("I write."), WRITE, End("calls"))
    async with ScriptedProvider(Scripted([begun, CUT]), whole, answer(dialect, *DONE)) as provider:
        async with talking(place, dialect, provider) as talk:
            session = await talk.rig.create()
            assert (await talk.rig.say(session, "Write a.txt")).reason == "done"
            owner = talk.rig.house.owners[session]
            exported = [made(owner.view(), owner.ledger, None) for made in (as_json, as_markdown)]
            shown = [message.text for message in owner.messages(99)[0]]
            events = [told.event for told in talk.editor.told if isinstance(told, TurnEvent)]
            told = deltas(talk)
        async with talking(place, dialect, provider, life=2) as talk:
            opened = await talk.rig.open(session)
            assert (await talk.rig.say(session, "And now?", "later")).reason == "done"
        again = [message.text for message in opened.messages]
    assert shown == ["Write a.txt", "I write.", "Done."]
    assert again == shown
    assert not any("half" in text for text in exported)
    assert not any(b"half" in asked.body for asked in provider.asked)
    (withdrawn,) = [record for record in records(place, session) if isinstance(record, Assistant) and record.withdrawn]
    assert (withdrawn.text, withdrawn.reasoning, withdrawn.calls) == ("half said", "half thought", ())
    ids = [next(iter(group)) for group, _ in itertools.groupby([(delta.message_id,) for delta in told])]
    assert len(set(ids)) == len(ids) == 3
    assert ids[0] == withdrawn.message_id
    (warning,) = [number for number, event in enumerate(events) if isinstance(event, Warned)]
    assert events[warning] == Warned(
        "askedAgain", "The answer was cut off. What was shown of it is withdrawn. The model is asked again."
    )
    before = [event for event in events[:warning] if isinstance(event, TextDelta)]
    assert {event.message_id for event in before} == {withdrawn.message_id}


@both
async def test_nothing_shown_nothing_withdrawn(tmp_path: Path, dialect: Dialect) -> None:
    """T6, T1: a repeat before anything was shown leaves no message behind, not even an empty one."""
    place = Place.under(tmp_path)
    async with (
        ScriptedProvider(Scripted([], 503, {}, "length"), Scripted([CUT]), answer(dialect, *DONE)) as provider,
        talking(place, dialect, provider) as talk,
    ):
        session = await talk.rig.create()
        assert (await talk.rig.say(session, "Hi")).reason == "done"
    assert [record.text for record in records(place, session) if isinstance(record, Assistant)] == ["Done."]
    assert [code for code, text in talk.warned()] == ["askedAgain"] * 2
    assert not any("withdrawn" in text for _, text in talk.warned())
    assert provider.asked[0].body == provider.asked[1].body == provider.asked[2].body


@both
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 1.0])
async def test_the_stream_ends_in_a_big_patch(tmp_path: Path, dialect: Dialect, share: float) -> None:
    """Cases 89, 92: a big patch breaks off, its arguments half there or whole, and no reason is told: it is asked for
    again, runs once, and where that is of no use the turn ends `cut` and says so, its file untouched."""
    content = "line\n" * 4000
    text = json.dumps({"path": "big.txt", "content": content})
    patch = Ask("write_file", tuple(text[at : at + 997] for at in range(0, len(text), 997)))
    stream = plain(written(dialect, (patch,)))
    cut = Scripted([stream[: int(len(stream) * share)], CUT])
    for number, answers in enumerate(([cut], [cut, answer(dialect, patch, End("calls")), answer(dialect, *DONE)])):
        place = Place.under(tmp_path / str(number))
        async with ScriptedProvider(*answers) as provider, talking(place, dialect, provider, again=2) as talk:
            session = await talk.rig.create()
            ended = await talk.rig.say(session, "Patch it")
        kept = records(place, session)
        if number:
            assert (ended.reason, place.files()) == ("done", {"big.txt": content})
            assert sum(isinstance(record, Started) for record in kept) == 1
            continue
        assert (ended.reason, place.files(), len(provider.asked)) == ("cut", {}, 3)
        assert [code for code, _ in talk.warned()] == ["askedAgain", "askedAgain", "cut"]
        assert "send the prompt again" in talk.warned()[-1][1]
        assert not any(isinstance(record, Started) for record in kept)
        assert [record.reason for record in kept if isinstance(record, Ended)] == ["cut"]


@both
async def test_arguments_that_were_cut_and_told_as_whole(tmp_path: Path, dialect: Dialect) -> None:
    """Cases 89, 91, T4, T6: half an object under a good reason is never run as an empty one: that call gets an error,
    its neighbour runs, the turn goes on, and the history stays one that a provider accepts."""
    place = Place.under(tmp_path)
    half = Ask("write_file", ('{"path":"a.txt","content":"he',), "call_1")
    other = Ask("write_file", ('{"path":"b.txt","content":"b"}',), "call_2")
    async with (
        ScriptedProvider(answer(dialect, half, other, End("calls")), answer(dialect, *DONE)) as provider,
        talking(place, dialect, provider) as talk,
    ):
        session = await talk.rig.create()
        assert (await talk.rig.say(session, "Write both")).reason == "done"
    assert place.files() == {"b.txt": "b"}
    assert talk.warned() == []
    assert len(provider.asked) == 2
    assert assert_answered_once(dialect, provider.asked[1].body) == 2
    told = said(dialect, provider.asked[1].body)
    calls = [turned for turned in told if isinstance(turned, Call)]
    first, second = [turned.text for turned in told if isinstance(turned, Reply)]
    assert [call.arguments for call in calls] == [{}, {"path": "b.txt", "content": "b"}]
    assert "did not run" in first
    assert "did not run" not in second
    (message,) = [record for record in records(place, session) if isinstance(record, Assistant) and record.calls]
    assert message.calls[0].arguments == '{"path":"a.txt","content":"he', "the very text stays"


@both
async def test_after_a_tool_has_started_only_the_next_request_is_repeated(tmp_path: Path, dialect: Dialect) -> None:
    """Case 92, P3: once a call of an answer ran, that answer is never asked for again; what fails afterwards is
    repeated with the reply in it, the same bytes each time."""
    place = Place.under(tmp_path)
    run = Ask("run_command", ('{"command":"echo once >> log.txt"}',))
    failing = [Scripted([], 500, {}, "length"), Scripted([plain(written(dialect, (Say("Do"),))), CUT])]
    async with (
        ScriptedProvider(answer(dialect, run, End("calls")), *failing, answer(dialect, *DONE)) as provider,
        talking(place, dialect, provider) as talk,
    ):
        session = await talk.rig.create()
        assert (await talk.rig.say(session, "Log it")).reason == "done"
    assert place.files() == {"log.txt": "once\n"}
    first, *others = [asked.body for asked in provider.asked]
    assert assert_answered_once(dialect, first) == 0
    assert len(set(others)) == 1
    assert assert_answered_once(dialect, others[0]) == 1
    assert sum(isinstance(record, Started) for record in records(place, session)) == 1


@both
async def test_a_stop_while_it_waits_to_ask_again(tmp_path: Path, dialect: Dialect) -> None:
    """G8, P3: a turn that waits for the provider stops at once; nothing more is asked, and the next prompt works."""
    place = Place.under(tmp_path)
    limited = Scripted([b"{}"], 429, {"retry-after": "30"}, "length")
    async with (
        ScriptedProvider(limited, answer(dialect, *DONE)) as provider,
        talking(place, dialect, provider) as talk,
    ):
        waiting = anyio.Event()

        async def wait_for_good(_: float) -> None:
            waiting.set()
            await anyio.sleep_forever()

        talk.rig.house.world.pause = wait_for_good
        session = await talk.rig.create()
        accepted = await talk.rig.send(session, "Hi")
        owner = await talk.rig.house.owner(session)
        await waiting.wait()
        assert await prompts.cancel(owner, accepted.turn_id)
        assert (await owner.wait_ended(accepted.turn_id)).reason == "cancelled"
        assert len(provider.asked) == 1
        assert (await talk.rig.say(session, "Again", "again")).reason == "done"


@both
async def test_usage_of_what_broke_off_is_counted(tmp_path: Path, dialect: Dialect) -> None:
    """U1: an answer that told of its usage and then of an error, with nothing shown of it, was billed all the same: a
    usage record of its own, and the sum is incomplete where it lacks a count."""
    place = Place.under(tmp_path)
    if dialect == "chat":
        used = event({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 5}})
        begun = used + plain(written(dialect, (Fail("server_error", "no"),)))
    else:
        begun = plain(written(dialect, (Fail("overloaded_error", "no"),)))
    async with (
        ScriptedProvider(Scripted([begun]), answer(dialect, *DONE)) as provider,
        talking(place, dialect, provider) as talk,
    ):
        session = await talk.rig.create()
        assert (await talk.rig.say(session, "Hi")).reason == "done"
        usage = desk.usage(talk.rig.house.owners[session])
    assert len([record for record in records(place, session) if isinstance(record, Usage)]) == 2
    assert usage.complete is (dialect == "chat")
    assert usage.billed.input == (200 if dialect == "chat" else 100)


def event(told: object) -> bytes:
    return f"data: {json.dumps(told)}\n\n".encode()


@both
async def test_a_quick_question_that_breaks_off(tmp_path: Path, dialect: Dialect) -> None:
    """T6, S2: of a quick question whose answer breaks off for good nothing is kept, and it is said."""
    place = Place.under(tmp_path)
    begun = Scripted([plain(written(dialect, (Say("half"), WRITE))), CUT])
    async with ScriptedProvider(begun) as provider, talking(place, dialect, provider, again=1) as talk:
        session = await talk.rig.create()
        assert (await talk.rig.say(session, Prompt("Is it so?", aside=True))).reason == "cut"
        assert [code for code, _ in talk.warned()] == ["askedAgain", "cut"]
    assert len(provider.asked) == 2
    assert not any(isinstance(record, Assistant) for record in records(place, session))
    assert place.files() == {}
