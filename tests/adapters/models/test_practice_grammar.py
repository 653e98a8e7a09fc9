"""The practice model's sentences are parsed as docs/protocol.md says, and nothing is guessed (row P5)."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.adapters.models.practice_grammar import Batch, NotUnderstood, Say, Sentence, parse_sentences

UNDERSTOOD: list[tuple[str, str, tuple[str, ...]]] = [
    ("show a.txt", "show", ("a.txt",)),
    ('show "a b.txt"', "show", ("a b.txt",)),
    ("show a.txt  ", "show", ("a.txt",)),
    ("  show\ta.txt", "show", ("a.txt",)),
    ("write a.txt with hello  world", "write", ("a.txt", "hello  world")),
    ("write a.txt with with it", "write", ("a.txt", "with it")),
    ('write a.txt with it is "so"', "write", ("a.txt", 'it is "so"')),
    ('write "a b" with "one\\ntwo\\\\ \\"x\\""', "write", ("a b", 'one\ntwo\\ "x"')),
    ('write a.txt with ""', "write", ("a.txt", "")),
    ("write a.txt with trailing ", "write", ("a.txt", "trailing ")),
    ("write with with with", "write", ("with", "with")),
    ("append two words to a.txt", "append", ("two words", "a.txt")),
    ('append "go to it" to a.txt', "append", ("go to it", "a.txt")),
    ("append x   to   a.txt", "append", ("x", "a.txt")),
    ('append x to "a to b"', "append", ("x", "a to b")),
    ("replace a b with c d in f", "replace", ("a b", "c d", "f")),
    ('replace "a with b" with "c in d" in f', "replace", ("a with b", "c in d", "f")),
    ('replace x with "" in f', "replace", ("x", "", "f")),
    ("move a to b", "move", ("a", "b")),
    ('move "a to b" to c', "move", ("a to b", "c")),
    ("delete a", "delete", ("a",)),
    ("find *.py in here", "find", ("*.py in here",)),
    ('find "*.py"', "find", ("*.py",)),
    ("search a to b", "search", ("a to b",)),
    ('search "a"  ', "search", ("a",)),
    ('run echo "x" > y; ls', "run", ('echo "x" > y; ls',)),
    ('run "odd', "run", ('"odd',)),
    ("run printf 'a\\nb'", "run", ("printf 'a\\nb'",)),
    ("crash", "crash", ()),
    (" crash \t", "crash", ()),
]

NOT_UNDERSTOOD = [
    "hello",
    "crash now",
    "crash ()",
    "Crash",
    "show",
    "show a b",
    "Show a",
    "showa",
    'show "a',
    'show "a"b',
    'show "a\\t"',
    'show a" b',
    "write a.txt",
    "write a.txt with",
    "write a.txt with ",
    'write a.txt with "abc',
    'write a.txt with "a" b',
    "write a b with c",
    "append x",
    "append to f",
    "append go to the shop to f",  # the text ends at the first keyword: it is "go", and "the shop to f" is no name
    "append x to",
    "replace a with b",
    "replace a in b",
    "replace a with b in c d",
    "move a b",
    "move a to b c",
    "delete",
    "find",
    "search",
    "run",
    "run  ",
    "say",
    'say "a" b',
    "together",
    "together: show a",
]


@pytest.mark.parametrize(("line", "verb", "words"), UNDERSTOOD)
def test_parse_sentence_gives_its_verb_and_words(line: str, verb: str, words: tuple[str, ...]) -> None:
    """Row P5."""
    (step,) = parse_sentences(line)
    assert isinstance(step, Batch)
    (sentence,) = step.sentences
    assert (sentence.verb, sentence.words) == (verb, words)


@pytest.mark.parametrize("line", NOT_UNDERSTOOD)
def test_parse_any_other_line_is_not_understood(line: str) -> None:
    """Row P5: nothing is called for it."""
    assert parse_sentences(line) == (NotUnderstood(line.rstrip()),)


def test_parse_say_is_text_and_no_call() -> None:
    """Row P5."""
    assert parse_sentences('say hi "you"\nsay "a\\nb"') == (Say('hi "you"'), Say("a\nb"))


def lines_by_step(text: str) -> list[list[str] | str]:
    return [
        [sentence.line for sentence in step.sentences] if isinstance(step, Batch) else type(step).__name__
        for step in parse_sentences(text)
    ]


def test_parse_together_ends_at_an_empty_line_or_the_end() -> None:
    """Row P5: `together:` stands before lines that are sent as one batch."""
    assert lines_by_step("show a\ntogether:\nshow b\nshow c\n\nshow d") == [
        ["show a"],
        ["show b", "show c"],
        ["show d"],
    ]
    assert lines_by_step("together:\r\nshow b\r\nshow c\r\n") == [["show b", "show c"]]
    assert lines_by_step("together:\nshow b\n   \nshow c") == [["show b"], ["show c"]]


def test_parse_together_may_be_empty_or_repeated() -> None:
    """Row P5."""
    assert lines_by_step("together:\n\nshow a") == [["show a"]]
    assert lines_by_step("together:\nshow a\ntogether:\nshow b") == [["show a"], ["show b"]]


def test_parse_lines_without_a_call_come_before_their_batch() -> None:
    """Row P5."""
    assert lines_by_step("together:\nshow a\nwhat\nsay x\nshow b") == ["NotUnderstood", "Say", ["show a", "show b"]]


def test_parse_ignores_blank_lines_and_accepts_crlf() -> None:
    """Row P5."""
    assert lines_by_step("\n\nshow a\r\n \t\r\nshow b\n") == [["show a"], ["show b"]]
    assert parse_sentences("") == ()


@given(st.text(), st.text(alphabet=st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), min_size=1))
def test_parse_quoted_words_keep_any_text(text: str, name: str) -> None:
    """Row P5: a quoted text arrives unchanged, whatever it is."""

    def quoted(word: str) -> str:
        return '"' + word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'

    (step,) = parse_sentences(f"append {quoted(text)} to {quoted(name)}")
    assert isinstance(step, Batch)
    assert step.sentences[0].words == (text, name)


@given(st.text())
def test_parse_every_line_is_exactly_one_step_entry(text: str) -> None:
    """Row P5: each line that is neither blank nor `together:` is exactly one sentence, text or unknown line."""
    stripped = [line.strip(" \t") for line in (raw.removesuffix("\r") for raw in text.split("\n"))]
    step_sizes = [len(step.sentences) if isinstance(step, Batch) else 1 for step in parse_sentences(text)]
    assert sum(step_sizes) == sum(1 for line in stripped if line not in ("", "together:"))


def test_parse_long_blanks_take_linear_time() -> None:
    """[I13]: parsing is linear in the length of a line."""
    began = time.process_time()
    for line in ("append x" + " " * 200_000 + "to f g", "replace " + "a with " * 30_000, "write f" + " " * 200_000):
        assert isinstance(parse_sentences(line)[0], NotUnderstood)
    assert time.process_time() - began < 2


def test_parse_sentence_keeps_its_line_as_written() -> None:
    """Row P5: the report at the end names sentences as they were written."""
    assert parse_sentences("  show   a  ") == (Batch((Sentence("show   a", "show", ("a",)),)),)
