"""Every failure of a provider as one sentence that says what to do next, and whether another request may help.

`STATUSES` has the HTTP statuses. The words of a provider's error make the row more exact: a full window, an empty
account, missing reasoning. Inside an answer, where an error may have no status, they alone decide. `error_words` finds
them. Every sentence about an answer quotes the provider's own words, short, on one line, without anything that is or
looks like a key (row E2, case 111).
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

from steadyhand.adapters.models.error_words import (
    find_codes,
    find_members,
    find_status,
    find_words,
    page_title,
    parse_body,
)
from steadyhand.adapters.models.http import HttpError, HttpKind
from steadyhand.domain.model.messages import ProviderError, TroubleKind
from steadyhand.domain.model.provider_profiles import Dialect, Profile
from steadyhand.domain.permissions.redaction import redact
from steadyhand_values import frozen

QUOTED_CHARS_MAX = 200
WORDS_CHARS_MAX = 4000  # of `ProviderError.words`


@frozen
class ErrorRow:
    """The meaning of a status. `{quoted}` in the template is the provider's own message, or empty."""

    kind: TroubleKind
    is_retryable: bool
    template: str


SERVER = ErrorRow("server", True, "{label} failed ({status}){quoted}. Try again in a moment.")
OVERLOADED = ErrorRow("overloaded", True, "{label} is overloaded ({status}){quoted}. Try again in a moment.")
REJECTED = ErrorRow("rejected", False, "{label} refused the request ({status}){quoted}. See docs/providers.md.")
WINDOW = ErrorRow(
    "window",
    False,
    "The conversation is longer than {model} can read{quoted}. Begin a new session, or choose a model with a larger"
    " window.",
)
BALANCE = ErrorRow(
    "balance", False, "Your account with {named} is out of credit ({status}){quoted}. Add credit or switch provider."
)
MODEL = ErrorRow(
    "notFound",
    False,
    "{label} at {host} does not know the model “{model}” ({status}){quoted}. Set steadyhand.model.name{renamed}.",
)
REASONING = ErrorRow(
    "reasoning",
    False,
    "{label} requires reasoning that this session does not have ({status}){quoted}. Begin a new session, or choose"
    " another model.",
)
# If a profile neither sends reasoning back nor can ask for none, the same request would fail again.
REASONING_UNSENT = ErrorRow(
    "rejected",
    False,
    "{label} requires reasoning ({status}){quoted}, which is not sent for the provider “{provider}” in your settings."
    " Set steadyhand.model.provider to the provider at this address, or choose another model.",
)

STATUSES: Mapping[int, ErrorRow] = {
    400: REJECTED,
    401: ErrorRow("key", False, "{label} does not accept the key ({status}){quoted}. Check {key}."),
    402: BALANCE,
    403: ErrorRow(
        "forbidden",
        False,
        "{label} does not allow this request ({status}){quoted}. Check what the key allows, or choose another model.",
    ),
    404: ErrorRow(
        "notFound",
        False,
        "{label} at {host} does not know this model or address ({status}){quoted}."
        " Check steadyhand.model.name (“{model}”) and steadyhand.model.baseUrl.",
    ),
    408: SERVER,
    409: SERVER,
    413: ErrorRow(
        "tooLarge",
        False,
        "The request is larger than {named} accepts ({status}){quoted}. Begin a new session, or attach fewer or smaller"
        " files.",
    ),
    422: REJECTED,
    425: SERVER,
    429: ErrorRow("rate", True, "Rate limited by {named} ({status}){quoted}. Try again {when}."),
    501: ErrorRow(
        "rejected", False, "{label} at {host} cannot do this ({status}){quoted}. Check steadyhand.model.baseUrl."
    ),
    503: OVERLOADED,
    529: OVERLOADED,
}

# Patterns of a provider's error (its codes and words, lower case) that say more than its status; the first wins.
PATTERNS: tuple[tuple[str, ErrorRow], ...] = (
    (r"reasoning_content.{0,80}must be passed back", REASONING),
    (r"expected `?(?:redacted_)?thinking|thinking.{0,40} blocks? .{0,80}cannot be modified", REASONING),
    (
        r"invalid_encrypted_content|encrypted content .{0,200}could not be|type 'reasoning' was provided without",
        REASONING,
    ),
    (r"context_length_exceeded|exceed_context_size|maximum context length|available context size", WINDOW),
    (r"prompt is too long|context window|input is too long|model_context_window_exceeded", WINDOW),
    (r"prompt is \d[\d,.]* tokens|exceeds? (?:the )?(?:model'?s )?(?:max\w* )?context", WINDOW),
    (r"context.?length.{0,40}(?:exceed|too)|too many (?:input )?tokens", WINDOW),
    (r"max length of current question|range of input length", WINDOW),
    (r"(?:prompt|input|messages?) .{0,60}exceeds? .{0,60}tokens|input token count .{0,40}exceeds", WINDOW),
    (r"insufficient_quota|insufficient (?:balance|credit|funds)|credit balance", BALANCE),
    (r"billing_error|payment required", BALANCE),
    (r"model_not_found|model not exist|model .{0,120}(?:does not exist|not found|is not a valid model)", MODEL),
)

# Patterns that decide only where an error has no status at all.
UNSTATED: tuple[tuple[str, int], ...] = (
    (r"rate.?limit|too many requests|throttl|quota exceeded|requests per minute", 429),
    (r"overloaded|at capacity|no capacity|server is busy|temporarily unavailable|service unavailable", 503),
    (r"invalid (?:x-)?api.?key|incorrect api.?key|unauthori[sz]ed|authentication", 401),
    (r"invalid token|token invalid|login fail|not authenticated", 401),
    (r"permission denied|not allowed to|forbidden|access denied", 403),
    (r"extra inputs|extra_forbidden|unknown (?:field|parameter|name)|unrecognized", 400),
    (r"is unsupported|unsupported parameter|input should be", 400),
    (r"not supported|invalid (?:request|parameter|value|type|role|json)|validation error|field required", 400),
)

NOT_CONNECTED: Mapping[HttpKind, ErrorRow] = {
    "unreachable": ErrorRow(
        "unreachable",
        True,
        "{label} at {host} cannot be reached. Check that it is running, and your connection.{start}{detail}",
    ),
    "name": ErrorRow(
        "unreachable",
        True,
        "Can't find {host}. Check your connection or the base URL (steadyhand.model.baseUrl).{detail}",
    ),
    "tls": ErrorRow(
        "unreachable",
        False,
        "The certificate of {host} is not trusted. Add its authority to the system's store, or set SSL_CERT_FILE."
        "{detail}",
    ),
    "notTls": ErrorRow(
        "unreachable",
        False,
        "{host} does not accept a connection with TLS. Check whether steadyhand.model.baseUrl begins with http:// or"
        " https://.{detail}",
    ),
    "proxy": ErrorRow(
        "unreachable",
        False,
        "The proxy in the environment cannot be used{detail}. Check HTTPS_PROXY, or add {host} to NO_PROXY.",
    ),
    "certificates": ErrorRow("settings", False, "{detail}"),
    "address": ErrorRow("settings", False, "The address of {named} cannot be used. Check steadyhand.model.baseUrl."),
    "silent": ErrorRow("silent", True, "{label} at {host} sent nothing for {silence} s. Try again."),
    "early": ErrorRow("unreachable", True, "{host} closed the connection before it answered. Try again."),
    "encoding": ErrorRow("garbled", True, "The answer of {named} arrived damaged. Try again."),
}


class ProviderErrors:
    """Makes the sentences for one model at one address. `secrets`: what is taken out of any quoted text."""

    def __init__(self, profile: Profile, host: str, model: str, key: str) -> None:
        """`host`: with its port, for people. `key`: where the key comes from, in words."""
        self._profile = profile
        self._host = host
        self._model = model
        self._key = key
        self.secrets: tuple[str, ...] = ()

    def of_status(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """Return the error of a response whose status is not 200."""
        if 300 <= status < 400:
            return self._of_redirect(status, headers.get("location", ""))
        row = STATUSES.get(status, SERVER if status >= 500 else REJECTED)
        if body.lstrip()[:1] == b"<" and row in (REJECTED, STATUSES[404], STATUSES[403]):
            return self.not_a_provider(status, page_title(body))
        error = parse_body(body)
        return self._make(_refine_row(error, row), status, error, _retry_after_s(headers))

    def in_stream(self, error: object) -> ProviderError:
        """Return the error of an error object inside an answer. It may be retried unless it says otherwise."""
        status = find_status(error)
        row = STATUSES.get(status, SERVER if status >= 500 else REJECTED) if status else _row_of_words(error)
        return self._make(_refine_row(error, row), status or None, error, None)

    def of_connection(self, failed: HttpError, silence_s: float) -> ProviderError:
        """Return the error of a connection that failed."""
        row = NOT_CONNECTED.get(failed.kind, NOT_CONNECTED["early"])
        return self._make(row, None, None, None, silence=f"{silence_s:.0f}", detail=failed.detail)

    def no_progress(self, limit_s: float) -> ProviderError:
        """Return the error of a connection that stays open without an answer."""
        text = f"{self._profile.label} kept the connection open for {limit_s:.0f} s without answering. Try again."
        return ProviderError(text, kind="silent", retryable=True)

    def out_of_capacity(self) -> ProviderError:
        """Return the error of an answer that ended early because the provider is out of capacity."""
        text = f"{self._profile.label} ran out of capacity in the middle of its answer. Try again in a moment."
        return ProviderError(text, kind="overloaded", retryable=True)

    def not_a_provider(self, status: int | None = None, words: str = "") -> ProviderError:
        """Return the error of a server that is not a provider, for instance a web page. `words`: what it says."""
        text = (
            f"{self._host} answers with a web page or other text, not as {self._profile.named}{self._quote(words)}."
            " Check steadyhand.model.baseUrl, and whether a proxy or a login page answers instead."
        )
        return ProviderError(text, kind="notAProvider", status=status)

    def garbled(self, words: str = "") -> ProviderError:
        """Return the error of an unreadable answer. `words`: what came instead."""
        text = f"{self._profile.label} sent an answer that cannot be read{self._quote(words)}. Try again."
        return ProviderError(text, kind="garbled", retryable=True)

    @property
    def dialect(self) -> Dialect:
        """The dialect in which the provider is asked."""
        return self._profile.dialect

    def other_dialect(self, dialect: Dialect) -> ProviderError:
        """Return the error of an answer in another dialect than that of the request."""
        text = (
            f"{self._profile.label} at {self._host} answers in the dialect “{dialect}” and was asked in"
            f" “{self._profile.dialect}”. Set steadyhand.model.dialect to “{dialect}”."
        )
        return ProviderError(text, kind="settings")

    def too_many_calls(self, calls_max: int) -> ProviderError:
        """Return the error of an answer with too many calls."""
        text = f"{self._profile.label} made more than {calls_max} calls in one answer. Try again."
        return ProviderError(text, kind="garbled", retryable=True)

    def too_long(self) -> ProviderError:
        """Return the error of a conversation that exceeds the window."""
        return self._make(WINDOW, None, None, None)

    def key_missing(self) -> ProviderError:
        """Return the error of a missing key."""
        where = f"Put it into {self._key}. A variable is read when the editor starts."
        text = f"There is no key for {self._profile.named}. {where}"
        return ProviderError(text, kind="keyMissing")

    def key_unusable(self) -> ProviderError:
        """Return the error of a key with invalid characters."""
        text = f"The key for {self._profile.named} contains characters that no key has. Check {self._key}."
        return ProviderError(text, kind="key")

    def redact(self, text: str, chars_max: int = QUOTED_CHARS_MAX) -> str:
        """Return a provider's words on one line, short, without keys."""
        text = redact(text, self.secrets, "[key]")
        text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return text if len(text) <= chars_max else text[: chars_max - 1] + "…"

    def _of_redirect(self, status: int, target: str) -> ProviderError:
        named = re.match(r"https?://(?:[^/?#@\s]*@)?([\w.:-]{1,120})", target)
        where = f" to {named[1]}" if named and named[1] != self._host else ""
        text = (
            f"{self._host} redirects requests ({status}){where}, and a key is never redirected."
            " Set steadyhand.model.baseUrl to the final address."
        )
        return ProviderError(text, kind="redirected", status=status)

    def _quote(self, words: str) -> str:
        """Return words as the end of a clause; nothing for no words."""
        quoted = self.redact(words).rstrip(".")
        return f": “{quoted}”" if quoted else ""

    def _make(
        self,
        row: ErrorRow,
        status: int | None,
        error: object,
        after_s: float | None,
        silence: str = "",
        detail: str = "",
    ) -> ProviderError:
        if row is REASONING and self._profile.thinking_off is None:
            row = REASONING_UNSENT
        words = find_words(error) or find_codes(error)
        today = self._profile.renamed.get(self._model)
        text = row.template.format(
            label=self._profile.label,
            named=self._profile.named,
            provider=self._profile.provider,
            host=self._host,
            model=self._model,
            key=self._key,
            status=status if status is not None else "during the answer",
            quoted=self._quote(words),
            when=f"in {after_s:.0f} s" if after_s else "in a moment",
            renamed=f" to “{today}”, its present name" if today else "",
            silence=silence,
            detail=detail,
            start=f" {self._profile.start}" if self._profile.start else "",
        )
        return ProviderError(
            text,
            kind=row.kind,
            retryable=row.is_retryable,
            retry_after_s=after_s,
            status=status,
            words=self.redact(f"{words} {find_members(error)}", WORDS_CHARS_MAX),
        )


def _refine_row(error: object, row: ErrorRow) -> ErrorRow:
    """Return the more exact row. A refused key or a rate limit stays one, unless the words are about money."""
    words = f"{find_codes(error)} {find_words(error)}".lower()
    for pattern, exact in PATTERNS:
        if re.search(pattern, words, re.DOTALL):
            if row.kind in ("key", "forbidden", "tooLarge", "overloaded"):
                return row
            return exact if row.kind != "rate" or exact is BALANCE else row
    return row


def _row_of_words(error: object) -> ErrorRow:
    """Return the row of an error without a status."""
    words = f"{find_codes(error)} {find_words(error)}".lower()
    for pattern, status in UNSTATED:
        if re.search(pattern, words, re.DOTALL):
            return STATUSES[status]
    return SERVER


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return seconds from now; the header is a number or a date."""
    precise = headers.get("retry-after-ms", "").strip()
    if re.fullmatch(r"\d{1,12}(\.\d{1,9})?", precise):
        return float(precise) / 1000
    text = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text):
        return float(text)
    from email.utils import parsedate_to_datetime  # takes long to import, and a date is rare

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None
