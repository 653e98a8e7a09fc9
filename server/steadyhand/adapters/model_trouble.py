"""Every way a provider can fail, as one sentence that says what to do next, and whether asking again may help.

`STATUSES` is the table of HTTP's; what a provider writes into its error, by status or in mid-stream, can only make
it more exact: a window that is full, a quota that is used up, reasoning it wants back. A provider's own words are
quoted short, on one line, without anything that is or looks like a key (row E2).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import attrs

from steadyhand.adapters.http_client import HttpKind
from steadyhand.core.environment import credential_values
from steadyhand.core.model import ModelTrouble, TroubleKind
from steadyhand.core.profiles import Profile

quoted_chars_max = 200
secret_chars_min = 4  # shorter, it would take letters out of words


@attrs.frozen
class Row:
    """What a status means. `{quoted}` in the words is the provider's own message, or nothing."""

    kind: TroubleKind
    retryable: bool
    words: str


SERVER = Row("server", True, "{label} failed ({status}){quoted}: ask again in a moment.")
OVERLOADED = Row("overloaded", True, "{label} has no capacity right now ({status}){quoted}: ask again in a moment.")
REJECTED = Row("rejected", False, "{label} refused the request ({status}){quoted}: see docs/providers.md.")
WINDOW = Row(
    "window", False,
    "The conversation is longer than {model} can read: begin a new session, or choose a model with a larger window.",
)  # fmt: skip
BALANCE = Row(
    "balance", False, "The account with {named} has nothing left ({status}): top it up, or choose another provider."
)
MODEL = Row(
    "notFound", False,
    "{label} at {host} does not know the model “{model}” ({status}){quoted}: set steadyhand.model.name{renamed}.",
)  # fmt: skip
REASONING = Row(
    "reasoning", False,
    "{label} wants reasoning back that this session does not have ({status}): begin a new session, or choose another"
    " model.",
)  # fmt: skip
# Where a profile neither sends reasoning back nor knows how to ask for none, the same request would fail again.
REASONING_UNSENT = Row(
    "rejected", False,
    "{label} wants reasoning back ({status}), which the provider “{provider}” of the settings does not send: set"
    " steadyhand.model.provider to the one that answers there (the address may stay), or choose another model.",
)  # fmt: skip

STATUSES: Mapping[int, Row] = {
    400: REJECTED,
    401: Row("key", False, "{label} does not accept the key ({status}): check {key}."),
    402: BALANCE,
    403: Row(
        "forbidden", False,
        "{label} does not allow this request ({status}){quoted}: check what the key may do, or choose another model.",
    ),
    404: Row(
        "notFound", False,
        "{label} at {host} knows no such model or address ({status}){quoted}:"
        " check steadyhand.model.name (“{model}”) and steadyhand.model.baseUrl.",
    ),
    408: SERVER,
    409: SERVER,
    413: Row(
        "tooLarge", False,
        "The request is larger than {named} takes ({status}): begin a new session, or show fewer and smaller files.",
    ),
    422: REJECTED,
    425: SERVER,
    429: Row("rate", True, "{label} limits how often it may be asked ({status}){quoted}: ask again {when}."),
    501: Row("rejected", False, "{label} at {host} cannot do this ({status}){quoted}: check steadyhand.model.baseUrl."),
    503: OVERLOADED,
    529: OVERLOADED,
}  # fmt: skip

# Words in a provider's error (its code, type or message, lower case) that say more than its status; the first wins.
TELLING: tuple[tuple[str, Row], ...] = (
    (r"reasoning_content.{0,80}must be passed back", REASONING),
    (r"expected `?(?:redacted_)?thinking|thinking.{0,40} blocks? .{0,80}cannot be modified", REASONING),
    (r"context_length_exceeded|exceed_context_size|maximum context length|available context size", WINDOW),
    (r"prompt is too long|context window|input is too long|model_context_window_exceeded", WINDOW),
    (r"insufficient_quota|insufficient balance|credit balance|billing_error|payment required", BALANCE),
    (r"model_not_found|model not exist|model .{0,120}(?:does not exist|not found|is not a valid model)", MODEL),
)

# Types of an error that comes inside a stream, where there is no status to go by.
TYPES: Mapping[str, int] = {
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "overloaded_error": 529,
    "unavailable_error": 503,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
}

NOT_CONNECTED: Mapping[HttpKind, Row] = {
    "unreachable": Row(
        "unreachable", True, "{label} at {host} cannot be reached: check that it runs and that the network is there."
    ),
    "name": Row(
        "unreachable", True, "The name {host} leads nowhere: check steadyhand.model.baseUrl and the network."
    ),
    "tls": Row(
        "unreachable", False,
        "The certificate of {host} is not trusted here: add the authority to the system's store, or set SSL_CERT_FILE.",
    ),
    "proxy": Row(
        "unreachable", False,
        "The proxy that the environment names cannot be used: check HTTPS_PROXY, or put {host} into NO_PROXY.",
    ),
    "address": Row("settings", False, "The address of {named} cannot be used: check steadyhand.model.baseUrl."),
    "silent": Row("silent", True, "{label} at {host} gave no sign of life for {silence} s: ask again."),
    "early": Row("unreachable", True, "{host} closed the connection before it answered: ask again."),
    "encoding": Row("garbled", True, "The answer of {named} arrived damaged: ask again."),
}  # fmt: skip


class Troubles:
    """Makes the sentences for one model at one address. `secrets`: what is taken out of any quoted text."""

    def __init__(self, profile: Profile, host: str, model: str, key: str) -> None:
        """`host`: with its port, for people. `key`: where the key comes from, in words."""
        self._profile = profile
        self._host = host
        self._model = model
        self._key = key
        self.secrets: tuple[str, ...] = ()

    def of_status(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelTrouble:
        """An answer that is none."""
        if 300 <= status < 400:
            return self._redirected(status, headers.get("location", ""))
        error = _parsed(body)
        row = STATUSES.get(status, SERVER if status >= 500 else REJECTED)
        if body.lstrip()[:1] == b"<" and row in (REJECTED, STATUSES[404], STATUSES[403]):
            return self.not_a_provider(status)
        after_s = _retry_after_s(headers)
        return self._made(_more_exactly(error, row), status, _message(error), after_s)

    def in_stream(self, error: object) -> ModelTrouble:
        """An error object in the middle of an answer. Unless it says otherwise it is the provider's, and may pass."""
        status = _status_in(error)
        row = STATUSES.get(status, SERVER) if status >= 400 else SERVER
        return self._made(_more_exactly(error, row), status if status >= 400 else None, _message(error), None)

    def of_connection(self, kind: HttpKind, silence_s: float) -> ModelTrouble:
        row = NOT_CONNECTED.get(kind, NOT_CONNECTED["early"])
        return self._made(row, None, "", None, silence=f"{silence_s:.0f}")

    def no_progress(self, limit_s: float) -> ModelTrouble:
        text = f"{self._profile.label} kept the connection for {limit_s:.0f} s without answering: ask again."
        return ModelTrouble(text, kind="silent", retryable=True)

    def out_of_capacity(self) -> ModelTrouble:
        text = f"{self._profile.label} ran out of capacity in the middle of its answer: ask again in a moment."
        return ModelTrouble(text, kind="overloaded", retryable=True)

    def not_a_provider(self, status: int | None = None) -> ModelTrouble:
        text = (
            f"What answers at {self._host} is a web page or other text, not {self._profile.named}: check"
            " steadyhand.model.baseUrl, and whether a proxy or a login page stands between."
        )
        return ModelTrouble(text, kind="notAProvider", status=status)

    def garbled(self) -> ModelTrouble:
        text = f"{self._profile.label} sent something that cannot be read as an answer: ask again."
        return ModelTrouble(text, kind="garbled", retryable=True)

    def too_many_calls(self, calls_max: int) -> ModelTrouble:
        text = f"{self._profile.label} asked for more than {calls_max} calls in one answer: ask again."
        return ModelTrouble(text, kind="garbled", retryable=True)

    def too_long(self) -> ModelTrouble:
        return self._made(WINDOW, None, "", None)

    def key_missing(self) -> ModelTrouble:
        where = f"put it into {self._key}. A variable is read when the editor starts."
        text = f"There is no key for {self._profile.named}: {where}"
        return ModelTrouble(text, kind="keyMissing")

    def key_unusable(self) -> ModelTrouble:
        text = f"The key for {self._profile.named} holds characters that no key has: check {self._key}."
        return ModelTrouble(text, kind="key")

    def redacted(self, text: str) -> str:
        """A provider's words on one line, short, without keys."""
        for secret in self.secrets:
            if len(secret) >= secret_chars_min:
                text = text.replace(secret, "[key]")
        text = credential_values.sub("[key]", text)
        text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return text if len(text) <= quoted_chars_max else text[: quoted_chars_max - 1] + "…"

    def _redirected(self, status: int, target: str) -> ModelTrouble:
        named = re.match(r"https?://(?:[^/?#@\s]*@)?([\w.:-]{1,120})", target)
        where = f" to {named[1]}" if named and named[1] != self._host else ""
        text = (
            f"{self._host} sends requests elsewhere ({status}){where}, and a key does not follow:"
            " set steadyhand.model.baseUrl to the address it really has."
        )
        return ModelTrouble(text, kind="redirected", status=status)

    def _made(
        self, row: Row, status: int | None, message: str, after_s: float | None, silence: str = ""
    ) -> ModelTrouble:
        if row is REASONING and self._profile.thinking_off is None:
            row = REASONING_UNSENT
        quoted = self.redacted(message).rstrip(".")
        today = self._profile.renamed.get(self._model)
        text = row.words.format(
            label=self._profile.label,
            named=self._profile.named,
            provider=self._profile.provider,
            host=self._host,
            model=self._model,
            key=self._key,
            status=status if status is not None else "in mid-answer",
            quoted=f": “{quoted}”" if quoted else "",
            when=f"in {after_s:.0f} s" if after_s else "in a moment",
            renamed=f" to “{today}”, its name today" if today else "",
            silence=silence,
        )
        return ModelTrouble(text, kind=row.kind, retryable=row.retryable, retry_after_s=after_s, status=status)


def _more_exactly(error: object, row: Row) -> Row:
    """A key that is refused or a rate that is limited stays that, unless the words speak of money."""
    words = f"{_code(error)} {_message(error)}".lower()
    for pattern, told in TELLING:
        if re.search(pattern, words, re.DOTALL):
            if row.kind in ("key", "forbidden", "tooLarge", "server", "overloaded"):
                return row
            return told if row.kind != "rate" or told is BALANCE else row
    return row


def _parsed(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body[:4096].decode("utf-8", errors="replace") if body.lstrip()[:1] != b"<" else ""


def _inner(error: object) -> object:
    """The error itself, out of its envelopes; some providers put it into a list."""
    for name in ("error", "detail", ""):
        if isinstance(error, list) and error:
            error = error[0]
        if isinstance(error, Mapping):
            error = error.get(name) or error
    return error


def _message(error: object) -> str:
    inner = _inner(error)
    if isinstance(inner, Mapping):
        inner = inner.get("message") or inner.get("msg") or ""
    return inner if isinstance(inner, str) else ""


def _code(error: object) -> str:
    inner = _inner(error)
    if not isinstance(inner, Mapping):
        return ""
    return " ".join(str(inner.get(name) or "") for name in ("code", "type"))


def _status_in(error: object) -> int:
    """A status named inside an error object, 0 for none."""
    inner: Any = _inner(error)
    if not isinstance(inner, Mapping):
        return 0
    for name in ("code", "status", "type"):
        told = inner.get(name)
        if isinstance(told, str):
            told = int(told) if re.fullmatch(r"[45]\d\d", told) else TYPES.get(told)
        if isinstance(told, int) and not isinstance(told, bool) and 400 <= told <= 599:
            return told
    return 0


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds from now; the header is a number, or a date."""
    precise = headers.get("retry-after-ms", "").strip()
    if re.fullmatch(r"\d{1,12}(\.\d{1,9})?", precise):
        return float(precise) / 1000
    text = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text):
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None
