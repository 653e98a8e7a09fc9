"""A provider over HTTP behind `ports.Model`: key, address, limits, and the way of one request (rows P1, P3, U2).

`ask` sends once and never again by itself: whoever runs the turn decides on that, by `ModelTrouble.retryable`. Its
stream ends with `Finish` (whole), without it (cut: the connection broke, or ended before the reason was told), or
in a `ModelTrouble`. Two clocks run over a stream: bytes of any kind are a sign of life, only what is part of the
answer is progress. Wrap it in `contextlib.aclosing`: leaving the stream early closes the connection at once.

The key is looked up for each request, goes into its header, and is remembered to be taken out of quoted words alone.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from urllib.parse import urlsplit

import attrs

from steadyhand.adapters import model_chat, model_messages
from steadyhand.adapters.http_client import HttpClient, HttpTrouble, Response
from steadyhand.adapters.model_answer import Answer, Reader
from steadyhand.adapters.model_trouble import Troubles
from steadyhand.core.model import AssistantMessage, ModelRequest, ModelTrouble, OutMessage, StreamPart, UserMessage
from steadyhand.core.profiles import Profile

error_bytes_max = 64 * 1024
error_s_max = 10.0
after_finish_s_max = 5.0  # the reason for the end was told: usage may follow, but nobody waits long for it
bytes_per_token = 3  # English prose has about 4, code and other scripts fewer; the estimate errs upwards
tokens_per_message = 8
output_tokens_floor = 1024  # asked for where only an estimate says that nothing is left
key_chars_max = 4096

Secret = Callable[[str], Awaitable["str | None"]]
"""The editor's secret store: the provider's word → its key."""


@attrs.frozen
class Access:
    """What settings and composition root say about one model."""

    profile: Profile
    name: str  # the model's, as the provider calls it
    environment: Callable[[], Mapping[str, str]]
    base_url: str | None = None  # None: the profile's address
    key_variable: str | None = None  # None: the profile's
    secret: Secret | None = None
    window: int | None = None  # tokens, where the user knows better


class RemoteModel:
    """One model of one provider. Keeps `ports.Model`."""

    def __init__(self, access: Access, client: HttpClient, clock: Callable[[], float] = time.monotonic) -> None:
        """ModelTrouble for an address that cannot be used."""
        self.access = access
        self.profile = access.profile
        self.client = client
        self._clock = clock
        self.address = _address(access)
        known = self.profile.known_model(access.name)
        self.window: int | None = access.window or (known.window if known else None)
        self._output_max = known.output_max if known else None
        self.troubles = Troubles(self.profile, urlsplit(self.address).netloc, access.name, self.key_place())

    @property
    def can_continue(self) -> bool:
        """Whether `ModelRequest.continues` can be asked of it (row P2)."""
        return self.profile.continues_under is not None

    def key_place(self) -> str:
        """Where the key is looked for, in words."""
        places = [f"the environment variable {variable}" for variable in [self._key_variable()] if variable]
        if self.access.secret is not None:
            places.append("the editor's secret store")
        return " or ".join(places) or "the environment variable that steadyhand.model.apiKeyEnv names"

    def body(self, request: ModelRequest) -> bytes:
        """What is sent for a request. ModelTrouble("window") if it is known to leave no room."""
        limit = self._output_limit(request)
        write = model_chat.chat_body if self.profile.dialect == "chat" else model_messages.messages_body
        return write(self.profile, self.access.name, request, limit)

    def reader(self) -> Reader:
        if self.profile.dialect == "chat":
            return model_chat.ChatReader(self.troubles, self.window, tells_cost=self.profile.billed_in is not None)
        return model_messages.MessagesReader(self.troubles, self.access.name, self.window)

    async def ask(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Parts in order; see the module."""
        body = self.body(request)
        headers = await self.headers()
        headers["content-type"] = "application/json"
        headers["accept"] = "text/event-stream, application/json"
        response = await self._opened("POST", self._url(request), headers, body)
        try:
            if response.status != 200:
                raise await self._refusal(response)
            answer = Answer(self.reader(), self.troubles)
            moved, moved_at = 0, self._clock()
            ended = False
            try:
                while not ended:
                    piece, cut = await self._next(response, answer.finished)
                    ended = piece is None
                    for part in answer.end(cut) if piece is None else answer.feed(piece):
                        yield part
                    if answer.closed and not ended:
                        ended = True
                        for part in answer.end(cut=False):
                            yield part
                    if answer.moved > moved:
                        moved, moved_at = answer.moved, self._clock()
                    elif not ended and self._clock() - moved_at > self.profile.progress_s_max:
                        raise self.troubles.no_progress(self.profile.progress_s_max)
            except ModelTrouble:
                for part in answer.usage():  # it was billed all the same (row U1)
                    yield part
                raise
            if (trouble := answer.trouble()) is not None:
                raise trouble
        finally:
            await response.close()

    async def get(self, path: str, limit_s: float, bytes_max: int) -> bytes:
        """A small document of the provider, from its address on. ModelTrouble for everything but 200."""
        response = await self._opened("GET", self.address + path, await self.headers(), None, limit_s)
        try:
            if response.status != 200:
                raise await self._refusal(response)
            return await response.beginning(bytes_max, limit_s)
        finally:
            await response.close()

    async def headers(self) -> dict[str, str]:
        """The key's header and the dialect's own. ModelTrouble where there is no usable key."""
        key = await self._key()
        write = model_chat.chat_headers if self.profile.dialect == "chat" else model_messages.messages_headers
        return {"user-agent": "steadyhand", **write(key)}

    def _key_variable(self) -> str | None:
        return self.access.key_variable or self.profile.key_variable

    async def _key(self) -> str:
        variable = self._key_variable()
        key = self.access.environment().get(variable, "").strip() if variable else ""
        if not key and self.access.secret is not None:
            key = (await self.access.secret(self.profile.provider) or "").strip()
        if not key:
            if self.profile.key_needed or self.access.key_variable:
                raise self.troubles.key_missing()
            return ""
        if len(key) > key_chars_max or not all("!" <= c <= "~" for c in key):
            raise self.troubles.key_unusable()
        self.troubles.secrets = (key,)
        return key

    def _url(self, request: ModelRequest) -> str:
        if self.profile.dialect == "messages":
            return self.address + model_messages.PATH
        if not request.continues:
            return self.address + model_chat.PATH
        under = self.profile.continues_under
        assert under is not None, "the caller looks before it asks"
        return self.address.removesuffix("/v1").removesuffix(under) + under + model_chat.PATH

    async def _opened(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, limit_s: float | None = None
    ) -> Response:
        limit = limit_s if limit_s is not None else self.profile.silence_s_max
        try:
            return await self.client.send(method, url, headers, body, limit)
        except HttpTrouble as trouble:
            raise self.troubles.of_connection(trouble.kind, limit) from None

    async def _next(self, response: Response, finished: bool) -> tuple[bytes | None, bool]:
        """(the next bytes or None, whether the connection broke). Once finished, nothing that follows is awaited long
        or taken for trouble."""
        limit = after_finish_s_max if finished else self.profile.silence_s_max
        try:
            return await response.piece(limit), False
        except HttpTrouble as trouble:
            if finished or trouble.kind == "cut":
                return None, True
            raise self.troubles.of_connection(trouble.kind, limit) from None

    async def _refusal(self, response: Response) -> ModelTrouble:
        body = await response.beginning(error_bytes_max, error_s_max)
        return self.troubles.of_status(response.status, response.headers, body)

    def _output_limit(self, request: ModelRequest) -> int | None:
        """What is asked for, within the model and what is left of its window (case 86); None: nothing is said."""
        limits = [request.output_tokens_max or self.profile.output_tokens_default, self._output_max]
        asked = limits[0] if limits[0] is None else min(limit for limit in limits if limit is not None)
        if self.window is None:
            return asked
        if request.input_tokens is not None:
            room = self.window - request.input_tokens
            if room < 1:
                raise self.troubles.too_long()
            uncounted = () if request.counted is None else request.messages[request.counted :]
            left = max(room - tokens_of(uncounted), min(room, output_tokens_floor))
        else:
            left = max(min(output_tokens_floor, self.window // 2), self.window - estimated_tokens(request))
        return None if asked is None else min(asked, left)


def estimated_tokens(request: ModelRequest) -> int:
    """Tokens of a request from its bytes; rather too many."""
    texts = [request.system]
    for tool in request.tools:
        texts += [tool.name, tool.description, tool.parameters]
    return _tokens(texts) + tokens_per_message * (len(request.tools) + 1) + tokens_of(request.messages)


def tokens_of(messages: Sequence[OutMessage]) -> int:
    """Tokens of messages from their bytes; rather too many."""
    texts: list[str] = []
    for message in messages:
        texts.append(message.whole if isinstance(message, UserMessage) else message.text)
        if isinstance(message, AssistantMessage):
            texts.append(message.reasoning or "")
            texts += [text for call in message.calls for text in (call.tool, call.arguments)]
    return _tokens(texts) + tokens_per_message * len(messages)


def _tokens(texts: Sequence[str]) -> int:
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) // bytes_per_token


def _address(access: Access) -> str:
    """The address that paths are put behind. What people copy from a provider's page is understood."""
    profile = access.profile
    address = (access.base_url or profile.address or "").strip().rstrip("/")
    if not address:
        raise ModelTrouble(
            f"There is no address for the provider “{profile.provider}”: set steadyhand.model.baseUrl, for instance to"
            " http://127.0.0.1:8080/v1.",
            kind="settings",
        )
    for ending in (model_chat.PATH, model_messages.PATH, "/v1/" if profile.dialect == "messages" else ""):
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
        raise _bad_address("may hold neither a user, nor a key, nor “?” or “#”; the key belongs into the environment")
    return address


def _bad_address(why: str) -> ModelTrouble:
    return ModelTrouble(f"steadyhand.model.baseUrl {why}: correct it in the settings.", kind="settings")
