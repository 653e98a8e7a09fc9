"""Canonical arguments and the idempotency key: the same intention has the same name, and only the same."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.core.identity import (
    Arguments,
    BadArguments,
    SessionId,
    arguments_bytes_max,
    canonical_json,
    idempotency_key,
    parse_arguments,
    sha256,
)
from steadyhand.core.ledger import Ledger
from steadyhand.core.record import Outcome, Record, Scope, Settled, Settlement
from tests.support.journals import (
    attempt_id,
    digest,
    ends,
    ident,
    intends,
    journal,
    ledger_of,
    prompt,
    proposes,
    starts,
    verdict,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)
objects = st.dictionaries(texts, values, max_size=4)


def parsed(text: str) -> Arguments:
    found = parse_arguments(text)
    assert isinstance(found, Arguments), found
    return found


@given(objects)
def test_the_canonical_text_says_the_same(value: dict[str, object]) -> None:
    """N1: the canonical text is JSON of the same object, and is its own canonical text."""
    first = parsed(json.dumps(value))
    assert first.value == value
    assert json.loads(first.canonical) == value
    again = parsed(first.canonical)
    assert (again.canonical, again.digest) == (first.canonical, first.digest)
    assert first.digest == sha256(first.canonical.encode())


@given(objects, st.booleans(), st.sampled_from([None, 1, "\t"]), st.randoms())
def test_how_it_is_written_does_not_count(
    value: dict[str, object], escaped: bool, indent: object, random: object
) -> None:
    """N1: order of keys, blanks and escapes make no other intention."""
    keys = list(value)
    random.shuffle(keys)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    written = json.dumps({key: value[key] for key in keys}, ensure_ascii=escaped, indent=indent)  # type: ignore[arg-type]
    assert parsed(written).canonical == parsed(json.dumps(value)).canonical


def test_keys_are_sorted_by_code_point() -> None:
    """N1: by code point, so that U+FFFF comes before U+10000, and inside nested objects too."""
    text = '{"\U00010000":1,"\uffff":2,"b":{"z":1,"a":2},"B":3}'
    assert parsed(text).canonical == '{"B":3,"b":{"a":2,"z":1},"\uffff":2,"\U00010000":1}'


@pytest.mark.parametrize(
    "number", ["1", "1.0", "1.00", "1e2", "1E+2", "-0", "0", "0.1", "123456789012345678901234567890", "1e-999"]
)
def test_numbers_stay_as_they_are_written(number: str) -> None:
    """N1: 1 and 1.0 are two ways to ask; nothing is rounded."""
    assert parsed(f'{{"n": {number}}}').canonical == f'{{"n":{number}}}'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a":1,"a":1}', "a key twice"),
        ('{"a":1,"\\u0061":2}', "a key twice"),
        ('{"b":{"a":1,"a":1}}', "a key twice"),
        ('{"a":NaN}', "NaN"),
        ('{"a":Infinity}', "Infinity"),
        ('{"a":-Infinity}', "-Infinity"),
        ('{"a":1e999}', "too large"),
        ('{"a":"\\ud800"}', "surrogate"),
        ('{"\\udc00":1}', "surrogate"),
        ('{"a":"' + "\ud800" + '"}', "surrogate"),
        ("[1]", "not a JSON object"),
        ('"text"', "not a JSON object"),
        ("null", "not a JSON object"),
        ("", "not valid JSON"),
        ('{"a":1', "not valid JSON"),
        ('{"a":1} x', "not valid JSON"),
        ('{"a":1,}', "not valid JSON"),
        ("{'a':1}", "not valid JSON"),
        ('{"a":"\n"}', "not valid JSON"),
        ("\ufeff{}", "not valid JSON"),
        ('{"a":01}', "not valid JSON"),
        ('{"a":' + "[" * 100_000, "nested too deeply"),
        ('{"a":' + "9" * 5000 + "}", "not valid JSON"),
    ],
)
def test_what_has_no_canonical_form_is_bad(text: str, why: str) -> None:
    """N1, T6: nothing is mended; the model is told in one sentence."""
    found = parse_arguments(text)
    assert isinstance(found, BadArguments)
    assert why in found.why
    assert found.why.endswith(".")


def test_arguments_are_bounded() -> None:
    """The bound is in bytes, and what reaches it is still taken [I13]."""
    room = arguments_bytes_max - len('{"a":""}')
    assert isinstance(parse_arguments('{"a":"' + "x" * room + '"}'), Arguments)
    assert isinstance(parse_arguments('{"a":"' + "x" * (room + 1) + '"}'), BadArguments)
    assert isinstance(parse_arguments('{"a":"' + "é" * (room // 2 + 1) + '"}'), BadArguments)


def test_a_surrogate_pair_is_one_character() -> None:
    """N1: two escapes that make one character are that character."""
    assert parsed('{"a":"\\ud83d\\ude00"}').canonical == '{"a":"😀"}'


@given(values)
def test_our_own_canonical_text(value: object) -> None:
    """N1: keys sorted, no blanks, UTF-8."""
    assert json.loads(canonical_json(value)) == value
    assert canonical_json({"b": 1, "a": "é"}) == '{"a":"é","b":1}'


def test_the_key_says_everything_that_is_intended() -> None:
    """N2: another session, tool, arguments, scope or occurrence is another key [I10]."""
    scope, other = Scope(("/w/a",)).plain(), Scope(("/w/b",)).plain()
    keys = {
        idempotency_key(SessionId("s"), "write_file", "{}", scope, 0),
        idempotency_key(SessionId("t"), "write_file", "{}", scope, 0),
        idempotency_key(SessionId("s"), "edit_file", "{}", scope, 0),
        idempotency_key(SessionId("s"), "write_file", '{"a":1}', scope, 0),
        idempotency_key(SessionId("s"), "write_file", "{}", other, 0),
        idempotency_key(SessionId("s"), "write_file", "{}", scope, 1),
    }
    assert len(keys) == 6
    assert idempotency_key(SessionId("s"), "write_file", "{}", scope, 0) in keys


def test_a_name_that_is_not_utf_8_has_a_key() -> None:
    """N2: a path as the system gives it may hold bytes that are no text."""
    assert len(idempotency_key(SessionId("s"), "write_file", "{}", Scope(("/w/\udcff",)).plain(), 0)) == 64


# The occurrence: what is known to have happened.

SCOPE = Scope(("/home/me/project/one.txt",))


def occurrence(*after_start: Record) -> int:
    """How many times the intention is known to have happened, once it started and then this was recorded."""
    history = [prompt("turn"), proposes("turn", "one"), intends("one"), starts("one"), *after_start]
    return ledger_of(journal(history)).known_happened("write_file", digest("{}"), SCOPE)


@pytest.mark.parametrize(
    ("outcome", "count"),
    [
        ("returned", 1),
        ("failed", 0),
        ("stopped", 0),
        ("refused", 0),
        ("not_started", 0),
        ("interrupted_before_execution", 0),
        ("interrupted", 0),
        ("unknown", 0),
        ("unknown_after_restart", 0),
    ],
)
def test_the_key_changes_after_a_done_one_alone(outcome: Outcome, count: int) -> None:
    """N2: asking again after an uncertain or absent one keeps the key, after a done one it is new [I10]."""
    assert occurrence(ends("one", outcome)) == count


@pytest.mark.parametrize(
    ("settled", "count"),
    [
        ("checked_present", 1),
        ("user_confirmed", 1),
        ("model_confirmed", 1),
        ("waived", 1),
        ("checked_absent", 0),
        ("restored", 0),
        ("superseded", 0),
    ],
)
def test_a_settlement_decides_whether_it_happened(settled: Settled, count: int) -> None:
    """N2: checked present, confirmed and waived count as happened; absent, restored and superseded do not."""
    settlement = Settlement(attempt_id("one"), ident("one"), settled, "user")
    assert occurrence(verdict("one", "unknown_after_restart"), settlement) == count


def test_what_was_restored_did_not_stay() -> None:
    """N2, J14: present by check, then restored: asking again has the first key."""
    present = Settlement(attempt_id("one"), ident("one"), "checked_present", "recovery")
    restored = Settlement(attempt_id("one"), ident("one"), "restored", "user")
    assert occurrence(verdict("one", "unknown"), present, restored) == 0


def test_only_the_very_same_counts() -> None:
    """N2: another tool, other arguments and another scope are other intentions."""
    ledger = ledger_of(journal([prompt("turn"), proposes("turn", "one"), intends("one"), starts("one"), ends("one")]))
    assert ledger.known_happened("edit_file", digest("{}"), SCOPE) == 0
    assert ledger.known_happened("write_file", digest('{"a":1}'), SCOPE) == 0
    assert ledger.known_happened("write_file", digest("{}"), Scope(("/home/me/project/two.txt",))) == 0
    assert Ledger().known_happened("write_file", digest("{}"), SCOPE) == 0


def test_a_move_has_the_same_key_after_a_restart() -> None:
    """N2: two paths are the same scope in whatever order they were named, live and read back."""
    scope = Scope(("/home/me/project/z.txt", "/home/me/project/a.txt"))
    move = intends("one", scope=scope, tool="move_file")
    ledger = ledger_of(journal([prompt("turn"), proposes("turn", "one"), move, starts("one"), ends("one")]))
    assert ledger.known_happened("move_file", digest("{}"), scope) == 1
