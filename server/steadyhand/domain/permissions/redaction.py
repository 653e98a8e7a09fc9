"""Take credentials out of a text that others see: a provider's words, a command line (row E2, case 148).

Every such output goes through `redact`. What goes is the whole word, never a part of it: a word ends at a blank, and a
value in quotes at its quote. It recognises

    known secrets         each word with 8 characters in a row of one of them
    known forms           the formats of providers' keys, tokens, URLs with a password, blocks of private keys
    named values          `NAME=value`, `name: value`, `"name": "value"`, `--name value`, headers, if the name is a
                          credential's (`domain.permissions.child_environment`)
    options of programs   `-u user:password`, and in a command line `-psecret` and those of `SECRET_OPTIONS`

When in doubt it hides. Deliberately absent: what a tool writes, what a command prints, and what the model sent; they
are the user's own content and stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from steadyhand.domain.permissions.child_environment import CREDENTIAL_VALUES, looks_like_credential
from steadyhand_values import pattern

PIECE_CHARS = 8
"""A piece of a known secret of this length hides its word."""
SECRET_CHARS_MIN = 4
"""A shorter secret would match parts of words."""
REDACTED_CHARS_MAX = 64 * 1024
"""Of a text; the rest of a longer one is left out."""

SECRET_OPTIONS: Mapping[str, str] = {
    "7z": "p",
    "curl": "uUbE",
    "docker": "p",
    "http": "a",
    "https": "a",
    "ldapadd": "w",
    "ldapmodify": "w",
    "ldapsearch": "w",
    "mongo": "p",
    "mongosh": "p",
    "mongodump": "p",
    "podman": "p",
    "redis-cli": "a",
    "smbclient": "U",
    "sshpass": "p",
    "unzip": "P",
    "zip": "P",
}
"""Program → its one-letter options whose next word is a secret."""

_PRIVATE_KEY = pattern(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY.{0,65536}?(?:-----END [A-Z0-9 ]{0,40}-----|\Z)", re.DOTALL
)
_FORMS = pattern(
    "|".join(
        (
            r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{4}",
            r"(?<![A-Za-z0-9])(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{4}",
            r"(?<![A-Za-z0-9])(?:pplx|nvapi|csk|fw|key|glptt|gldt|glrt|glcbt)-[A-Za-z0-9_-]{12}",
            r"(?<![A-Za-z0-9])(?:r8|fw|tgp_v1|lin_api|ntn|shpss|shpca|figd|whsec|dckr_pat|dckr_oat|sq0atp|sq0csp)"
            r"[_-][A-Za-z0-9_-]{12}",
            r"(?<![A-Za-z0-9])(?:gh[oprsu]_|github_pat_|glpat-|gsk_|xai-|hf_|npm_|dop_v1_|shpat_|pypi-|hvs\.|hvb\.)"
            r"[A-Za-z0-9_.-]{6}",
            r"(?<![A-Za-z0-9])(?:ATATT3|ATCTT3)[A-Za-z0-9_=-]{8}",
            r"(?<![A-Za-z0-9])dapi[0-9a-f]{16}",
            r"(?<![A-Za-z0-9])SK[0-9a-f]{32}",
            r"(?<![A-Za-z0-9])(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12}",
        )
    )
)
_NAMED = pattern(r"(?<![A-Za-z0-9])([A-Za-z][A-Za-z0-9_.-]{0,80})[\"'\\]{0,3}\s{0,4}(?::=|=>|=|:)(?!//)[ \t]{0,4}")
_NEXT_OPTION = pattern(r"(?<!\S)--?([A-Za-z][A-Za-z0-9_.-]{1,80})[ \t]{1,4}(?=\S)")
_USER_OPTION = pattern(r"(?<!\S)(?:-u|-U|--user|--proxy-user|--login)[ \t=]{0,4}(?=[^\s:%]{0,200}[:%])")
_JOINED_PASSWORD = pattern(r"(?<!\S)-p(?=\S)")
_WORD = pattern(r"\S+")
_SCHEME = pattern(r"(?i:bearer|basic|digest|token|apikey|api-key|negotiate|ntlm|key|aws4-hmac-sha256)[ \t]{1,4}(?=\S)")
_LINE_HEADERS = frozenset({"COOKIE", "SET-COOKIE"})

_Span = tuple[int, int]


def redact(text: str, secrets: Sequence[str] = (), mark: str = "***", is_command: bool = False) -> str:
    """Return the text with each credential, and the word it stands in, replaced by `mark`."""
    text = _PRIVATE_KEY.sub(mark, text[:REDACTED_CHARS_MAX])
    spans = [*_known_secrets(text, secrets), *_known_forms(text), *_named_values(text), *_option_values(text)]
    if is_command:
        spans += _command_values(text)
    kept: list[str] = []
    at = 0
    for start, end in sorted(spans):
        if end <= at:
            continue
        if start >= at:
            kept += [text[at:start], mark]
        at = end
    return "".join(kept) + text[at:]


def _known_secrets(text: str, secrets: Sequence[str]) -> Iterator[_Span]:
    long = {
        secret[at : at + PIECE_CHARS]
        for secret in secrets
        if len(secret) >= PIECE_CHARS
        for at in range(len(secret) - PIECE_CHARS + 1)
    }
    short = [secret for secret in secrets if SECRET_CHARS_MIN <= len(secret) < PIECE_CHARS]
    if not long and not short:
        return
    for word in _WORD.finditer(text):
        found = word[0]
        if any(secret in found for secret in short) or any(
            found[at : at + PIECE_CHARS] in long for at in range(len(found) - PIECE_CHARS + 1)
        ):
            yield word.span()


def _known_forms(text: str) -> Iterator[_Span]:
    for forms in (CREDENTIAL_VALUES, _FORMS):
        end = 0
        for found in forms.finditer(text):
            if found.start() >= end:
                end = _value_end(text, found.end())
                yield _word_start(text, found.start()), end


def _named_values(text: str) -> Iterator[_Span]:
    end = 0
    for found in _NAMED.finditer(text):
        name, start = found[1], found.end()
        is_header = name.upper() in _LINE_HEADERS
        if start >= end and (is_header or _is_secret_name(name)):
            end = _value_end(text, start)
            while is_header and text[end - 1] == ";" and end < len(text):
                end = _value_end(text, end + 1)
            if end > start:
                yield start, end


def _option_values(text: str) -> Iterator[_Span]:
    for found in _NEXT_OPTION.finditer(text):
        if found[0].startswith("--") and _is_secret_name(found[1]):
            yield found.end(), _value_end(text, found.end())
    for found in _USER_OPTION.finditer(text):
        yield found.end(), _value_end(text, found.end())


def _command_values(text: str) -> Iterator[_Span]:
    for found in _JOINED_PASSWORD.finditer(text):
        yield found.end(), _value_end(text, found.end())
    letters, is_due = "", False
    for word in _WORD.finditer(text):
        if is_due:
            yield word.start(), _value_end(text, word.start())
        name = word[0].rpartition("/")[2]
        letters = SECRET_OPTIONS.get(name, letters)
        is_due = len(word[0]) == 2 and word[0][0] == "-" and word[0][1] in letters
        if not is_due and word[0][:1] == "-" and word[0][1:2] and word[0][1] in letters:
            yield word.start() + 2, _value_end(text, word.start() + 2)


def _is_secret_name(name: str) -> bool:
    """Return whether the name is a credential's; a number of tokens is none."""
    return not name.upper().endswith("TOKENS") and looks_like_credential(name, "x")


def _word_start(text: str, at: int) -> int:
    while at > 0 and not text[at - 1].isspace():
        at -= 1
    return at


def _value_end(text: str, at: int) -> int:
    """Return the end of a value that begins at `at`, or goes on there: of the word, or of the quotes around it."""
    scheme = _SCHEME.match(text, at)
    if scheme is not None:
        at = scheme.end()
    quote = text[at : at + 2].lstrip("\\")[:1]
    if quote in ("'", '"', "`"):
        closing = _closing_quote(text, text.index(quote, at) + 1, quote)
        at = closing if closing is not None else len(text)
    while at < len(text) and not text[at].isspace():
        at += 1
    return at


def _closing_quote(text: str, at: int, quote: str) -> int | None:
    while at < len(text):
        if text[at] == quote:
            return at + 1
        at += 2 if text[at] == "\\" and text[at + 1 : at + 2] == "\\" else 1
    return None
