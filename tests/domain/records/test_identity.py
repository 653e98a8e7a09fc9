"""Canonical arguments and the idempotency key: equal intentions have equal keys, and different ones do not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.ledger.state import Intention
from steadyhand.domain.records.identity import (
    ARGUMENTS_BYTES_MAX,
    Arguments,
    BadArguments,
    SessionId,
    canonical_json,
    command_intention,
    idempotency_key,
    parse_arguments,
    sha256,
    without_member,
)
from steadyhand.domain.records.record import Outcome, Record, Scope, Settled, Settlement
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


def parse(text: str) -> Arguments:
    found = parse_arguments(text)
    assert isinstance(found, Arguments), found
    return found


@given(objects)
def test_canonical_arguments_are_equivalent_json_and_a_fixed_point(value: dict[str, object]) -> None:
    """N1: the canonical text is JSON of the same object, and it is its own canonical text."""
    first = parse(json.dumps(value))
    assert first.value == value
    assert json.loads(first.canonical) == value
    again = parse(first.canonical)
    assert (again.canonical, again.digest) == (first.canonical, first.digest)
    assert first.digest == sha256(first.canonical.encode())


@given(objects, st.booleans(), st.sampled_from([None, 1, "\t"]), st.randoms())
def test_canonical_arguments_ignore_key_order_blanks_and_escapes(
    value: dict[str, object], escaped: bool, indent: object, random: object
) -> None:
    """N1: the order of keys, blanks and escapes do not make another intention."""
    keys = list(value)
    random.shuffle(keys)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    written = json.dumps({key: value[key] for key in keys}, ensure_ascii=escaped, indent=indent)  # type: ignore[arg-type]
    assert parse(written).canonical == parse(json.dumps(value)).canonical


def test_canonical_arguments_sort_keys_by_code_point() -> None:
    """N1: U+FFFF comes before U+10000, and nested objects are sorted too."""
    text = '{"\U00010000":1,"\uffff":2,"b":{"z":1,"a":2},"B":3}'
    assert parse(text).canonical == '{"B":3,"b":{"a":2,"z":1},"\uffff":2,"\U00010000":1}'


@pytest.mark.parametrize(
    "number", ["1", "1.0", "1.00", "1e2", "1E+2", "-0", "0", "0.1", "123456789012345678901234567890", "1e-999"]
)
def test_canonical_arguments_keep_numbers_as_written(number: str) -> None:
    """N1: 1 and 1.0 are two different arguments. Nothing is rounded."""
    assert parse(f'{{"n": {number}}}').canonical == f'{{"n":{number}}}'


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
def test_parse_arguments_without_a_canonical_form_is_refused(text: str, why: str) -> None:
    """N1, T6: nothing is repaired. The model gets one sentence."""
    found = parse_arguments(text)
    assert isinstance(found, BadArguments)
    assert why in found.why
    assert found.why.endswith(".")


def test_parse_arguments_over_the_byte_limit_is_refused() -> None:
    """The bound is in bytes, and arguments of exactly that size are accepted [I13]."""
    text_bytes_max = ARGUMENTS_BYTES_MAX - len('{"a":""}')
    assert isinstance(parse_arguments('{"a":"' + "x" * text_bytes_max + '"}'), Arguments)
    assert isinstance(parse_arguments('{"a":"' + "x" * (text_bytes_max + 1) + '"}'), BadArguments)
    assert isinstance(parse_arguments('{"a":"' + "é" * (text_bytes_max // 2 + 1) + '"}'), BadArguments)


def test_parse_arguments_surrogate_pair_is_one_character() -> None:
    """N1: two escapes that make one character are that character."""
    assert parse('{"a":"\\ud83d\\ude00"}').canonical == '{"a":"😀"}'


@given(values)
def test_canonical_json_sorts_keys_without_blanks_in_utf_8(value: object) -> None:
    """N1: keys sorted, no blanks, UTF-8."""
    assert json.loads(canonical_json(value)) == value
    assert canonical_json({"b": 1, "a": "é"}) == '{"a":"é","b":1}'


def test_idempotency_key_differs_for_each_part_of_the_intention() -> None:
    """N2: another session, tool, arguments, scope or occurrence gives another key [I10]."""
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


def test_idempotency_key_accepts_a_path_that_is_not_utf_8() -> None:
    """N2: a path of the system may contain bytes that are not text."""
    assert len(idempotency_key(SessionId("s"), "write_file", "{}", Scope(("/w/\udcff",)).plain(), 0)) == 64


# The occurrence number: how often the ledger knows that an intention happened.

SCOPE = Scope(("/home/me/project/one.txt",))


def occurrence(*after_start: Record) -> int:
    """How many times the ledger knows that the intention happened, after it started and these records followed."""
    history = [prompt("turn"), proposes("turn", "one"), intends("one"), starts("one"), *after_start]
    return ledger_of(journal(history)).count_known_happened(Intention("write_file", digest("{}"), SCOPE))


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
def test_occurrence_counts_only_a_returned_attempt(outcome: Outcome, count: int) -> None:
    """N2: after an uncertain or absent attempt the same request keeps its key. After a completed one the key is new
    [I10].
    """
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
def test_occurrence_of_an_uncertain_attempt_follows_its_settlement(settled: Settled, count: int) -> None:
    """N2: checked present, confirmed and waived count as happened. Absent, restored and superseded do not."""
    settlement = Settlement(attempt_id=attempt_id("one"), call_id=ident("one"), settled=settled, by="user")
    assert occurrence(verdict("one", "unknown_after_restart"), settlement) == count


def test_occurrence_restored_after_checked_present_does_not_count() -> None:
    """N2, J14: present by the check and then restored: the same request has the first key again."""
    present = Settlement(attempt_id=attempt_id("one"), call_id=ident("one"), settled="checked_present", by="recovery")
    restored = Settlement(attempt_id=attempt_id("one"), call_id=ident("one"), settled="restored", by="user")
    assert occurrence(verdict("one", "unknown"), present, restored) == 0


def test_occurrence_counts_only_the_same_tool_arguments_and_scope() -> None:
    """N2: another tool, other arguments or another scope is another intention."""
    ledger = ledger_of(journal([prompt("turn"), proposes("turn", "one"), intends("one"), starts("one"), ends("one")]))
    assert ledger.count_known_happened(Intention("edit_file", digest("{}"), SCOPE)) == 0
    assert ledger.count_known_happened(Intention("write_file", digest('{"a":1}'), SCOPE)) == 0
    assert ledger.count_known_happened(Intention("write_file", digest("{}"), Scope(("/home/me/project/two.txt",)))) == 0
    assert Ledger().count_known_happened(Intention("write_file", digest("{}"), SCOPE)) == 0


def test_occurrence_scope_ignores_the_order_of_its_paths() -> None:
    """N2: two paths are the same scope in whatever order they are named, live and read back after a restart."""
    scope = Scope(("/home/me/project/z.txt", "/home/me/project/a.txt"))
    move = intends("one", scope=scope, tool="move_file")
    ledger = ledger_of(journal([prompt("turn"), proposes("turn", "one"), move, starts("one"), ends("one")]))
    assert ledger.count_known_happened(Intention("move_file", digest("{}"), scope)) == 1


def test_command_intention_is_command_folder_and_background() -> None:
    """N2, O1: two calls of a command are the same intention by these three; an older one is as recorded."""
    first = command_intention("make", "/w", False)
    assert first == command_intention("make", "/w", False)
    others = {
        command_intention("make ", "/w", False),
        command_intention("make", "/w/a", False),
        command_intention("make", "/w", True),
    }
    assert len(others | {first}) == 4
    wanted = Intention("run_command", digest('{"unconfined":true}'), SCOPE, first)
    assert wanted.is_same_as(Intention("run_command", digest("{}"), Scope(everything=True), first))
    assert not wanted.is_same_as(Intention("run_command", digest('{"unconfined":true}'), SCOPE, others.pop()))
    older = Intention("run_command", digest("{}"), SCOPE)
    assert not wanted.is_same_as(older)
    assert Intention("run_command", digest("{}"), SCOPE, first).is_same_as(older)


def test_arguments_without_a_member_have_the_digest_of_the_rest() -> None:
    """O3: `why` is in no digest; numbers stay as written."""
    whole = parse_arguments('{"command":"make","timeoutMs":1e3,"why":"it needs the network"}')
    rest = parse_arguments('{"timeoutMs":1e3,"command":"make"}')
    assert isinstance(whole, Arguments)
    assert isinstance(rest, Arguments)
    less = without_member(whole, "why")
    assert (less.digest, less.canonical) == (rest.digest, rest.canonical)
    assert less.value["why"] == "it needs the network"
    assert without_member(rest, "why") == rest
