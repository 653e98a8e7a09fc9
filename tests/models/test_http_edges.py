"""Edge cases of HTTP with a provider: cuts inside the framing, unusual encodings, redirects, proxies (P1, P3)."""

from __future__ import annotations

import json
import zlib

import pytest

from steadyhand.domain.model.messages import UsagePart
from tests.models.streams import DIALECTS, KEY, Ask, Dialect, End, Say, expected, merged, plain, remote, written
from tests.models.test_http_streams import HI, hear, ready
from tests.support.scripted_provider import CUT, Scripted, ScriptedProvider

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("dialect", DIALECTS)

STEPS = (Say("é"), Ask("a", ('{"x":"🙂"}',)), End("calls"))


def chunked(stream: bytes, size: int) -> bytes:
    """A body in chunks with an extension and a trailer, as the standard allows."""
    parts = [stream[at : at + size] for at in range(0, len(stream), size)]
    return b"".join(b"%x;a=b\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\nx-trailer: 1\r\n\r\n"


@both
async def test_response_cut_at_any_byte_is_an_error_cut_or_whole(dialect: Dialect) -> None:
    """P3, T6, case 89: cut in the status line, in a header, in the size of a chunk, in its data or its end, the
    response is a temporary error, cut, or whole; a cut response gives a prefix of the parts, and no call of it."""
    stream = plain(written(dialect, STEPS))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    response = head + chunked(stream, 97)
    full = [part for part in expected(STEPS, dialect) if not isinstance(part, UsagePart)]
    ended = False
    async with ready(dialect, *(Scripted([response[:at], CUT], raw=True) for at in range(len(response)))) as (model, _):
        for at in range(len(response)):
            heard = await hear(model)
            told = merged([part for part in heard.parts if not isinstance(part, UsagePart)])
            if at < len(head):
                assert heard.trouble is not None, at
                assert (heard.trouble.kind, heard.trouble.retryable, told) == ("unreachable", True, []), at
            elif heard.whole:
                ended = True
                assert told == full, at
            else:
                assert not ended, f"longer and less whole: {at}"
                assert heard.trouble is None, at
                assert heard.calls == [], at
                assert told == full[: len(told)], at
    assert ended


@both
async def test_compressed_body_cut_at_any_byte_gives_only_what_came(dialect: Dialect) -> None:
    """P3, T6: a gzip stream cut at any byte never gives more than what came, and no call before the finish reason."""
    compressor = zlib.compressobj(wbits=31)
    pieces = [plain([event]) for event in written(dialect, STEPS)]
    stream = b"".join(compressor.compress(piece) + compressor.flush(zlib.Z_SYNC_FLUSH) for piece in pieces)
    stream += compressor.flush()
    headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    cuts = range(len(stream))
    answers = [Scripted([stream[:at], CUT] if at else [CUT], headers=headers) for at in cuts]
    ended = False
    async with ready(dialect, *answers) as (model, _):
        for at in cuts:
            heard = await hear(model)
            assert heard.trouble is None or heard.trouble.retryable, at
            assert heard.whole or not ended, at
            assert len(heard.calls) == heard.whole, at
            ended = heard.whole
    assert ended


@both
async def test_deflate_is_read_and_unknown_encodings_are_refused(dialect: Dialect) -> None:
    """P3: deflate is read; an encoding that was not requested gives one sentence, and no garbage on the screen."""
    stream = plain(written(dialect, HI))
    deflated = Scripted(
        [zlib.compress(stream)], headers={"content-type": "text/event-stream", "content-encoding": "deflate"}
    )
    unasked = Scripted(
        [b"\x8b\x02\x80Hi\x03\xff\xfe" * 9], headers={"content-type": "text/event-stream", "content-encoding": "br"}
    )
    async with ready(dialect, deflated, unasked) as (model, provider):
        assert merged((await hear(model)).parts) == expected(HI, dialect)
        heard = await hear(model)
    assert heard.trouble is not None
    assert heard.parts == []
    assert heard.trouble.kind in ("garbled", "notAProvider")
    accepted = {word.strip() for word in provider.asked[0].headers["accept-encoding"].split(",")}
    assert accepted <= {"gzip", "deflate", "zstd", "br"}


@both
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirect_is_not_followed(dialect: Dialect, status: int) -> None:
    """P1, E2: the target of the redirect gets no request and no key; the sentence names the target."""
    async with ScriptedProvider(Scripted([plain(written(dialect, HI))])) as elsewhere:
        moved = Scripted([], status, {"location": f"{elsewhere.address}/v1/chat?key=hunter2"}, "length")
        async with ready(dialect, moved) as (model, provider):
            heard = await hear(model)
        assert elsewhere.asked == []
        assert len(provider.asked) == 1
        assert heard.trouble is not None
        assert (heard.trouble.kind, heard.trouble.retryable) == ("redirected", False)
        assert elsewhere.address.removeprefix("http://") in str(heard.trouble)
        assert "hunter2" not in str(heard.trouble)
        assert KEY not in str(heard.trouble)


@both
async def test_https_proxy_is_a_tunnel_and_sees_no_key(dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    """P1, E2: the client requests a tunnel from HTTPS_PROXY, which sees neither key nor path; its refusal is one
    sentence; a host in NO_PROXY bypasses it."""
    for name in ("NO_PROXY", "no_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with ScriptedProvider(Scripted([b"no"], 407, {}, "length")) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.address)
        model = remote(dialect, "https://provider.invalid/v1")
        heard = await hear(model)
        await model.client.close()
        assert heard.trouble is not None
        assert (heard.trouble.kind, heard.trouble.retryable) == ("unreachable", False)
        assert "HTTPS_PROXY" in str(heard.trouble)
        (asked,) = proxy.asked
        assert (asked.method, asked.target) == ("CONNECT", "provider.invalid:443")
        assert KEY not in json.dumps(dict(asked.headers))
        monkeypatch.setenv("NO_PROXY", "provider.invalid")
        past = remote(dialect, "https://provider.invalid/v1")
        heard = await hear(past)
        await past.client.close()
        assert len(proxy.asked) == 1
    assert heard.trouble is not None
    assert "Can't find" in str(heard.trouble)


@both
@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [(402, "balance", False), (413, "tooLarge", False), (451, "rejected", False), (507, "server", True),
     (520, "server", True), (524, "server", True), (529, "overloaded", True), (599, "server", True)],
)  # fmt: skip
@pytest.mark.parametrize(
    "body", [b"", b"<html>no</html>", b'{"error":', b"[]", b"\xff\xfe", b'{"error":{"message":7}}']
)
async def test_status_decides_whatever_the_body_says(
    dialect: Dialect, status: int, kind: str, retryable: bool, body: bytes
) -> None:
    """P3: whatever the body of a refusal contains, its status decides, and the error is one sentence."""
    async with ready(dialect, Scripted([body], status, {}, "length")) as (model, _):
        heard = await hear(model)
    assert heard.trouble is not None
    page = body.startswith(b"<") and status == 451
    assert (heard.trouble.kind, heard.trouble.retryable) == ("notAProvider" if page else kind, retryable)
    said = str(heard.trouble)
    assert page or str(status) in said
    assert said.endswith(".")
    assert "\n" not in said
