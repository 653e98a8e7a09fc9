"""Repeated requests in whole turns over HTTP: what was shown before is withdrawn, and nothing of it runs."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import anyio
import pytest

from steadyhand.domain.records.prompt import Prompt
from steadyhand.domain.records.record import Assistant, Ended, Started, Usage
from steadyhand.domain.views.export import as_json, as_markdown
from steadyhand.domain.views.types import TextDelta, TurnEvent, Warned
from steadyhand.session.service import prompt_queue, session_settings
from tests.models.dialogue import Call, Reply, Talk, answer, assert_answered_once, records, said, stem, talking
from tests.models.streams import DIALECTS, Ask, Dialect, End, Fail, Say, Think, plain, written
from tests.support.scripted_provider import CUT, Scripted, ScriptedProvider
from tests.support.workspace import Workspace

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("dialect", DIALECTS)

WRITE = Ask("write_file", ('{"path":"a.txt",', '"content":"x"}'))
DONE = (Say("Done."), End("stop"))


def deltas(talk: Talk) -> list[TextDelta]:
    events = [told.event for told in talk.editor.told if isinstance(told, TurnEvent)]
    return [event for event in events if isinstance(event, TextDelta)]


@both
async def test_repeat_withdraws_what_was_shown_from_all_history(tmp_path: Path, dialect: Dialect) -> None:
    """T6, P3: text and reasoning shown before a repeat are withdrawn by an event. They stay in the journal, and are in
    no transcript, export or request, now and after a restart. What follows has an id of its own."""
    workspace = Workspace.under(tmp_path)
    begun = plain(written(dialect, (Think("half thought"), Say("half said"), WRITE)))
    whole = answer(dialect, Think("Well."), Say("I write."), WRITE, End("calls"))
    async with ScriptedProvider(Scripted([begun, CUT]), whole, answer(dialect, *DONE)) as provider:
        async with talking(workspace, dialect, provider) as talk:
            session = await talk.server.create()
            assert (await talk.server.say(session, "Write a.txt")).reason == "done"
            owner = talk.server.registry.sessions[session]
            exported = [made(owner.view(), owner.ledger, None) for made in (as_json, as_markdown)]
            shown = [message.text for message in owner.messages(99)[0]]
            events = [told.event for told in talk.editor.told if isinstance(told, TurnEvent)]
            told = deltas(talk)
        async with talking(workspace, dialect, provider, run=2) as talk:
            opened = await talk.server.open(session)
            assert (await talk.server.say(session, "And now?", "later")).reason == "done"
        again = [message.text for message in opened.messages]
    assert shown == ["Write a.txt", "I write.", "Done."]
    assert again == shown
    assert not any("half" in text for text in exported)
    assert not any(b"half" in asked.body for asked in provider.asked)
    (withdrawn,) = [
        record for record in records(workspace, session) if isinstance(record, Assistant) and record.withdrawn
    ]
    assert (withdrawn.text, withdrawn.reasoning, withdrawn.calls) == ("half said", "half thought", ())
    ids = [next(iter(group)) for group, _ in itertools.groupby([(delta.message_id,) for delta in told])]
    assert len(set(ids)) == len(ids) == 3
    assert ids[0] == withdrawn.message_id
    (warning,) = [number for number, event in enumerate(events) if isinstance(event, Warned)]
    assert events[warning] == Warned(
        "askedAgain", "The answer was cut off. The part that was shown is withdrawn. Retrying, 1 of 4."
    )
    before = [event for event in events[:warning] if isinstance(event, TextDelta)]
    assert {event.message_id for event in before} == {withdrawn.message_id}


@both
async def test_repeat_before_anything_was_shown_leaves_no_message(tmp_path: Path, dialect: Dialect) -> None:
    """T6, T1: a repeat before anything was shown leaves no message behind, not even an empty one."""
    workspace = Workspace.under(tmp_path)
    async with (
        ScriptedProvider(Scripted([], 503, {}, "length"), Scripted([CUT]), answer(dialect, *DONE)) as provider,
        talking(workspace, dialect, provider) as talk,
    ):
        session = await talk.server.create()
        assert (await talk.server.say(session, "Hi")).reason == "done"
    assert [record.text for record in records(workspace, session) if isinstance(record, Assistant)] == ["Done."]
    assert [code for code, text in talk.warned()] == ["askedAgain"] * 2
    assert not any("withdrawn" in text for _, text in talk.warned())
    assert provider.asked[0].body == provider.asked[1].body == provider.asked[2].body


@both
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 1.0])
async def test_stream_cut_in_a_big_patch_is_repeated_and_runs_once(
    tmp_path: Path, dialect: Dialect, share: float
) -> None:
    """Cases 89, 92: a big patch is cut off, with its arguments half there or whole, and without a finish reason. The
    request is repeated and the call runs once. If no repeat helps, the turn ends with `cut` and says so, and the file
    is unchanged."""
    content = "line\n" * 4000
    text = json.dumps({"path": "big.txt", "content": content})
    patch = Ask("write_file", tuple(text[at : at + 997] for at in range(0, len(text), 997)))
    stream = plain(written(dialect, (patch,)))
    cut = Scripted([stream[: int(len(stream) * share)], CUT])
    for number, answers in enumerate(([cut], [cut, answer(dialect, patch, End("calls")), answer(dialect, *DONE)])):
        workspace = Workspace.under(tmp_path / str(number))
        async with ScriptedProvider(*answers) as provider, talking(workspace, dialect, provider, again=2) as talk:
            session = await talk.server.create()
            ended = await talk.server.say(session, "Patch it")
        kept = records(workspace, session)
        if number:
            assert (ended.reason, workspace.files()) == ("done", {"big.txt": content})
            assert sum(isinstance(record, Started) for record in kept) == 1
            continue
        assert (ended.reason, workspace.files(), len(provider.asked)) == ("cut", {}, 3)
        assert [code for code, _ in talk.warned()] == ["askedAgain", "askedAgain", "cut"]
        assert talk.warned()[-1][1].endswith("Try again.")
        assert not any(isinstance(record, Started) for record in kept)
        assert [record.reason for record in kept if isinstance(record, Ended)] == ["cut"]


@both
async def test_cut_arguments_with_a_good_finish_reason_never_run(tmp_path: Path, dialect: Dialect) -> None:
    """Cases 89, 91, T4, T6: half an object with a good finish reason never runs as an empty one. That call gets an
    error, its neighbour runs, the turn goes on, and a provider still accepts the history."""
    workspace = Workspace.under(tmp_path)
    half = Ask("write_file", ('{"path":"a.txt","content":"he',), "call_1")
    other = Ask("write_file", ('{"path":"b.txt","content":"b"}',), "call_2")
    async with (
        ScriptedProvider(answer(dialect, half, other, End("calls")), answer(dialect, *DONE)) as provider,
        talking(workspace, dialect, provider) as talk,
    ):
        session = await talk.server.create()
        assert (await talk.server.say(session, "Write both")).reason == "done"
    assert workspace.files() == {"b.txt": "b"}
    assert talk.warned() == []
    assert len(provider.asked) == 2
    assert assert_answered_once(dialect, provider.asked[1].body) == 2
    told = said(dialect, provider.asked[1].body)
    calls = [turned for turned in told if isinstance(turned, Call)]
    first, second = [turned.text for turned in told if isinstance(turned, Reply)]
    assert [call.arguments for call in calls] == [{}, {"path": "b.txt", "content": "b"}]
    assert "did not run" in first
    assert "did not run" not in second
    (message,) = [record for record in records(workspace, session) if isinstance(record, Assistant) and record.calls]
    assert message.calls[0].arguments == '{"path":"a.txt","content":"he', "the very text stays"


@both
async def test_after_a_call_ran_only_the_next_request_is_repeated(tmp_path: Path, dialect: Dialect) -> None:
    """Case 92, P3: once a call of an answer ran, that answer is never requested again; a later failure repeats the
    request with the reply in it, with the same bytes each time."""
    workspace = Workspace.under(tmp_path)
    run = Ask("run_command", ('{"command":"echo once >> log.txt"}',))
    failing = [Scripted([], 500, {}, "length"), Scripted([plain(written(dialect, (Say("Do"),))), CUT])]
    async with (
        ScriptedProvider(answer(dialect, run, End("calls")), *failing, answer(dialect, *DONE)) as provider,
        talking(workspace, dialect, provider) as talk,
    ):
        session = await talk.server.create()
        assert (await talk.server.say(session, "Log it")).reason == "done"
    assert workspace.files() == {"log.txt": "once\n"}
    first, *others = [asked.body for asked in provider.asked]
    assert assert_answered_once(dialect, first) == 0
    assert len(set(others)) == 1
    assert assert_answered_once(dialect, others[0]) == 1
    assert sum(isinstance(record, Started) for record in records(workspace, session)) == 1


@both
async def test_cancel_during_the_pause_before_a_repeat_stops_at_once(tmp_path: Path, dialect: Dialect) -> None:
    """G8, P3: a turn that waits to repeat its request stops at once; nothing more is sent, and the next prompt
    works."""
    workspace = Workspace.under(tmp_path)
    limited = Scripted([b"{}"], 429, {"retry-after": "30"}, "length")
    async with (
        ScriptedProvider(limited, answer(dialect, *DONE)) as provider,
        talking(workspace, dialect, provider) as talk,
    ):
        waiting = anyio.Event()

        async def wait_for_good(_: float) -> None:
            waiting.set()
            await anyio.sleep_forever()

        talk.server.registry.context.pause = wait_for_good
        session = await talk.server.create()
        accepted = await talk.server.send(session, "Hi")
        owner = await talk.server.registry.open_session(session)
        await waiting.wait()
        assert await prompt_queue.cancel(owner, accepted.turn_id)
        assert (await owner.feed.wait_until_ended(accepted.turn_id)).reason == "cancelled"
        assert len(provider.asked) == 1
        assert (await talk.server.say(session, "Again", "again")).reason == "done"


@both
async def test_usage_of_a_failed_answer_is_counted(tmp_path: Path, dialect: Dialect) -> None:
    """U1: an answer that had its usage and then an error, with nothing of it shown, was billed all the same: it gets a
    usage record, and the sum is incomplete where a count is missing."""
    workspace = Workspace.under(tmp_path)
    if dialect == "chat":
        used = event({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 5}})
        begun = used + plain(written(dialect, (Fail("server_error", "no"),)))
    elif dialect == "responses":
        failed = {"status": "failed", "error": {"code": "server_error", "message": "no"}, "output": []}
        used_up = {"input_tokens": 100, "output_tokens": 5}
        begun = event({"type": "response.failed", "response": {**failed, "usage": used_up}})
    else:
        begun = plain(written(dialect, (Fail("overloaded_error", "no"),)))
    async with (
        ScriptedProvider(Scripted([begun]), answer(dialect, *DONE)) as provider,
        talking(workspace, dialect, provider) as talk,
    ):
        session = await talk.server.create()
        assert (await talk.server.say(session, "Hi")).reason == "done"
        usage = session_settings.usage(talk.server.registry.sessions[session])
    assert len([record for record in records(workspace, session) if isinstance(record, Usage)]) == 2
    assert usage.complete is (dialect != "messages")
    assert usage.billed.input == (100 if dialect == "messages" else 200)


def event(told: object) -> bytes:
    return f"data: {json.dumps(told)}\n\n".encode()


@both
async def test_outage_counts_its_repeats_and_the_same_bytes_go_out_when_tried_again(
    tmp_path: Path, dialect: Dialect
) -> None:
    """Case 114: one outage is one line that counts and then one sentence. *Try again* sends the very bytes that
    failed, and the prompt after it begins with them."""
    down = Scripted(
        [b'{"error":{"message":"No healthy upstream"}}'], 503, {"content-type": "application/json"}, "length"
    )
    async with (
        ScriptedProvider(*[down] * 5, answer(dialect, *DONE)) as provider,
        talking(Workspace.under(tmp_path), dialect, provider) as talk,
    ):
        session = await talk.server.create()
        accepted = await talk.server.send(session, "Hi", "first")
        assert (await talk.server.ended(session, accepted.turn_id)).reason == "modelFailed"
        codes = [code for code, _ in talk.warned()]
        counted = [text for code, text in talk.warned() if code == "askedAgain"]
        assert codes == ["askedAgain"] * 4 + ["modelFailed"]
        assert [text[-7:-1] for text in counted] == ["1 of 4", "2 of 4", "3 of 4", "4 of 4"]
        assert all(": “No healthy upstream”" in text for _, text in talk.warned())
        again = Prompt("Hi", again=accepted.turn_id)
        assert (await talk.server.say(session, again, "again")).reason == "done"
        assert (await talk.server.say(session, "And now?", "later")).reason == "done"
    bodies = [asked.body for asked in provider.asked]
    assert len(bodies) == 7
    assert len(set(bodies[:6])) == 1
    assert stem(bodies[6]).startswith(stem(bodies[5]))


@both
async def test_quick_question_cut_for_good_keeps_nothing_and_says_so(tmp_path: Path, dialect: Dialect) -> None:
    """T6, S2: if the answer to a quick question is cut off for good, nothing of it is kept, and the user gets a
    message."""
    workspace = Workspace.under(tmp_path)
    begun = Scripted([plain(written(dialect, (Say("half"), WRITE))), CUT])
    async with ScriptedProvider(begun) as provider, talking(workspace, dialect, provider, again=1) as talk:
        session = await talk.server.create()
        assert (await talk.server.say(session, Prompt("Is it so?", aside=True))).reason == "cut"
        assert [code for code, _ in talk.warned()] == ["askedAgain", "cut"]
    assert len(provider.asked) == 2
    assert not any(isinstance(record, Assistant) for record in records(workspace, session))
    assert workspace.files() == {}
