"""Whole turns over real HTTP, and what their requests contain: read from the bytes, the same way for every dialect.

`Talk` is one session with a scripted provider: the real adapters, turn loop, journal and tools. Nothing waits: pauses
are counted, and the limit for silence strikes as soon as the provider stalls (`StruckClient`). `said` turns the body of
a request into the list of who said what; `assert_answered_once` is [I16] at the protocol of the provider.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar, cast

import anyio
import anyio.lowlevel
import attrs

from steadyhand.adapters.models.http import HttpClient, HttpError, HttpResponse
from steadyhand.adapters.models.remote import RemoteModel
from steadyhand.domain.records.record import Record, Unknown
from steadyhand.journal.format import read_journal
from steadyhand.ports.disk import Disk
from steadyhand.tools.contract import Tool
from tests.models.streams import Dialect, Step, plain, remote, written
from tests.support.editor import ScriptedEditor
from tests.support.in_process_server import InProcessServer, practice_server
from tests.support.scripted_provider import Scripted, ScriptedProvider
from tests.support.workspace import Workspace

T = TypeVar("T")

patience_s = 60.0


def answer(dialect: Dialect, *steps: Step) -> Scripted:
    """A whole answer, as most servers send it."""
    return Scripted([plain(written(dialect, steps))])


@attrs.define
class Pauses:
    """The pause of the context: it keeps the seconds and waits for none of them."""

    seconds: list[float] = attrs.field(factory=list)

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await anyio.lowlevel.checkpoint()


class StruckClient(HttpClient):
    """Waits as the real client does; its limit for silence strikes the moment the provider stalls."""

    def __init__(self, provider: ScriptedProvider) -> None:
        super().__init__()
        self._provider = provider

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, limit_s: float
    ) -> HttpResponse:
        answered = await self.struck(partial(super().send, method, url, headers, body, limit_s))
        return cast("HttpResponse", StruckResponse(answered, self))  # it has the same members

    async def struck(self, act: Callable[[], Awaitable[T]]) -> T:
        """The result of `act`, unless the limit for silence strikes first."""
        came: list[T] = []
        trouble = HttpError("silent")
        async with anyio.create_task_group() as tasks:

            async def strike() -> None:
                await self._provider.stalled.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(strike)
            try:
                came.append(await act())
            except HttpError as raised:
                trouble = raised
            tasks.cancel_scope.cancel()
        if not came:
            if trouble.kind == "silent":
                self._provider.stalled = anyio.Event()
            raise trouble
        return came[0]


@attrs.frozen
class StruckResponse:
    """An answer of `StruckClient`."""

    inner: HttpResponse
    client: StruckClient

    @property
    def status(self) -> int:
        return self.inner.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self.inner.headers

    async def read_piece(self, limit_s: float) -> bytes | None:
        return await self.client.struck(partial(self.inner.read_piece, limit_s))

    async def read_beginning(self, bytes_max: int, limit_s: float) -> bytes:
        return await self.inner.read_beginning(bytes_max, limit_s)

    async def close(self) -> None:
        await self.inner.close()


@attrs.frozen
class Talk:
    """One process run of a server whose model is behind HTTP."""

    server: InProcessServer
    pauses: Pauses

    @property
    def editor(self) -> ScriptedEditor:
        return self.server.editor

    def warned(self) -> list[tuple[str, str]]:
        return [(warning.code, warning.text) for warning in self.editor.warnings]


@asynccontextmanager
async def talking(
    workspace: Workspace,
    dialect: Dialect,
    provider: ScriptedProvider,
    *,
    again: int = 4,
    run: int = 1,
    tools: Sequence[Tool] = (),
    disk: Disk | None = None,
    model: RemoteModel | None = None,
) -> AsyncIterator[Talk]:
    """`again`: how many times a request is repeated. `model`: replaces the model of the dialect."""
    model = model or RemoteModel(remote(dialect, provider.address).access, StruckClient(provider))
    pauses = Pauses()
    try:
        with anyio.fail_after(patience_s):
            async with practice_server(
                workspace, run=run, models=lambda _, __: model, requests_again_max=again, pause=pauses, tools=tools,
                disk=disk,
            ) as server:  # fmt: skip
                yield Talk(server, pauses)
    finally:
        await model.client.close()


# --- the journal ---------------------------------------------------------------------------------------------


def records(workspace: Workspace, session: str) -> list[Record]:
    """The records in the file, which must be healthy."""
    loaded = read_journal(workspace.journal(session))
    assert not loaded.breaks
    return [stamped.record for stamped in loaded.records if not isinstance(stamped.record, Unknown)]


# --- requests ------------------------------------------------------------------------------------------------


@attrs.frozen
class Call:
    id: str
    tool: str
    arguments: Mapping[str, Any]


@attrs.frozen
class Reply:
    id: str
    text: str


@attrs.frozen
class Text:
    who: Literal["user", "assistant"]
    text: str


Turned: TypeAlias = "Text | Call | Reply"


def said(dialect: Dialect, body: bytes) -> list[Turned]:
    """Everything after the system text, in order, reasoning left out."""
    if dialect == "responses":
        return [_responses_said(item) for item in json.loads(body)["input"] if item["type"] != "reasoning"]
    told = json.loads(body)["messages"]
    turned: list[Turned] = []
    for message in told:
        if message["role"] == "system":
            continue
        turned += _chat_said(message) if dialect == "chat" else _messages_said(message)
    return turned


def _chat_said(message: Mapping[str, Any]) -> list[Turned]:
    if message["role"] == "tool":
        return [Reply(message["tool_call_id"], message["content"])]
    texts: list[Turned] = [Text(message["role"], message["content"])] if message["content"] else []
    return texts + [
        Call(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls", ())
    ]


def _messages_said(message: Mapping[str, Any]) -> list[Turned]:
    turned: list[Turned] = []
    for block in message["content"]:
        match block["type"]:
            case "text":
                turned.append(Text(message["role"], block["text"]))
            case "tool_use":
                turned.append(Call(block["id"], block["name"], block["input"]))
            case "tool_result":
                turned.append(Reply(block["tool_use_id"], block["content"]))
            case kind:
                assert kind in ("thinking", "redacted_thinking"), kind
    return turned


def _responses_said(item: Mapping[str, Any]) -> Turned:
    match item["type"]:
        case "function_call":
            return Call(item["call_id"], item["name"], json.loads(item["arguments"]))
        case "function_call_output":
            return Reply(item["call_id"], item["output"])
        case _:
            (part,) = item["content"]
            return Text(item["role"], part["text"])


def assert_answered_once(dialect: Dialect, body: bytes) -> int:
    """Assert that each call has its one reply, in order, before anything else [I16]; return the number of calls."""
    owed: list[str] = []
    seen: set[str] = set()
    for turned in said(dialect, body):
        match turned:
            case Call(id):
                assert id not in seen, "a call appears twice"
                seen.add(id)
                owed.append(id)
            case Reply(id, text):
                assert owed, "a reply to nothing"
                assert owed.pop(0) == id
                assert text.strip()
            case Text(who):
                assert not owed or who == "assistant", "a call without its reply"
    assert owed == []
    return len(seen)


def stem(body: bytes) -> bytes:
    """A body up to the end of the last block of its last message: the part that only grows (row P4)."""
    opening = b'"messages":' if b'"messages":' in body else b'"input":'
    at = body.index(opening) + len(opening)
    told, end = json.JSONDecoder().raw_decode(body.decode()[len(body[:at].decode()) :])
    assert told
    text = body.decode()[: len(body[:at].decode()) + end]
    return text.rstrip("]}").encode()
