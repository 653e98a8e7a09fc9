"""HTTP for the models: one client, opened with the first request; every failure is one of a few kinds.

The library is imported in a thread when it is first needed, so the start of an editor does not wait for it. Redirects
are refused (a key belongs to one address). Certificates are checked against the system's store. A proxy comes from the
environment, but never applies to this machine itself. The caller limits each wait: `silent`.

Reading a response may raise `HttpError("cut")` if the connection ends before the body, `"silent"`, or `"encoding"` if
its compression is broken.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

if TYPE_CHECKING:
    import httpx2

CONNECT_S_MAX = 20.0
WRITE_S_MAX = 120.0
CLOSE_S_MAX = 2.0
CONNECTIONS_MAX = 16
PROXY_CHARS_MAX = 100  # of what a proxy says
HttpKind = Literal[
    "unreachable", "name", "tls", "notTls", "certificates", "proxy", "address", "silent", "cut", "early", "encoding"
]
CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")  # the HTTP library reads the first one that is set

# This machine itself is reached directly, whatever proxy the environment names.
_LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")


class HttpError(Exception):
    """A request without a response, or a response that broke off. `kind` says how; `detail` names, for people, the
    variable or file that is at fault, if one is."""

    def __init__(self, kind: HttpKind, detail: str = "") -> None:
        super().__init__(kind)
        self.kind: HttpKind = kind
        self.detail = detail


class HttpResponse:
    """A response whose body has not been read. Close it in every case."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self._pieces: AsyncIterator[bytes] | None = None
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers

    async def read_piece(self, limit_s: float) -> bytes | None:
        """Return the next bytes, uncompressed; None at the end of the body."""
        import httpx2

        if self._pieces is None:
            self._pieces = self._response.aiter_bytes()
        try:
            with anyio.fail_after(limit_s):
                return await anext(self._pieces, None)
        except TimeoutError:
            raise HttpError("silent") from None
        except httpx2.DecodingError:
            raise HttpError("encoding") from None
        except (httpx2.TransportError, httpx2.StreamError):
            raise HttpError("cut") from None

    async def read_beginning(self, bytes_max: int, limit_s: float) -> bytes:
        """Return the beginning of the body, up to a limit; if the body breaks off, what came of it."""
        read = bytearray()
        try:
            while len(read) < bytes_max and (piece := await self.read_piece(limit_s)) is not None:
                read += piece
        except HttpError:
            pass
        return bytes(read[:bytes_max])

    async def close(self) -> None:
        """Close the connection, so that the provider stops. Bounded; a cancel does not interrupt it."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_S_MAX):
            await self._response.aclose()


class HttpClient:
    """The connections of one event loop."""

    def __init__(self) -> None:
        self._client: httpx2.AsyncClient | None = None

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, limit_s: float
    ) -> HttpResponse:
        """Send a request and return the head of the response. `HttpError("early")`: the other side closed before it."""
        client = await self._open()
        import httpx2

        try:
            with anyio.fail_after(limit_s):
                request = client.build_request(method, url, headers=dict(headers), content=body)
                return HttpResponse(await client.send(request, stream=True))
        except TimeoutError:
            raise HttpError("silent") from None
        except httpx2.ProxyError as failed:
            raise HttpError("proxy", f" ({' '.join(str(failed).split())[:PROXY_CHARS_MAX]})") from None
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError):
            raise HttpError("address") from None
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as failed:
            raise _connect_failure(failed, url) from None
        except httpx2.TransportError:
            raise HttpError("early") from None

    async def close(self) -> None:
        """Close all connections. Bounded; a cancel does not interrupt it."""
        client, self._client = self._client, None
        if client is not None:
            with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_S_MAX):
                await client.aclose()

    async def _open(self) -> httpx2.AsyncClient:
        if self._client is None:
            await anyio.to_thread.run_sync(importlib.import_module, "httpx2")
        if self._client is None:  # another request may have opened it meanwhile
            import httpx2

            try:
                _require_certificate_folder()
                self._client = httpx2.AsyncClient(
                    timeout=httpx2.Timeout(None, connect=CONNECT_S_MAX, write=WRITE_S_MAX),
                    limits=httpx2.Limits(max_connections=CONNECTIONS_MAX),
                    mounts=dict.fromkeys(f"all://{host}" for host in _LOCAL_HOSTS),
                    follow_redirects=False,
                )
            except (ValueError, ImportError, httpx2.InvalidURL):  # the value of HTTP_PROXY cannot be used
                raise HttpError("proxy") from None
            except OSError as failed:  # the file with the certificates
                raise _unusable_certificates(failed) from None
        return self._client


def _certificate_variable() -> str:
    """Return the variable whose certificates replace the system's store; empty: none is set."""
    return next((name for name in CERTIFICATE_VARIABLES if os.environ.get(name)), "")


def _require_certificate_folder() -> None:
    """Raise NotADirectoryError for a folder that is missing; the library takes it for an empty one."""
    if _certificate_variable() == "SSL_CERT_DIR" and not os.path.isdir(os.environ["SSL_CERT_DIR"]):
        raise NotADirectoryError


def _unusable_certificates(failed: OSError) -> HttpError:
    """Return the error of certificates that cannot be read; it names the variable and the path (case 132)."""
    import ssl

    name = _certificate_variable()
    if isinstance(failed, ssl.SSLError):
        why = "holds no certificate"
    elif isinstance(failed, FileNotFoundError):
        why = "does not exist"
    elif isinstance(failed, NotADirectoryError):
        why = "is not a folder"
    else:
        why = f"cannot be read ({failed.strerror})"
    named = f"The environment variable {name} names “{os.environ[name]}”, which" if name else "The system's store"
    return HttpError("certificates", f"{named} {why}. Correct it or remove it, and start the editor again.")


def _connect_failure(failed: BaseException, url: str) -> HttpError:
    """Return the error of a failed connection. The messages are the system's, so only the classes are read."""
    import socket
    import ssl

    proxied = _proxy_text(url)
    seen: BaseException | None = failed
    while seen is not None:
        if isinstance(seen, ssl.SSLError) and not isinstance(seen, ssl.SSLCertVerificationError):
            return HttpError("notTls", proxied)
        if isinstance(seen, ssl.SSLError):
            name = _certificate_variable()
            return HttpError("tls", f" {name} replaces the system's store now." if name else "")
        if isinstance(seen, socket.gaierror):
            return HttpError("name", proxied)
        seen = seen.__cause__ or seen.__context__
    return HttpError("unreachable", proxied)


def _proxy_text(url: str) -> str:
    """Return a sentence if the request goes through a proxy, which may be what cannot be reached."""
    from urllib.request import getproxies, proxy_bypass

    parsed = urlsplit(url)
    host = parsed.hostname or ""
    proxies = getproxies()
    name = next((f"{scheme.upper()}_PROXY" for scheme in (parsed.scheme, "all") if proxies.get(scheme)), "")
    if not name or host in ("127.0.0.1", "localhost", "::1") or proxy_bypass(host):
        return ""
    return f" The request goes through the proxy that {name} names; check that too."
