"""Turns of the real session over the real adapters: what a provider streams is what runs, is shown and is sent back."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from steadyhand.adapters.models.remote_models import ModelSettings, RemoteModels
from tests.models.streams import DIALECTS, ENCRYPTED, KEY, PROVIDER, Ask, Dialect, End, Say, Step, Think, plain, written
from tests.support.in_process_server import practice_server
from tests.support.scripted_provider import CUT, Scripted, ScriptedProvider
from tests.support.workspace import Workspace

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("dialect", DIALECTS)
patience_s = 60.0


def answer(dialect: Dialect, *steps: Step) -> Scripted:
    return Scripted([plain(written(dialect, steps))])


async def turn(
    workspace: Workspace,
    dialect: Dialect,
    provider: ScriptedProvider,
    *prompts: str,
    run: int = 1,
    session: str | None = None,
) -> tuple[str, list[str], list[str]]:
    """(session, reason of each turn, warnings) of a session with this provider."""
    settings = ModelSettings(PROVIDER[dialect], provider.address, "MINE", dialect)
    models = RemoteModels(lambda: settings, lambda: {"MINE": KEY})
    reasons: list[str] = []
    with anyio.fail_after(patience_s):
        async with practice_server(
            workspace, run=run, models=lambda _, __: models.model(PROVIDER[dialect], "a-model")
        ) as server:
            if session is None:
                session = await server.create()
            else:
                await server.open(session)
            for number, prompt in enumerate(prompts):
                reasons.append((await server.say(session, prompt, f"prompt-{run}-{number}")).reason)
            warned = [warning.text for warning in server.editor.warnings]
        await models.close()
    return session, reasons, warned


@both
async def test_streamed_call_runs_and_its_reply_is_sent_back(tmp_path: Path, dialect: Dialect) -> None:
    """A streamed call runs, its reply goes back behind it, and so does the reasoning where it belongs (P1, T1, T5)."""
    workspace = Workspace.under(tmp_path)
    write = Ask("write_file", ('{"path":"a.txt",', '"content":"é🙂\\n"}'), "call_9")
    answers = [
        answer(dialect, Think("Hm."), Say("I write."), write, End("calls")),
        answer(dialect, Say("Done."), End("stop")),
        answer(dialect, Say("Again."), End("stop")),
    ]
    async with ScriptedProvider(*answers) as provider:
        session, reasons, warned = await turn(workspace, dialect, provider, "Write a.txt", "And now?")
        assert (reasons, warned) == (["done", "done"], [])
        assert workspace.files() == {"a.txt": "é🙂\n"}
        first, second, third = (asked.body for asked in provider.asked)
        _, reasons, _ = await turn(workspace, dialect, provider, "After a restart", run=2, session=session)
    body = json.loads(second)
    told = body["input"] if dialect == "responses" else body["messages"]
    if dialect == "responses":
        kinds = ["message", "reasoning", "message", "function_call", "function_call_output"]
        assert [item["type"] for item in told] == kinds
        assert told[1]["encrypted_content"] == ENCRYPTED
        assert told[4]["call_id"] == told[3]["call_id"]
    elif dialect == "chat":
        assert [message["role"] for message in told] == ["system", "user", "assistant", "tool"]
        assert told[2]["reasoning_content"] == "Hm."
        assert told[3]["tool_call_id"] == told[2]["tool_calls"][0]["id"]
    else:
        assert [[block["type"] for block in message["content"]] for message in told] == [
            ["text"], ["thinking", "text", "tool_use"], ["tool_result"],
        ]  # fmt: skip
    ends = [body.rindex(b"]", 0, body.index(b'"stream":true')) for body in (first, second, third)]
    assert second.startswith(first[: ends[0] - 2])
    assert third.startswith(second[: ends[1] - 2])
    assert provider.asked[3].body.startswith(third[: ends[2] - 2])
    assert KEY.encode() not in workspace.journal(session)


@both
async def test_cut_call_does_not_run_and_is_reported(tmp_path: Path, dialect: Dialect) -> None:
    """Cut in the arguments of a call or after them, or ended by length: nothing runs, and the turn says so (T6, case
    89)."""
    whole = '{"path":"a.txt","content":"x"}'
    started = plain(written(dialect, (Say("I write."), Ask("write_file", (whole[:20],)))))
    closed = plain(written(dialect, (Say("I write."), Ask("write_file", (whole,)))))
    cases = [
        (Scripted([started, CUT]), "cut"),
        (Scripted([closed]), "cut"),
        (answer(dialect, Ask("write_file", (whole,)), End("length")), "length"),
    ]
    for number, (scripted, reason) in enumerate(cases):
        workspace = Workspace.under(tmp_path / str(number))
        async with ScriptedProvider(scripted) as provider:
            _, reasons, _ = await turn(workspace, dialect, provider, "Write a.txt")
        assert reasons == [reason]
        assert workspace.files() == {}


@both
async def test_refused_key_ends_the_turn_with_one_sentence(tmp_path: Path, dialect: Dialect) -> None:
    """A refused key ends the turn with the sentence of the adapter; the key is nowhere on disk (P3, E2)."""
    workspace = Workspace.under(tmp_path)
    refused = Scripted([json.dumps({"error": {"message": f"bad {KEY}"}}).encode()], 401, {}, "length")
    async with ScriptedProvider(refused) as provider:
        session, reasons, warned = await turn(workspace, dialect, provider, "Hi")
    assert reasons == ["modelFailed"]
    assert len(warned) == 1
    assert "does not accept the key (401)" in warned[0]
    assert "MINE" in warned[0]
    assert not any(KEY.encode() in path.read_bytes() for path in workspace.base.rglob("*") if path.is_file())
    assert session
