"""Who is who: ids, canonical arguments, digests and the idempotency key (rows N1, N2).

Canonical arguments are JSON text with keys sorted by code point, no blanks and numbers as written. What has no
canonical form (duplicate keys, NaN, Infinity, lone surrogates, anything but an object) is bad arguments, which is
a value here and never an exception.

The idempotency key names what is intended, not the try: it stays the same until the intention is known to have
happened, and over a retry.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import NewType

import attrs

SessionId = NewType("SessionId", str)
TurnId = NewType("TurnId", str)
CallId = NewType("CallId", str)
AttemptId = NewType("AttemptId", str)
Epoch = NewType("Epoch", str)
Digest = NewType("Digest", str)

arguments_bytes_max = 8 * 1024 * 1024


@attrs.frozen
class Arguments:
    """Parsed arguments: the object, its canonical text and the digest of that text."""

    value: dict[str, object]
    canonical: str
    digest: Digest


@attrs.frozen
class BadArguments:
    """Why a text has no canonical form; one sentence for the model."""

    why: str


class _Written:
    """A number as it was written."""

    def __init__(self, text: str) -> None:
        self.text = text


class _Unfit(ValueError):
    pass


def sha256(content: bytes) -> Digest:
    return Digest(hashlib.sha256(content).hexdigest())


def parse_arguments(text: str) -> Arguments | BadArguments:
    """Strict: what does not parse whole is bad, nothing is mended."""
    if len(text.encode("utf-8", "surrogatepass")) > arguments_bytes_max:
        return BadArguments(f"The arguments are longer than {arguments_bytes_max} bytes.")
    try:
        canonical = _canonical(_load(text, as_written=True))
        value = _load(text, as_written=False)
        canonical.encode("utf-8")
    except UnicodeEncodeError:
        return BadArguments("The arguments hold half of a surrogate pair, which is no character.")
    except _Unfit as unfit:
        return BadArguments(str(unfit))
    except RecursionError:
        return BadArguments("The arguments are nested too deeply.")
    except ValueError as error:
        return BadArguments(f"The arguments are not valid JSON: {error}.")
    if not isinstance(value, dict):
        return BadArguments("The arguments are not a JSON object.")
    return Arguments(value, canonical, sha256(canonical.encode("utf-8")))


def canonical_json(value: object) -> str:
    """Canonical text of plain values of ours (strings, ints, bools, None, lists, objects)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def idempotency_key(session: SessionId, tool: str, canonical: str, scope: object, occurrence: int) -> Digest:
    """N2. `scope` is the scope's plain form; `occurrence` counts earlier attempts known to have happened."""
    text = canonical_json([session, tool, canonical, scope, occurrence])
    return sha256(text.encode("utf-8", "surrogatepass"))  # a file's name need not be UTF-8


def _load(text: str, as_written: bool) -> object:
    def constant(word: str) -> object:
        raise _Unfit(f"The arguments hold {word}, which is not JSON.")

    def pairs(members: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(members)
        if len(found) != len(members):
            raise _Unfit("The arguments hold a key twice.")
        return found

    def number(written: str) -> float:
        if math.isinf(found := float(written)):
            raise _Unfit("The arguments hold a number that is too large.")
        return found

    if as_written:
        return json.loads(
            text, parse_constant=constant, object_pairs_hook=pairs, parse_int=_Written, parse_float=_Written
        )
    return json.loads(text, parse_constant=constant, object_pairs_hook=pairs, parse_float=number)


def _canonical(value: object) -> str:
    if isinstance(value, _Written):
        return value.text
    if isinstance(value, dict):
        members = (f"{_string(key)}:{_canonical(value[key])}" for key in sorted(value))
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_canonical(item) for item in value) + "]"
    if isinstance(value, str):
        return _string(value)
    return json.dumps(value)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
