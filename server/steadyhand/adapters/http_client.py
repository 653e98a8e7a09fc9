"""HTTP for the models: one client, opened with the first request, and every fault as one of few kinds.

The library is imported in a thread when it is first needed; an editor that starts does not wait for it. Redirects
are refused (a key goes to one address), certificates are checked against the system's store, and a proxy is taken
from the environment, but never for this machine itself. A wait has a limit given by the caller: `silent`.

What a response may raise while it is read: `HttpTrouble("cut")` when the connection ends before the body does,
`"silent"`, `"encoding"` when its compression is broken.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Literal

import anyio
import anyio.to_thread

if TYPE_CHECKING:
    import httpx2

connect_s_max = 20.0
write_s_max = 120.0
close_s_max = 2.0
connections_max = 16

HttpKind = Literal["unreachable", "name", "tls", "proxy", "address", "silent", "cut", "early", "encoding"]

# The machine itself is reached directly, whatever proxy the environment names.
_HERE = ("all://127.0.0.1", "all://localhost", "all://[::1]")


class HttpTrouble(Exception):
    """A request that got no answer, or an answer that broke off. `kind` says how; the text is for nobody."""

    def __init__(self, kind: HttpKind) -> None:
        super().__init__(kind)
        self.kind: HttpKind = kind


class Response:
    """An answer whose body has not been read. Close it, whatever happened."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self._pieces: AsyncIterator[bytes] | None = None
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers

    async def piece(self, limit_s: float) -> bytes | None:
        """The next bytes, uncompressed; None at the end of the body."""
        import httpx2

        if self._pieces is None:
            self._pieces = self._response.aiter_bytes()
        try:
            with anyio.fail_after(limit_s):
                return await anext(self._pieces, None)
        except TimeoutError:
            raise HttpTrouble("silent") from None
        except httpx2.DecodingError:
            raise HttpTrouble("encoding") from None
        except (httpx2.TransportError, httpx2.StreamError):
            raise HttpTrouble("cut") from None

    async def beginning(self, bytes_max: int, limit_s: float) -> bytes:
        """As much of the body as came, up to a bound; a body that breaks off is as long as it is."""
        read = bytearray()
        try:
            while len(read) < bytes_max and (piece := await self.piece(limit_s)) is not None:
                read += piece
        except HttpTrouble:
            pass
        return bytes(read[:bytes_max])

    async def close(self) -> None:
        """End the connection; the other side sees it. Bounded, and not to be cancelled."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(close_s_max):
            await self._response.aclose()


class HttpClient:
    """Connections of one event loop."""

    def __init__(self) -> None:
        self._client: httpx2.AsyncClient | None = None

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, limit_s: float
    ) -> Response:
        """The answer's head. `HttpTrouble("early")`: the other side closed before it said anything."""
        client = await self._opened()
        import httpx2

        try:
            with anyio.fail_after(limit_s):
                request = client.build_request(method, url, headers=dict(headers), content=body)
                return Response(await client.send(request, stream=True))
        except TimeoutError:
            raise HttpTrouble("silent") from None
        except httpx2.ProxyError:
            raise HttpTrouble("proxy") from None
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError):
            raise HttpTrouble("address") from None
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as failed:
            raise HttpTrouble(_why_not_connected(failed)) from None
        except httpx2.TransportError:
            raise HttpTrouble("early") from None

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with anyio.CancelScope(shield=True), anyio.move_on_after(close_s_max):
                await client.aclose()

    async def _opened(self) -> httpx2.AsyncClient:
        if self._client is None:
            await anyio.to_thread.run_sync(importlib.import_module, "httpx2")
        if self._client is None:  # still: another request may have come first while this one waited
            import httpx2

            try:
                self._client = httpx2.AsyncClient(
                    timeout=httpx2.Timeout(None, connect=connect_s_max, write=write_s_max),
                    limits=httpx2.Limits(max_connections=connections_max),
                    mounts=dict.fromkeys(_HERE),
                    follow_redirects=False,
                )
            except (ValueError, ImportError, httpx2.InvalidURL):  # what HTTP_PROXY names cannot be used
                raise HttpTrouble("proxy") from None
        return self._client


def _why_not_connected(failed: BaseException) -> HttpKind:
    """The library says it in words of the system; only the classes below them are looked at."""
    import socket
    import ssl

    seen: BaseException | None = failed
    while seen is not None:
        if isinstance(seen, ssl.SSLError):
            return "tls"
        if isinstance(seen, socket.gaierror):
            return "name"
        seen = seen.__cause__ or seen.__context__
    return "unreachable"
