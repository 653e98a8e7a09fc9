"""Whole turns over real HTTP, and what their requests say: read from the bytes, the same for both dialects.

`Talk` is one session's way to a scripted provider: the real adapters, the real loop, journal and tools. Nothing is
waited for: pauses are counted, and silence is over as soon as the provider stalls (`StruckClient`). `said` folds a
request's body to who said what; `assert_answered_once` is [I16] on the wire.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar

import anyio
import anyio.lowlevel
import attrs

from steadyhand.adapters.http_client import HttpClient, HttpTrouble, Response
from steadyhand.adapters.model_remote import RemoteModel
from steadyhand.core.record import Record, Unknown
from steadyhand.journal.format import read_journal
from steadyhand.ports import Disk
from steadyhand.tools.tool import Tool
from tests.models.streams import Dialect, Step, plain, remote, written
from tests.support.scripted_provider import Scripted, ScriptedProvider
from tests.support.turns import Place, Rig, ScriptedEditor, rig

T = TypeVar("T")

patience_s = 60.0


def answer(dialect: Dialect, *steps: Step) -> Scripted:
    """A whole answer, as most servers send it."""
    return Scripted([plain(written(dialect, steps))])


@attrs.define
class Pauses:
    """`World.pause` that keeps the seconds and waits for none of them."""

    seconds: list[float] = attrs.field(factory=list)

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await anyio.lowlevel.checkpoint()


class StruckClient(HttpClient):
    """Waits as the real one does, and its limit for silence strikes the moment the provider holds an answer back."""

    def __init__(self, provider: ScriptedProvider) -> None:
        super().__init__()
        self._provider = provider

    async def send(self, *request: Any) -> StruckResponse:
        return StruckResponse(await self.struck(partial(super().send, *request)), self)

    async def struck(self, act: Callable[[], Awaitable[T]]) -> T:
        """What `act` gives, unless silence strikes first."""
        came: list[T] = []
        trouble = HttpTrouble("silent")
        async with anyio.create_task_group() as tasks:

            async def strike() -> None:
                await self._provider.stalled.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(strike)
            try:
                came.append(await act())
            except HttpTrouble as raised:
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

    inner: Response
    client: StruckClient

    @property
    def status(self) -> int:
        return self.inner.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self.inner.headers

    async def piece(self, limit_s: float) -> bytes | None:
        return await self.client.struck(partial(self.inner.piece, limit_s))

    async def beginning(self, bytes_max: int, limit_s: float) -> bytes:
        return await self.inner.beginning(bytes_max, limit_s)

    async def close(self) -> None:
        await self.inner.close()


@attrs.frozen
class Talk:
    """One life of a server whose model is behind HTTP."""

    rig: Rig
    pauses: Pauses

    @property
    def editor(self) -> ScriptedEditor:
        return self.rig.editor

    def warned(self) -> list[tuple[str, str]]:
        return [(warning.code, warning.text) for warning in self.editor.warnings]


@asynccontextmanager
async def talking(
    place: Place,
    dialect: Dialect,
    provider: ScriptedProvider,
    *,
    again: int = 4,
    life: int = 1,
    tools: Sequence[Tool] = (),
    disk: Disk | None = None,
    model: RemoteModel | None = None,
) -> AsyncIterator[Talk]:
    """`again`: how often a request is asked again. `model`: another one than the dialect's."""
    model = model or RemoteModel(remote(dialect, provider.address).access, StruckClient(provider))
    pauses = Pauses()
    try:
        with anyio.fail_after(patience_s):
            async with rig(
                place, life=life, models=lambda _, __: model, requests_again_max=again, pause=pauses, tools=tools,
                disk=disk,
            ) as house:  # fmt: skip
                yield Talk(house, pauses)
    finally:
        await model.client.close()


# --- the journal ---------------------------------------------------------------------------------------------


def records(place: Place, session: str) -> list[Record]:
    """What the file has, which is healthy."""
    loaded = read_journal(place.journal(session))
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


def assert_answered_once(dialect: Dialect, body: bytes) -> int:
    """Each call has its one reply, in order, before anything else [I16]; how many there are."""
    owed: list[str] = []
    seen: set[str] = set()
    for turned in said(dialect, body):
        match turned:
            case Call(id):
                assert id not in seen, "a call stands twice"
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
    """A body up to the end of its last message's last block: what may only grow (row P4)."""
    at = body.index(b'"messages":') + len(b'"messages":')
    told, end = json.JSONDecoder().raw_decode(body.decode()[len(body[:at].decode()) :])
    assert told
    text = body.decode()[: len(body[:at].decode()) + end]
    return text.rstrip("]}").encode()
