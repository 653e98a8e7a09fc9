"""A provider over HTTP behind `ports.Model`: key, address, limits, and one request (rows P1, P3, U2).

`ask` never repeats a request by itself: the code that runs the turn decides that, by `ProviderError.retryable`. It asks
once more only if a provider refuses an optional member of the request, without that member, and remembers it as long as
the settings stand (case 112).

Its stream ends with `Finish` (complete), without it (cut: the connection broke or ended before the finish reason), or
with a `ProviderError`. Two clocks run over a stream: bytes of any kind show that the connection is alive, only parts of
the answer are progress. Wrap it in `contextlib.aclosing`: leaving the stream early then closes the connection at once.

The key is looked up for each request and goes into its header. It is remembered only to redact it in quoted words.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, cast
from urllib.parse import urlsplit

from steadyhand.adapters.models import anthropic_messages, chat_completions, responses
from steadyhand.adapters.models.errors import ProviderErrors
from steadyhand.adapters.models.http import HttpClient, HttpError, HttpResponse
from steadyhand.adapters.models.optional_members import profile_without, refused_member, stated_output_max
from steadyhand.adapters.models.responses_reader import ResponsesReader
from steadyhand.adapters.models.stream_parser import ResponseParser, StreamReader
from steadyhand.domain.model.messages import ModelRequest, ProviderError, StreamPart
from steadyhand.domain.model.provider_profiles import Profile
from steadyhand.domain.model.token_estimate import estimate_message_tokens, estimate_request_tokens
from steadyhand_values import frozen

ERROR_BYTES_MAX = 64 * 1024
ERROR_S_MAX = 10.0
AFTER_FINISH_S_MAX = 5.0  # after the finish reason only usage may follow; wait for it no longer than this
OUTPUT_TOKENS_FLOOR = 1024  # requested if only an estimate says that nothing is left
KEY_CHARS_MAX = 4096
REFUSED_MEMBERS_MAX = 8  # of one request

Secret = Callable[[str], Awaitable["str | None"]]
"""The editor's secret store: provider → its key."""


@frozen
class Access:
    """What the settings and `__main__` say about one model."""

    profile: Profile
    name: str  # the model's name at the provider
    environment: Callable[[], Mapping[str, str]]
    base_url: str | None = None  # None: the profile's address
    key_variable: str | None = None  # None: the profile's
    secret: Secret | None = None
    window: int | None = None  # tokens, if the user knows it


class RemoteModel:
    """One model of one provider; `ports.Model`."""

    def __init__(self, access: Access, client: HttpClient, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises ProviderError for an address that cannot be used."""
        self.access = access
        self.profile = access.profile
        self.client = client
        self._clock = clock
        self.address = _address(access)
        known = self.profile.known_model(access.name)
        self.window: int | None = access.window or (known.window if known else None)
        self._output_max = known.output_max if known else None
        self.host = urlsplit(self.address).netloc  # with its port, for people
        self.errors = ProviderErrors(self.profile, self.host, access.name, self.key_place())
        self.left_out: set[str] = set()  # optional members that the provider refuses
        self._origin = f"{self.profile.provider}@{self.host}"  # encrypted reasoning goes back there only (row P6)

    @property
    def can_continue(self) -> bool:
        """Whether it can answer a request with `ModelRequest.is_continuation` (row P2)."""
        return self.profile.continues_under is not None

    def key_place(self) -> str:
        """Return where the key is looked for, in words."""
        places = [f"the environment variable {variable}" for variable in [self._key_variable()] if variable]
        if self.access.secret is not None:
            places.append("the editor's secret store")
        return " or ".join(places) or "the environment variable that steadyhand.model.apiKeyEnv names"

    def make_body(self, request: ModelRequest) -> bytes:
        """Return the bytes of a request. Raises ProviderError("window") if it is known to leave no room for an
        answer.
        """
        limit = self._output_limit(request)
        profile, name = profile_without(self.profile, self.left_out), self.access.name
        if profile.dialect == "messages":
            return anthropic_messages.messages_body(profile, name, request, limit, self.left_out)
        if profile.dialect == "responses":
            return responses.responses_body(profile, name, request, limit, self.left_out, self._origin)
        return chat_completions.chat_body(profile, name, request, limit, self.left_out)

    def make_reader(self) -> StreamReader:
        """Return a reader for one response."""
        has_cost = self.profile.billing_currency is not None
        if self.profile.dialect == "messages":
            return anthropic_messages.MessagesReader(self.errors, self.access.name, self.window)
        if self.profile.dialect == "responses":
            return ResponsesReader(self.errors, self.access.name, self._origin, self.window, has_cost)
        return chat_completions.ChatReader(self.errors, self.window, has_cost)

    async def ask(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Yield the parts in order; see the module."""
        for left in reversed(range(REFUSED_MEMBERS_MAX)):
            has_begun = False
            try:
                async with aclosing(cast("Any", self._ask_once(request))) as parts:
                    async for part in parts:
                        has_begun = True
                        yield part
                return
            except ProviderError as trouble:
                if has_begun or not left or not self._can_ask_without(trouble):
                    raise

    def _can_ask_without(self, trouble: ProviderError) -> bool:
        """Return whether the request may succeed without a member that the provider has just refused."""
        smaller = stated_output_max(trouble)
        if smaller is not None and (self._output_max is None or smaller < self._output_max):
            self._output_max = smaller
            return True
        refused = refused_member(trouble, self.profile, self.left_out)
        if refused is None:
            return False
        self.left_out.add(refused)
        return True

    async def _ask_once(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        body = self.make_body(request)
        headers = await self.make_headers()
        headers["content-type"] = "application/json"
        headers["accept"] = "text/event-stream, application/json"
        response = await self._send("POST", self._url(request), headers, body)
        try:
            if response.status != 200:
                raise await self._read_error(response)
            answer = ResponseParser(self.make_reader(), self.errors)
            moved, moved_at = 0, self._clock()
            ended = False
            try:
                while not ended:
                    piece, cut = await self._read_next(response, answer.is_finished)
                    ended = piece is None
                    for part in answer.finish(cut) if piece is None else answer.feed(piece):
                        yield part
                    answer.raise_trouble()
                    if answer.is_closed and not ended:
                        ended = True
                        for part in answer.finish(cut=False):
                            yield part
                    if answer.progress_count > moved:
                        moved, moved_at = answer.progress_count, self._clock()
                    elif not ended and self._clock() - moved_at > self.profile.progress_s_max:
                        raise self.errors.no_progress(self.profile.progress_s_max)
            except ProviderError:
                for part in answer.usage():  # it was billed (row U1)
                    yield part
                raise
            if (trouble := answer.failure()) is not None:
                raise trouble
        finally:
            await response.close()

    async def get(self, path: str, limit_s: float, bytes_max: int) -> bytes:
        """Return a small document of the provider, by its path. Raises ProviderError for any status but 200."""
        response = await self._send("GET", self.address + path, await self.make_headers(), None, limit_s)
        try:
            if response.status != 200:
                raise await self._read_error(response)
            return await response.read_beginning(bytes_max, limit_s)
        finally:
            await response.close()

    async def make_headers(self) -> dict[str, str]:
        """Return the key's header and those of the dialect. Raises ProviderError if there is no usable key."""
        key = await self._find_key()
        bearer = chat_completions.chat_headers(key)
        if self.profile.dialect != "messages":
            return {"user-agent": "steadyhand", **bearer}
        # Other providers than Anthropic take the key of this dialect under either name.
        also = {} if self.profile.provider == "anthropic" else bearer
        return {"user-agent": "steadyhand", **anthropic_messages.messages_headers(key), **also}

    def _key_variable(self) -> str | None:
        return self.access.key_variable or self.profile.key_variable

    async def _find_key(self) -> str:
        variable = self._key_variable()
        key = self.access.environment().get(variable, "").strip() if variable else ""
        if not key and self.access.secret is not None:
            key = (await self.access.secret(self.profile.provider) or "").strip()
        if not key:
            if self.profile.key_needed or self.access.key_variable:
                raise self.errors.key_missing()
            return ""
        if len(key) > KEY_CHARS_MAX or not all("!" <= c <= "~" for c in key):
            raise self.errors.key_unusable()
        self.errors.secrets = (key,)
        return key

    def _url(self, request: ModelRequest) -> str:
        if self.profile.dialect == "messages":
            return self.address + anthropic_messages.PATH
        if self.profile.dialect == "responses":
            return self.address + responses.PATH
        if not request.is_continuation:
            return self.address + chat_completions.PATH
        under = self.profile.continues_under
        assert under is not None, "the caller checks can_continue first"
        return self.address.removesuffix("/v1").removesuffix(under) + under + chat_completions.PATH

    async def _send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, limit_s: float | None = None
    ) -> HttpResponse:
        limit = limit_s if limit_s is not None else self.profile.silence_s_max
        try:
            return await self.client.send(method, url, headers, body, limit)
        except HttpError as trouble:
            raise self.errors.of_connection(trouble, limit) from None

    async def _read_next(self, response: HttpResponse, finished: bool) -> tuple[bytes | None, bool]:
        """Return the next bytes or None, and whether the connection broke.
        After the finish reason the wait is short, and a failure does not count.
        """
        limit = AFTER_FINISH_S_MAX if finished else self.profile.silence_s_max
        try:
            return await response.read_piece(limit), False
        except HttpError as trouble:
            if finished or trouble.kind == "cut":
                return None, True
            raise self.errors.of_connection(trouble, limit) from None

    async def _read_error(self, response: HttpResponse) -> ProviderError:
        body = await response.read_beginning(ERROR_BYTES_MAX, ERROR_S_MAX)
        return self.errors.of_status(response.status, response.headers, body)

    def _output_limit(self, request: ModelRequest) -> int | None:
        """Return the limit of the output, within the model and the rest of its window (case 86); None: no limit."""
        limits = [request.output_tokens_max or self.profile.output_tokens_default, self._output_max]
        asked = limits[0] if limits[0] is None else min(limit for limit in limits if limit is not None)
        if self.window is None:
            return asked
        if request.input_tokens is not None:
            room = self.window - request.input_tokens
            if room < 1:
                raise self.errors.too_long()
            uncounted = () if request.counted is None else request.messages[request.counted :]
            left = max(room - estimate_message_tokens(uncounted), min(room, OUTPUT_TOKENS_FLOOR))
        else:
            left = max(min(OUTPUT_TOKENS_FLOOR, self.window // 2), self.window - estimate_request_tokens(request))
        return None if asked is None else min(asked, left)


def _address(access: Access) -> str:
    """Return the address before the paths. It accepts what people copy from a provider's page."""
    profile = access.profile
    address = (access.base_url or profile.address or "").strip().rstrip("/")
    if not address:
        raise ProviderError(
            f"There is no address for the provider “{profile.provider}”. Set steadyhand.model.baseUrl, for instance to"
            " http://127.0.0.1:8080/v1.",
            kind="settings",
        )
    for ending in (chat_completions.PATH, anthropic_messages.PATH, responses.PATH):
        address = address.removesuffix(ending)
    if profile.dialect == "messages":
        address = address.removesuffix("/v1")
    try:
        parsed = urlsplit(address)
        port = parsed.port
    except ValueError:
        parsed, port = urlsplit(""), None
    if parsed.scheme not in ("http", "https") or not parsed.hostname or port == 0:
        raise _bad_address("is not an address like https://host/v1")
    if parsed.username is not None or parsed.password is not None or parsed.query or parsed.fragment:
        raise _bad_address("must not contain a user, a key, “?” or “#”; put the key into the environment")
    return address


def _bad_address(why: str) -> ProviderError:
    return ProviderError(f"steadyhand.model.baseUrl {why}. Correct it in the settings.", kind="settings")
