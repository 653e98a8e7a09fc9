"""What the environment names for certificates and proxies and cannot be used: one sentence that names it (case 132)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import anyio
import pytest

from steadyhand.adapters.models import http
from steadyhand.domain.model.messages import ModelRequest, ProviderError, UserMessage
from tests.models.dialogue import talking
from tests.models.streams import End, Say, plain, remote, written
from tests.support.scripted_provider import Scripted, ScriptedProvider
from tests.support.workspace import Workspace

pytestmark = pytest.mark.anyio
REQUEST = ModelRequest("Be good.", (), (UserMessage("Hi"),))
patience_s = 60.0


async def trouble_of(address: str) -> ProviderError:
    model = remote("chat", address)
    with anyio.fail_after(patience_s), pytest.raises(ProviderError) as raised:
        async for _ in model.ask(REQUEST):
            pass
    await model.client.close()
    return raised.value


CERTIFICATES = [
    ("SSL_CERT_FILE", "missing.pem", "does not exist"),
    ("SSL_CERT_FILE", "folder", "cannot be read"),
    ("SSL_CERT_FILE", "empty.pem", "holds no certificate"),
    ("SSL_CERT_FILE", "text.pem", "holds no certificate"),
    ("SSL_CERT_DIR", "missing", "is not a folder"),
    ("SSL_CERT_DIR", "text.pem", "is not a folder"),
]


@pytest.mark.parametrize(("variable", "name", "why"), CERTIFICATES)
async def test_unusable_certificates_are_named_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, name: str, why: str
) -> None:
    """Case 132: the sentence names the variable, the file and what is wrong with it; the request is not repeated."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.pem").write_text("")
    (tmp_path / "text.pem").write_text("no certificate")
    for other in http.CERTIFICATE_VARIABLES:
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(variable, str(tmp_path / name))
    trouble = await trouble_of("https://provider.invalid/v1")
    assert (trouble.kind, trouble.retryable) == ("settings", False)
    assert f"The environment variable {variable} names “{tmp_path / name}”, which {why}" in str(trouble)


async def test_certificates_are_asked_for_again_after_they_were_corrected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 132: a file that appears later is used, without a new start."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "late.pem"))
    async with ScriptedProvider(Scripted([plain(written("chat", (Say("Hi"), End("stop"))))])) as provider:
        model = remote("chat", provider.address)
        with pytest.raises(ProviderError, match=r"late\.pem"):
            await anext(model.ask(REQUEST))
        monkeypatch.delenv("SSL_CERT_FILE")
        with anyio.fail_after(patience_s):
            assert [part async for part in model.ask(REQUEST)]
        await model.client.close()


async def test_turn_with_missing_certificates_ends_with_that_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 132: the turn ends `modelFailed` with the sentence that names the file, once, and nothing fails inside."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    async with (
        ScriptedProvider(Scripted([])) as provider,
        talking(Workspace.under(tmp_path), "chat", provider) as talk,
    ):
        session = await talk.server.create()
        assert (await talk.server.say(session, "Hi")).reason == "modelFailed"
        ((code, text),) = talk.warned()
    assert code == "modelFailed"
    assert "missing.pem" in text
    assert provider.asked == []


async def test_https_to_a_plain_server_is_explained() -> None:
    """P7: https:// to a server that speaks http:// is said as that, and not as an untrusted certificate."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        trouble = await trouble_of(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    assert "does not accept a connection with TLS" in str(trouble)
    assert "http:// or https://" in str(trouble)


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "ALL_PROXY"])
async def test_unreachable_proxy_is_named(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """P7: if the request goes through a proxy, the sentence says so: the proxy may be what cannot be reached."""
    monkeypatch.setenv(variable, "http://127.0.0.1:1")
    assert f"the proxy that {variable} names" in str(await trouble_of("https://provider.invalid/v1"))
    monkeypatch.setenv("NO_PROXY", "provider.invalid")
    assert variable not in str(await trouble_of("https://provider.invalid/v1"))


async def test_proxy_that_refuses_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    """P7: what the proxy answers to the tunnel is in the sentence."""
    refused = Scripted([b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n"], raw=True)
    async with ScriptedProvider(refused) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.address)
        trouble = await trouble_of("https://provider.invalid/v1")
    assert "407" in str(trouble)
    assert "Check HTTPS_PROXY" in str(trouble)
