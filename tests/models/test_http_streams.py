"""The same streams over real HTTP on this machine: framing, compression, cuts, silence, redirects, proxies."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, cast

import anyio
import pytest

from steadyhand.adapters.models import remote as model_remote
from steadyhand.adapters.models.remote import RemoteModel
from steadyhand.domain.model.messages import ModelRequest, ProviderError, TextPart, UsagePart, UserMessage
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
    reason_of,
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
patience_s = 100.0


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
    except ProviderError as trouble:
        heard.trouble = trouble
    return heard


@both
@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize("zip_it", [False, True], ids=["plain", "gzip"])
async def test_scenario_over_http_gives_the_same_parts(dialect: Dialect, framing: Framing, zip_it: bool) -> None:
    """Every scenario, by length, in chunks, until the close, and compressed, gives the same parts (P1)."""
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
            assert merged(heard.parts) == expected(scenario.steps, dialect), scenario.name


@both
@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
async def test_connection_cut_at_any_byte_is_whole_or_cut(dialect: Dialect, framing: Framing) -> None:
    """The connection is cut at any byte of the body: the answer is whole or cut, and has no call before the finish
    reason (T6, P3)."""
    steps = (Say("é"), Ask("a", ('{"x":1}',)), End("calls"))
    stream = plain(written(dialect, steps))
    reason = reason_of(dialect, written(dialect, steps)).encode()
    reason_end = stream.index(reason) + len(reason)
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
async def test_cut_compressed_stream_is_cut_and_damaged_one_an_error(dialect: Dialect) -> None:
    """A compressed stream that breaks off is cut; a stream with damaged bytes is an error (P3)."""
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
async def test_reset_in_the_stream_is_a_cut(dialect: Dialect) -> None:
    """A connection that is reset after text: the text, no finish, no error (T6)."""
    begun = plain(written(dialect, (Say("par"),)))
    async with ready(dialect, Scripted([begun, RESET])) as (model, _):
        heard = await hear(model)
    assert heard.trouble is None
    assert not heard.whole


@both
@pytest.mark.parametrize("last", [CUT, RESET])
async def test_connection_closed_before_an_answer_is_a_temporary_error(dialect: Dialect, last: Any) -> None:
    """A connection closed or reset before the first byte of an answer is a temporary error (P3)."""
    async with ready(dialect, Scripted([last], raw=True)) as (model, _):
        heard = await hear(model)
    assert heard.trouble is not None
    assert (heard.trouble.kind, heard.trouble.retryable) == ("unreachable", True)


@both
async def test_incomplete_or_invalid_response_head_is_a_temporary_error(dialect: Dialect) -> None:
    """A response head that breaks off, and one that is no HTTP, are temporary errors (P3)."""
    for head in (b"HTTP/1.1 200 OK\r\ncontent-ty", b"SSH-2.0-OpenSSH_9.2\r\n\r\n"):
        async with ready(dialect, Scripted([head, CUT], raw=True)) as (model, _):
            heard = await hear(model)
        assert heard.trouble is not None
        assert (heard.trouble.kind, heard.trouble.retryable) == ("unreachable", True)


@both
async def test_closed_port_and_unknown_host_are_explained(dialect: Dialect) -> None:
    """A port without a listener, and a name that cannot be resolved (P3)."""
    async with ScriptedProvider(Scripted()) as provider:
        address = provider.address
    for url, words in ((address, "cannot be reached"), ("http://nowhere.invalid", "Can't find nowhere.invalid")):
        model = remote(dialect, url)
        heard = await hear(model)
        await model.client.close()
        assert heard.trouble is not None
        assert (heard.trouble.kind, heard.trouble.retryable) == ("unreachable", True)
        assert words in str(heard.trouble)


@both
async def test_silence_beyond_the_limit_is_a_temporary_error(dialect: Dialect) -> None:
    """No byte within the limit, before the head or in the stream, is a temporary error; the socket is closed (P3)."""
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
@pytest.mark.parametrize("keep_alive", [": keep-alive\n\n", 'event: ping\ndata: {"type": "ping"}\n\n'])
async def test_keep_alives_reset_the_silence_limit_but_not_progress(dialect: Dialect, keep_alive: str) -> None:
    """Comments and pings reset the limit for silence, and not the limit for progress (P3)."""
    begun = plain(written(dialect, (Say("par"),)))
    lives = [keep_alive.encode()] * 40
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
async def test_slow_answer_continues_while_it_progresses(dialect: Dialect) -> None:
    """However long an answer takes, it continues as long as something new comes (P3)."""
    steps: tuple[Step, ...] = (*(Say(f"{number} ") for number in range(200)), End("stop"))
    events = [event_text(event).encode() for event in written(dialect, steps)]
    clock = _Clock()
    async with ScriptedProvider(Scripted([piece for event in events for piece in (b": life\n\n", event)])) as provider:
        made = remote(dialect, provider.address)
        heard = await hear(RemoteModel(made.access, made.client, clock.passing_s))
        await made.client.close()
    assert heard.trouble is None
    assert merged(heard.parts) == expected(steps, dialect)
    assert clock.now > made.profile.progress_s_max


class _Clock:
    """A minute passes each time the clock is read."""

    now = 0.0

    def passing_s(self) -> float:
        self.now += 60.0
        return self.now


@both
async def test_open_connection_after_the_finish_reason_ends_whole(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The finish reason came and the server keeps the connection open: the answer is whole after a short wait, and not
    silent (P1)."""
    monkeypatch.setattr(model_remote, "AFTER_FINISH_S_MAX", 0.1)
    events = written(dialect, HI)
    over = events if dialect == "responses" else events[:-1]
    async with ready(dialect, Scripted([plain(over), anyio.Event()])) as (model, _):
        heard = await hear(model)
    assert heard.trouble is None
    assert merged(heard.parts) == expected(HI, dialect)


@both
async def test_cancel_in_the_stream_closes_the_connection(dialect: Dialect) -> None:
    """The server sees a cancel in the stream at once, and serves the next request (G8)."""
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
        assert merged((await hear(model)).parts) == expected(HI, dialect)


STATUSES = [
    (400, "rejected", False), (401, "key", False), (402, "balance", False), (403, "forbidden", False),
    (404, "notFound", False), (408, "server", True), (413, "tooLarge", False), (418, "rejected", False),
    (422, "rejected", False), (429, "rate", True), (500, "server", True), (501, "rejected", False),
    (502, "server", True), (503, "overloaded", True), (504, "server", True), (529, "overloaded", True),
    (301, "redirected", False), (307, "redirected", False), (308, "redirected", False),
]  # fmt: skip


@both
@pytest.mark.parametrize(("status", "kind", "retryable"), STATUSES)
async def test_each_status_gives_one_sentence_with_advice(
    dialect: Dialect, status: int, kind: str, retryable: bool
) -> None:
    """Each status ends with one sentence that names it and says what to do; nothing is followed or sent again (P3)."""
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
    assert bool(re.search(r"\b402\b", said)) is (status == 402)  # no part of the port
    assert (heard.trouble.retry_after_s == 7.0) is (status >= 400)
    if status < 400:
        assert "elsewhere.example" in said
        assert "k=1" not in said


@both
async def test_web_page_with_an_error_status_is_classified(dialect: Dialect) -> None:
    """A web page with 404 or 403 means that there is no provider; with 502 it is a provider that fails (P3)."""
    for status, kind in ((404, "notAProvider"), (403, "notAProvider"), (502, "server")):
        page = Scripted([b"<html><body>nginx</body></html>"], status, {"content-type": "text/html"}, "length")
        async with ready(dialect, page) as (model, _):
            heard = await hear(model)
        assert heard.trouble is not None
        assert heard.trouble.kind == kind
        assert "nginx" not in str(heard.trouble)


@both
async def test_endless_error_body_is_read_within_limits(dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    """The body of a refusal is read within limits of bytes and time, and its status counts all the same [I13]."""
    monkeypatch.setattr(model_remote, "ERROR_S_MAX", 0.1)
    monkeypatch.setattr(model_remote, "ERROR_BYTES_MAX", 1000)
    cases: list[list[ScriptStep]] = [[b"x" * 100, anyio.Event()], [b"y" * 100_000, anyio.Event()]]
    for steps in cases:
        async with ready(dialect, Scripted(steps, 429, {"content-type": "text/plain"})) as (model, _):
            heard = await hear(model)
        assert heard.trouble is not None
        assert heard.trouble.kind == "rate"
        assert len(str(heard.trouble)) < 500


@both
async def test_http_proxy_is_used_for_remote_providers_only(dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP_PROXY is used for a provider elsewhere, never for this machine; an unusable proxy gives a sentence (P1)."""
    async with ScriptedProvider(Scripted([plain(written(dialect, HI))])) as provider:
        for name in ("NO_PROXY", "no_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", provider.address)
        away = remote(dialect, "http://provider.invalid/v1")
        assert merged((await hear(away)).parts) == expected(HI, dialect)
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
async def test_key_is_only_in_its_header(
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
    assert holding == (["x-api-key"] if dialect == "messages" else ["authorization"])
    assert KEY not in asked.target
    assert KEY.encode() not in asked.body
    assert "[key]" in str(heard.trouble)
    assert KEY not in caplog.text + str(heard.trouble) + repr(model.access) + repr(vars(heard.trouble))


@both
async def test_adapter_never_repeats_a_request(dialect: Dialect) -> None:
    """The adapter sends nothing again by itself, whatever happens: the turn decides that (P3)."""
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


async def test_http_library_is_imported_at_the_first_request() -> None:
    """Building a model imports no HTTP library; only the first request does (so that the start of A8 stays quick)."""
    import subprocess
    import sys

    code = (
        "import sys\n"
        "from steadyhand.adapters.models.remote_models import ModelSettings, RemoteModels\n"
        "made = RemoteModels(lambda: ModelSettings('deepseek'), dict).model('deepseek', 'deepseek')\n"
        "sys.exit(any(name.startswith(('httpx', 'httpcore', 'ssl')) for name in sys.modules))\n"
    )
    with anyio.fail_after(patience_s):
        ended = await anyio.run_process([sys.executable, "-c", code], stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 0, ended.stderr.decode()


@both
async def test_request_has_path_method_and_content_type_of_its_dialect(dialect: Dialect) -> None:
    """Path, method and content type are those of the dialect; a base URL may end in any way that people copy it
    (P1)."""
    answer = Scripted([plain(written(dialect, HI))])
    endings = {"chat": "/v1/chat/completions/", "messages": "/v1/messages", "responses": "/v1/responses"}
    ending = endings[dialect]
    async with ScriptedProvider(answer) as provider:
        model = remote(dialect, provider.address + ending)
        assert (await hear(model)).whole
        await model.client.close()
    (asked,) = provider.asked
    assert (asked.method, asked.target) == ("POST", ending.rstrip("/"))
    assert asked.headers["content-type"] == "application/json"
