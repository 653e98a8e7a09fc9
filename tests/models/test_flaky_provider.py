"""Turns with many calls against a provider that always fails: nothing runs twice, nothing is lost (P3, T6, I16)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from steadyhand.domain.records.record import Assistant, Ended, Intent, Result, Started
from steadyhand.domain.records.record import ToolResult as Replied
from tests.models.dialogue import Talk, Text, assert_answered_once, records, said, stem, talking
from tests.models.flaky import FAULTS, LOST, Flaky
from tests.models.streams import DIALECTS, Ask, Dialect, End, Say, Step, Think
from tests.support.scripted_provider import Scripted, ScriptedProvider
from tests.support.sink import SendTool, Sink
from tests.support.workspace import Workspace

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("dialect", DIALECTS)


def ask(tool: str, **arguments: Any) -> Ask:
    """A call; its arguments come in three pieces."""
    text = json.dumps(arguments, ensure_ascii=False)
    third = len(text) // 3
    return Ask(tool, (text[:third], text[third : 2 * third], text[2 * third :]), "call_0")


def add_line(number: int) -> Ask:
    return ask("run_command", command=f"echo line {number} >> log.txt")


CALLS: tuple[tuple[Ask, ...], ...] = (
    (ask("send", text="first"),),
    (add_line(1),),
    (ask("write_file", path="a.txt", content="one é🙂\n"),),
    (ask("read_file", path="a.txt"), ask("send", text="second")),
    (ask("edit_file", path="a.txt", edits=[{"old": "one", "new": "two"}]),),
    (add_line(2),),
    (ask("send", text="third"), add_line(3)),
    (ask("write_file", path="sub/b.txt", content="b"),),
    (ask("move_file", **{"from": "sub/b.txt", "to": "c.txt"}),),
    (ask("send", text="first"),),  # requested again after it is done: another effect (N2)
    (add_line(4),),
    (ask("write_file", path="gone.txt", content="x"), ask("delete_file", path="gone.txt")),
    (ask("read_file", path="missing.txt"), ask("list_files")),
    (add_line(5),),
    (ask("edit_file", path="a.txt", edits=[{"old": "two", "new": "three"}]),),
    (ask("send", text="last"),),
)


def answer_with(calls: tuple[Ask, ...]) -> tuple[Step, ...]:
    return (Think("Hm."), Say("Next."), *calls, End("calls"))


ANSWERS = (*map(answer_with, CALLS), (Say("All done."), End("stop")))
SENT = ["first", "second", "third", "first", "last"]


def test_the_turn_below_has_twenty_calls_and_every_fault() -> None:
    """What the turn below consists of: 20 calls, and every fault within it (P3)."""
    assert sum(map(len, CALLS)) == 20
    assert len(FAULTS) >= 25


async def whole_turn(talk: Talk, prompt: str) -> tuple[str, str]:
    """(session, how it ended)."""
    session = await talk.server.create()
    return session, (await talk.server.say(session, prompt)).reason


@both
@pytest.mark.parametrize("each", [2, 4])
async def test_no_tool_runs_twice_under_constant_faults(tmp_path: Path, dialect: Dialect, each: int) -> None:
    """P3, T6, T1, I16, cases 89, 92: 20 calls, `each` faults before every answer; each effect happens once."""
    workspace = Workspace.under(tmp_path)
    sink = Sink(tmp_path)
    flaky = Flaky(dialect, ANSWERS, each)
    async with (
        ScriptedProvider(answering=flaky) as provider,
        talking(workspace, dialect, provider, tools=[SendTool(sink)]) as talk,
    ):
        session, reason = await whole_turn(talk, "Do all of it")
    assert reason == "done"
    assert len(flaky.played) == each * len(ANSWERS)
    assert set(flaky.played) == set(FAULTS)

    assert workspace.files() == {
        "a.txt": "three é🙂\n",
        "c.txt": "b",
        "log.txt": "".join(f"line {number}\n" for number in range(1, 6)),
    }
    assert len(sink.arrived()) == len(SENT)
    assert len(set(sink.arrived())) == len(SENT), "each arrival is an effect of its own"

    kept = records(workspace, session)
    calls = {call.call_id: call.tool for told in kept if isinstance(told, Assistant) for call in told.calls}
    assert list(calls.values()) == [step.tool for answer in CALLS for step in answer]
    counted = {
        kind: Counter(told.call_id for told in kept if isinstance(told, kind))
        for kind in (Intent, Started, Result, Replied)
    }
    for call_id, tool in calls.items():
        reads = tool in ("read_file", "list_files")
        assert counted[Intent][call_id] == counted[Replied][call_id] == 1
        assert counted[Started][call_id] == counted[Result][call_id] == (0 if reads else 1), tool
    assert [told.reason for told in kept if isinstance(told, Ended)] == ["done"]

    assert len(provider.asked) == len(flaky.played) + len(ANSWERS)
    before = b""
    for asked in provider.asked:
        assert_answered_once(dialect, asked.body)
        assert LOST.encode() not in asked.body
        assert stem(asked.body).startswith(before)
        before = stem(asked.body)
    assert assert_answered_once(dialect, provider.asked[-1].body) == 20

    withdrawn = [told for told in kept if isinstance(told, Assistant) and told.withdrawn]
    assert len(withdrawn) > len(flaky.played) // 5
    assert all(told.calls == () for told in withdrawn)
    assert {code for code, _ in talk.warned()} == {"askedAgain"}
    assert len(talk.warned()) == len(flaky.played) == len(talk.pauses.seconds)
    assert all(wished in talk.pauses.seconds for wished in (7.0, 2.5))


INSTEAD = {
    "a page": (Scripted([b"<!DOCTYPE html><title>Log in</title>"], headers={"content-type": "text/html"}), 1, None),
    "a page, 404": (Scripted([b"<html>no</html>"], 404, {"content-type": "text/html"}, "length"), 1, None),
    "elsewhere": (Scripted([], 307, {"location": "http://elsewhere.example/"}, "length"), 1, 307),
    "nothing left": (Scripted([b"{}"], 402, {}, "length"), 1, 402),
    "forbidden": (Scripted([b"{}"], 403, {}, "length"), 1, 403),
    "too large": (Scripted([b"{}"], 413, {}, "length"), 1, 413),
    "a long pause": (Scripted([b"{}"], 429, {"retry-after": "3600"}, "length"), 1, 429),
    "always overloaded": (Scripted([b"{}"], 529, {}, "length"), 5, 529),
    "always cut": (Scripted([b""]), 5, None),
}


@both
@pytest.mark.parametrize("what", INSTEAD)
async def test_prompt_after_a_final_failure_does_the_rest_once(tmp_path: Path, dialect: Dialect, what: str) -> None:
    """P3, T6, case 92: in the middle of a turn the provider fails for good, or longer than the request is repeated. The
    turn ends with one sentence. What ran is kept and the model gets its replies, and the next prompt does the rest,
    once."""
    workspace, sink = Workspace.under(tmp_path), Sink(tmp_path)
    instead, asked_times, status = INSTEAD[what]
    flaky = Flaky(dialect, (*ANSWERS[:2], ANSWERS[-1]), blocked={1: instead})
    async with (
        ScriptedProvider(answering=flaky) as provider,
        talking(workspace, dialect, provider, tools=[SendTool(sink)]) as talk,
    ):
        session, reason = await whole_turn(talk, "Do both")
        ended = "cut" if what == "always cut" else "modelFailed"
        assert reason == ended
        assert len(provider.asked) == 1 + asked_times
        *again, (code, sentence) = talk.warned()
        assert [code for code, _ in again] == ["askedAgain"] * (asked_times - 1)
        assert code == ended
        assert status is None or str(status) in sentence
        assert sentence.endswith(".")
        assert talk.pauses.seconds == [1.0, 2.0, 4.0, 8.0][: asked_times - 1]
        assert (len(sink.arrived()), workspace.files()) == (1, {})
        flaky.blocked.clear()
        assert (await talk.server.say(session, "Go on", "again")).reason == "done"
        assert (len(sink.arrived()), workspace.files()) == (1, {"log.txt": "line 1\n"})
    last = provider.asked[-1].body
    assert assert_answered_once(dialect, last) == 2
    assert [turned.text for turned in said(dialect, last) if isinstance(turned, Text) and turned.who == "user"] == [
        "Do both", "Go on",
    ]  # fmt: skip
