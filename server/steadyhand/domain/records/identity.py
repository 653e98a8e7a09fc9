"""Identity: ids, canonical arguments, digests and the idempotency key (rows N1, N2).

Canonical arguments are JSON text with keys sorted by code point, no blanks, and numbers as written. Arguments without a
canonical form (duplicate keys, NaN, Infinity, lone surrogates, anything but an object) are a `BadArguments` value,
never an exception.

The idempotency key names the intention and not the try: it stays the same until the intention is known to have
happened, and a retry keeps it.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import NewType

from steadyhand_values import frozen

SessionId = NewType("SessionId", str)
TurnId = NewType("TurnId", str)
CallId = NewType("CallId", str)
AttemptId = NewType("AttemptId", str)
Epoch = NewType("Epoch", str)
Digest = NewType("Digest", str)

ARGUMENTS_BYTES_MAX = 8 * 1024 * 1024
"""Bytes of UTF-8 of one call's arguments."""


@frozen
class Arguments:
    """Parsed arguments: the object, its canonical text and the digest of that text."""

    value: dict[str, object]
    canonical: str
    digest: Digest


@frozen
class BadArguments:
    """Arguments without a canonical form. `why` is one sentence for the model."""

    why: str


class _WrittenNumber:
    """A number in the spelling of the text."""

    def __init__(self, text: str) -> None:
        self.text = text


class _NotCanonical(ValueError):
    """The text has no canonical form; the message says why."""


def sha256(content: bytes) -> Digest:
    """Return the SHA-256 digest as 64 lower-case hex digits."""
    return Digest(hashlib.sha256(content).hexdigest())


def parse_arguments(text: str) -> Arguments | BadArguments:
    """Parse strictly: a text that does not parse as a whole is bad; nothing is repaired."""
    if len(text.encode("utf-8", "surrogatepass")) > ARGUMENTS_BYTES_MAX:
        return BadArguments(f"The arguments are longer than {ARGUMENTS_BYTES_MAX} bytes.")
    try:
        canonical = _canonical(_load(text, as_written=True))
        value = _load(text, as_written=False)
        canonical.encode("utf-8")
    except UnicodeEncodeError:
        return BadArguments("The arguments hold half of a surrogate pair, which is no character.")
    except _NotCanonical as unfit:
        return BadArguments(str(unfit))
    except RecursionError:
        return BadArguments("The arguments are nested too deeply.")
    except ValueError as error:
        return BadArguments(f"The arguments are not valid JSON: {error}.")
    if not isinstance(value, dict):
        return BadArguments("The arguments are not a JSON object.")
    return Arguments(value, canonical, sha256(canonical.encode("utf-8")))


def canonical_json(value: object) -> str:
    """Return the canonical text of plain values made by us (strings, ints, bools, None, lists, objects)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def command_intention(command: str, cwd: str, background: bool) -> Digest:
    """Return what makes two calls of `run_command` the same intention (rows N2, B6). `cwd`: absolute, resolved."""
    return sha256(canonical_json([command, cwd, background]).encode("utf-8", "surrogatepass"))


def without_member(arguments: Arguments, name: str) -> Arguments:
    """Return the arguments with a digest and a canonical text that do not contain this member of the object."""
    if name not in arguments.value:
        return arguments
    written = _load(arguments.canonical, as_written=True)
    assert isinstance(written, dict), "arguments are an object"
    canonical = _canonical({key: value for key, value in written.items() if key != name})
    return Arguments(arguments.value, canonical, sha256(canonical.encode("utf-8")))


def idempotency_key(session: SessionId, tool: str, canonical: str, scope: object, occurrence: int) -> Digest:
    """Return the key (row N2).

    `scope` is its plain form; `occurrence` counts earlier attempts known to have happened.
    """
    text = canonical_json([session, tool, canonical, scope, occurrence])
    return sha256(text.encode("utf-8", "surrogatepass"))  # a path in the scope need not be UTF-8


def _refuse_constant(word: str) -> object:
    raise _NotCanonical(f"The arguments hold {word}, which is not JSON.")


def _object(members: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(members)
    if len(found) != len(members):
        raise _NotCanonical("The arguments hold a key twice.")
    return found


def _finite(written: str) -> float:
    if math.isinf(found := float(written)):
        raise _NotCanonical("The arguments hold a number that is too large.")
    return found


# Decoders are made once: `json.loads` with these options makes a new one for each text.
_DECODERS = {
    True: json.JSONDecoder(
        parse_constant=_refuse_constant,
        object_pairs_hook=_object,
        parse_int=_WrittenNumber,
        parse_float=_WrittenNumber,
    ),
    False: json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_object, parse_float=_finite),
}


def _load(text: str, as_written: bool) -> object:
    return _DECODERS[as_written].decode(text)


def _canonical(value: object) -> str:
    if isinstance(value, _WrittenNumber):
        return value.text
    if isinstance(value, dict):
        members = [f"{_string(key)}:{_canonical(value[key])}" for key in sorted(value)]
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join([_canonical(item) for item in value]) + "]"
    if isinstance(value, str):
        return _string(value)
    return json.dumps(value)


_string = json.JSONEncoder(ensure_ascii=False).encode
"""Encode a text as JSON. One encoder for all: `json.dumps` makes a new one for each text."""
