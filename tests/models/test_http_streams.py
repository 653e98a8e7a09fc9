"""The same streams over real HTTP on this machine: framing, compression, cuts, silence, redirects, proxies."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, cast

import anyio
import pytest

from steadyhand.adapters import model_remote
from steadyhand.adapters.model_remote import RemoteModel
from steadyhand.core.model import ModelRequest, ModelTrouble, TextPart, UsagePart, UserMessage
from tests.models.streams import (
    DIALECTS,
    KEY,
    SCENARIOS,
    Ask,
    Dialect,
    End,
    Heard,
    Say,
    Step,
    event_text,
    expected,
    merged,
    pieces,
    plain,
    remote,
    written,
    zipped,
)
from tests.support.scripted_provider import CUT, RESET, Framing, Scripted, ScriptedProvider
from tests.support.scripted_provider import Step as ScriptStep

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("dialect", DIALECTS)
REQUEST = ModelRequest("Be good.", (), (UserMessage("Hi"),))
HI = (Say("Hi"), End("stop"))
patience_s = 20.0


@asynccontextmanager
async def ready(
    dialect: Dialect, *answers: Scripted, **more: Any
) -> AsyncIterator[tuple[RemoteModel, ScriptedProvider]]:
    async with ScriptedProvider(*answers) as provider:
        model = remote(dialect, provider.address, **more)
        try:
            with anyio.fail_after(patience_s):
                yield model, provider
        finally:
            await model.client.close()


async def hear(model: RemoteModel) -> Heard:
    heard = Heard()
    try:
        async with aclosing(cast(Any, model.ask(REQUEST))) as parts:
            async for part in parts:
                heard.parts.append(part)
    except ModelTrouble as trouble:
        heard.trouble = trouble
    return heard


@both
@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize("zip_it", [False, True], ids=["plain", "gzip"])
async def test_every_scenario_over_http(dialect: Dialect, framing: Framing, zip_it: bool) -> None:
    """Every scenario, by length, in chunks, until the close, and compressed, comes to the same parts (P1)."""
    headers = {"content-type": "text/event-stream", **({"content-encoding": "gzip"} if zip_it else {})}
    streams = [plain(written(dialect, scenario.steps)) for scenario in SCENARIOS]
    answers = [
        Scripted(pieces(zipped(stream) if zip_it else stream, 701), headers=headers, framing=framing)
        for stream in streams
    ]
    async with ready(dialect, *answers) as (model, _):
        for scenario in SCENARIOS:
            heard = await hear(model)
            assert heard.trouble is None, scenario.name
            assert merged(heard.parts) == expected(scenario.steps), scenario.name


@both
@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
async def test_cut_at_every_byte_over_http(dialect: Dialect, framing: Framing) -> None:
    """The connection cut at any byte of the body: whole or cut, never a call before the reason was told (T6, P3)."""
    steps = (Say("é"), Ask("a", ('{"x":1}',)), End("calls"))
    stream = plain(written(dialect, steps))
    told = b'"finish_reason": "tool_calls"' if dialect == "chat" else b'"stop_reason": "tool_use"'
    reason_at = stream.index(told)
    reason_end = stream.index(b"\n", reason_at)
    cuts = range(len(stream))
    answers = [Scripted([_cut_response(framing, stream, at), CUT], raw=True) for at in cuts]
    async with ready(dialect, *answers) as (model, _):
        for at in cuts:
            heard = await hear(model)
            assert heard.trouble is None, at
            assert heard.whole is (at >= reason_end), at
            assert len(heard.calls) == (at >= reason_end), at


def _cut_response(framing: Framing, stream: bytes, at: int) -> bytes:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    if framing == "length":
        return head + b"content-length: %d\r\n\r\n" % len(stream) + stream[:at]
    if framing == "chunked":
        return head + b"transfer-encoding: chunked\r\n\r\n%x\r\n" % len(stream) + stream[:at]
    return head + b"connection: close\r\n\r\n" + stream[:at]


@both
async def test_cut_compressed_streams(dialect: Dialect) -> None:
    """A compressed stream that breaks off is cut; one whose bytes are damaged is trouble (P3)."""
    stream = zipped(plain(written(dialect, (Say("word " * 400), Ask("a", ('{"x":1}',)), End("calls")))))
    headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    cuts = range(12, len(stream) - 60, 9)
    async with ready(dialect, *(Scripted([stream[:at], CUT], headers=headers) for at in cuts)) as (model, _):
        for _ in cuts:
            heard = await hear(model)
            assert not heard.whole
            assert heard.calls == []
    async with ready(dialect, Scripted([b"this is no gzip at all"], headers=headers)) as (model, _):
        heard = await hear(model)
    assert heard.trouble is not None
    assert (heard.trouble.kind, heard.trouble.retryable) == ("garbled", True)


@both
async def test_a_reset_in_mid_stream_is_a_cut(dialect: Dialect) -> None:
    """A connection that is reset after text: the text, no finish, no trouble (T6)."""
    begun = plain(written(dialect, (Say("par"),)))
    async with ready(dialect, Scripted([begun, RESET])) as (model, _):
        heard = await hear(model)
    assert heard.trouble is None
    assert not heard.whole


@both
@pytest.mark.parametrize("last", [CUT, RESET])
async def test_closed_before_an_answer(dialect: Dialect, last: Any) -> None:
    """A connection closed or reset before the first byte of an answer is trouble that may pass (P3)."""
    async with ready(dialect, Scripted([last], raw=True)) as (model, _):
        heard = await hear(model)
    assert heard.trouble is not None
    assert (heard.trouble.kind, heard.trouble.retryable) == ("unreachable", True)


@both
async def test_half_a_head(dialect: Dialect) -> None:
    """An answer's head that breaks off, and one that is no HTTP, are trouble that may pass (P3)."""
    for head in (b"HTTP/1.1 200 OK\r\ncontent-ty", b"SSH-2.0-OpenSSH_9.2\r\n\r\n"):
        async with ready(dialect, Scripted([head, CUT], raw=True)) as (model, _):
            heard = await hear(model)
        assert heard.trouble is not None
        assert (heard.trouble.kind, heard.trouble.retryable) == ("unreachable", True)


@both
async def test_nobody_there(dialect: Dialect) -> None:
    """A port nobody listens at, and a name that leads nowhere (P3)."""
    async with ScriptedProvider(Scripted()) as provider:
        address = provider.address
    for place, words in ((address, "cannot be reached"), ("http://nowhere.invalid", "leads nowhere")):
        model = remote(dialect, place)
        heard = await hear(model)
        await model.client.close()
        assert heard.trouble is not None
        assert (heard.trouble.kind, heard.trouble.retryable) == ("unreachable", True)
        assert words in str(heard.trouble)


@both
async def test_silence_is_trouble(dialect: Dialect) -> None:
    """No byte within the limit, before the head or in mid-stream, is trouble that may pass; the socket closes (P3)."""
    begun = plain(written(dialect, (Say("par"),)))
    cases: list[tuple[list[ScriptStep], bool]] = [([anyio.Event()], True), ([begun, anyio.Event()], False)]
    for steps, raw in cases:
        async with ready(dialect, Scripted(steps, raw=raw), silence_s_max=0.2) as (model, provider):
            heard = await hear(model)
            assert heard.trouble is not None
            assert (heard.trouble.kind, heard.trouble.retryable) == ("silent", True)
            assert [p for p in heard.parts if isinstance(p, TextPart)] == ([] if raw else [TextPart("par")])
            await provider.gone.wait()


@both
@pytest.mark.parametrize("life", [": keep-alive\n\n", 'event: ping\ndata: {"type": "ping"}\n\n'])
async def test_keep_alives_are_life_and_no_progress(dialect: Dialect, life: str) -> None:
    """Comments and pings keep the silence limit off, and not the limit of progress (P3)."""
    begun = plain(written(dialect, (Say("par"),)))
    lives = [life.encode()] * 40
    model_clock = _Clock()
    async with ScriptedProvider(Scripted([begun, *lives, anyio.Event()])) as provider:
        made = remote(dialect, provider.address)
        model = RemoteModel(made.access, made.client, model_clock.passing_s)
        with anyio.fail_after(patience_s):
            heard = await hear(model)
        await model.client.close()
    assert heard.trouble is not None
    assert heard.trouble.kind == "silent"
    assert "without answering" in str(heard.trouble)
    assert merged([p for p in heard.parts if not isinstance(p, UsagePart)]) == [TextPart("par")]


@both
async def test_slow_progress_is_progress(dialect: Dialect) -> None:
    """However long an answer takes, it is let go on as long as something new comes (P3)."""
    steps: tuple[Step, ...] = (*(Say(f"{number} ") for number in range(200)), End("stop"))
    events = [event_text(event).encode() for event in written(dialect, steps)]
    clock = _Clock()
    async with ScriptedProvider(Scripted([piece for event in events for piece in (b": life\n\n", event)])) as provider:
        made = remote(dialect, provider.address)
        heard = await hear(RemoteModel(made.access, made.client, clock.passing_s))
        await made.client.close()
    assert heard.trouble is None
    assert merged(heard.parts) == expected(steps)
    assert clock.now > made.profile.progress_s_max


class _Clock:
    """A minute passes with each look."""

    now = 0.0

    def passing_s(self) -> float:
        self.now += 60.0
        return self.now


@both
async def test_an_open_connection_after_the_reason(dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason was told and the server keeps the connection: whole after a short wait, not silence (P1)."""
    monkeypatch.setattr(model_remote, "after_finish_s_max", 0.1)
    events = written(dialect, HI)
    over = events[:-1]
    async with ready(dialect, Scripted([plain(over), anyio.Event()])) as (model, _):
        heard = await hear(model)
    assert heard.trouble is None
    assert merged(heard.parts) == expected(HI)


@both
async def test_leaving_early_closes_the_connection(dialect: Dialect) -> None:
    """A cancel in mid-stream is seen by the server at once, and the next request is served (G8)."""
    begun = plain(written(dialect, (Say("par"),)))
    whole = Scripted([plain(written(dialect, HI))])
    async with ready(dialect, Scripted([begun, anyio.Event()]), whole) as (model, provider):
        with anyio.CancelScope() as scope:
            async with aclosing(cast(Any, model.ask(REQUEST))) as parts:
                async for part in parts:
                    if isinstance(part, TextPart):
                        scope.cancel()
        assert scope.cancelled_caught
        await provider.gone.wait()
        assert merged((await hear(model)).parts) == expected(HI)


STATUSES = [
    (400, "rejected", False), (401, "key", False), (402, "balance", False), (403, "forbidden", False),
    (404, "notFound", False), (408, "server", True), (413, "tooLarge", False), (418, "rejected", False),
    (422, "rejected", False), (429, "rate", True), (500, "server", True), (501, "rejected", False),
    (502, "server", True), (503, "overloaded", True), (504, "server", True), (529, "overloaded", True),
    (301, "redirected", False), (307, "redirected", False), (308, "redirected", False),
]  # fmt: skip


@both
@pytest.mark.parametrize(("status", "kind", "retryable"), STATUSES)
async def test_every_status(dialect: Dialect, status: int, kind: str, retryable: bool) -> None:
    """Each status ends in one sentence that names it and says what to do; nothing is followed or sent again (P3)."""
    error = {"error": {"message": f"Scripted trouble with {KEY}", "type": "x", "param": None, "code": None}}
    headers = {"content-type": "application/json", "retry-after": "7", "location": "http://elsewhere.example/v1?k=1"}
    answer = Scripted([json.dumps(error).encode()], status, headers, "length")
    async with ready(dialect, answer) as (model, provider):
        heard = await hear(model)
    assert heard.trouble is not None
    assert (heard.trouble.kind, heard.trouble.retryable, heard.trouble.status) == (kind, retryable, status)
    assert heard.parts == []
    assert len(provider.asked) == 1
    said = str(heard.trouble)
    assert KEY not in said
    assert said.endswith(".")
    assert "\n" not in said
    assert ("402" in said) is (status == 402)
    assert (heard.trouble.retry_after_s == 7.0) is (status >= 400)
    if status < 400:
        assert "elsewhere.example" in said
        assert "k=1" not in said


@both
async def test_a_page_with_a_bad_status(dialect: Dialect) -> None:
    """A web page under 404 or 403 is no provider; under 502 it is a provider that fails (P3)."""
    for status, kind in ((404, "notAProvider"), (403, "notAProvider"), (502, "server")):
        page = Scripted([b"<html><body>nginx</body></html>"], status, {"content-type": "text/html"}, "length")
        async with ready(dialect, page) as (model, _):
            heard = await hear(model)
        assert heard.trouble is not None
        assert heard.trouble.kind == kind
        assert "nginx" not in str(heard.trouble)


@both
async def test_an_error_body_without_an_end(dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    """The body of a refusal is read within bounds of bytes and time, and its status counts all the same [I13]."""
    monkeypatch.setattr(model_remote, "error_s_max", 0.1)
    monkeypatch.setattr(model_remote, "error_bytes_max", 1000)
    cases: list[list[ScriptStep]] = [[b"x" * 100, anyio.Event()], [b"y" * 100_000, anyio.Event()]]
    for steps in cases:
        async with ready(dialect, Scripted(steps, 429, {"content-type": "text/plain"})) as (model, _):
            heard = await hear(model)
        assert heard.trouble is not None
        assert heard.trouble.kind == "rate"
        assert len(str(heard.trouble)) < 500


@both
async def test_a_proxy_from_the_environment(dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP_PROXY is used for a provider elsewhere, never for this machine; one that cannot be used is said (P1)."""
    async with ScriptedProvider(Scripted([plain(written(dialect, HI))])) as provider:
        for name in ("NO_PROXY", "no_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", provider.address)
        away = remote(dialect, "http://provider.invalid/v1")
        assert merged((await hear(away)).parts) == expected(HI)
        await away.client.close()
        assert provider.asked[0].target.startswith("http://provider.invalid/v1/")
        for host in ("127.0.0.1", "localhost"):
            here = remote(dialect, provider.address.replace("127.0.0.1", host))
            assert (await hear(here)).whole
            await here.client.close()
            assert provider.asked[-1].target.startswith("/")
    monkeypatch.setenv("http_proxy", "socks9://user:hunter2secret@127.0.0.1:1")
    broken = remote(dialect, "http://provider.invalid/v1")
    heard = await hear(broken)
    assert heard.trouble is not None
    assert "proxy" in str(heard.trouble).lower()
    assert "hunter2" not in str(heard.trouble)


@both
async def test_the_key_stands_in_its_header_alone(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The key is in one header, and in no log of any level, no address, body, sentence or repr (E2)."""
    caplog.set_level(logging.DEBUG)
    refusal = Scripted([f'{{"error":{{"message":"no such key {KEY}"}}}}'.encode()], 400, {}, "length")
    async with ready(dialect, Scripted([plain(written(dialect, HI))]), refusal) as (model, provider):
        assert (await hear(model)).whole
        heard = await hear(model)
    asked = provider.asked[0]
    holding = [name for name, value in asked.headers.items() if KEY in value]
    assert holding == (["authorization"] if dialect == "chat" else ["x-api-key"])
    assert KEY not in asked.target
    assert KEY.encode() not in asked.body
    assert "[key]" in str(heard.trouble)
    assert KEY not in caplog.text + str(heard.trouble) + repr(model.access) + repr(vars(heard.trouble))


@both
async def test_one_request_is_sent_once(dialect: Dialect) -> None:
    """The adapter sends nothing again by itself, whatever happens: that is the turn's to decide (P3)."""
    troubles: Mapping[str, Scripted] = {
        "500": Scripted([], 500, {}, "length"),
        "429": Scripted([], 429, {"retry-after": "0"}, "length"),
        "cut": Scripted([CUT]),
        "early": Scripted([CUT], raw=True),
    }
    for what, answer in troubles.items():
        async with ready(dialect, answer) as (model, provider):
            await hear(model)
        assert len(provider.asked) == 1, what


async def test_the_library_is_not_imported_at_the_start() -> None:
    """Building a model imports no HTTP library; only the first request does (A8's start stays quick)."""
    import subprocess
    import sys

    code = (
        "import sys\n"
        "from steadyhand.adapters.model_providers import ModelSettings, RemoteModels\n"
        "made = RemoteModels(lambda: ModelSettings('deepseek'), dict).model('deepseek', 'deepseek')\n"
        "sys.exit(any(name.startswith(('httpx', 'httpcore', 'ssl')) for name in sys.modules))\n"
    )
    with anyio.fail_after(patience_s):
        ended = await anyio.run_process([sys.executable, "-c", code], stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 0, ended.stderr.decode()


@both
async def test_requests_say_what_they_are(dialect: Dialect) -> None:
    """Path, method and content type are the dialect's; a base URL may end as people copy it (P1)."""
    answer = Scripted([plain(written(dialect, HI))])
    ending = "/v1/chat/completions/" if dialect == "chat" else "/v1/messages"
    async with ScriptedProvider(answer) as provider:
        model = remote(dialect, provider.address + ending)
        assert (await hear(model)).whole
        await model.client.close()
    (asked,) = provider.asked
    assert (asked.method, asked.target) == ("POST", ending.rstrip("/"))
    assert asked.headers["content-type"] == "application/json"
