"""Output as a terminal shows it at the end (case 119). A new kind of output is one line of the table."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from steadyhand.tools.commands.terminal_text import (
    HIDDEN,
    LINE_CHARS_MAX,
    SCREEN_ROWS,
    SEQUENCE_CHARS_MAX,
    TerminalText,
    terminal_text,
)

# What the program writes, and what a terminal shows when it has ended.
SHOWN = (
    ("plain\ntext\n", "plain\ntext\n"),
    ("a\tb\n", "a\tb\n"),
    ("dos\r\nlines\r\n", "dos\nlines\n"),
    # Colours and other attributes.
    ("\x1b[31mred\x1b[0m", "red"),
    ("\x1b[1;38;5;208mbold\x1b[m!", "bold!"),
    ("\x1b[38:2::255:0:0mred\x1b[0m", "red"),
    ("\x1b(B\x1b[mtput sgr0", "tput sgr0"),
    # Progress bars.
    ("10%\r50%\r100%\n", "100%\n"),
    ("downloading...\rdone\x1b[K\n", "done\n"),
    ("long line\rshort\n", "shortline\n"),
    ("\r\x1b[2K1 of 2\r\x1b[2K2 of 2", "2 of 2"),
    ("\x1b[?25l[  ]\r[# ]\r[##]\x1b[?25h\n", "[##]\n"),
    ("a 10%\nb 10%\n\x1b[2Aa 99%\n\x1b[1Bend\n", "a 99%\nb 10%\nend\n"),
    ("one\ntwo\n\x1b[1A\x1b[2Kthree\n", "one\nthree\n"),
    ("x\n\x1b[F\x1b[Jy\n", "y\n"),
    ("abc\b\b!\n", "a!c\n"),
    ("\\ \b| \b/ \bok\n", "\\|/ok\n"),
    ("spinner |\b/\b-\bdone\n", "spinner done\n"),
    # The cursor.
    ("abc\x1b[1GX\n", "Xbc\n"),
    ("abc\x1b[2DX\n", "aXc\n"),
    ("a\x1b[3Cb\n", "a   b\n"),
    ("\x1b7abc\x1b8X\n", "Xbc\n"),
    ("\x1b[sabc\x1b[uX\n", "Xbc\n"),
    ("a\n\x1bMb\n", "b\n"),
    ("abcdef\r\x1b[2P\n", "cdef\n"),
    ("abc\r\x1b[2@\n", "  abc\n"),
    ("abcdef\r\x1b[3X\n", "   def\n"),
    # The whole screen.
    ("old\nscreen\n\x1b[H\x1b[2Jnew", "new"),
    ("\x1b[2;3Hhere", "\n  here"),
    ("\x1b[3dlow", "\n\nlow"),
    # Sequences that show nothing.
    ("\x1b]0;title\x07text", "text"),
    ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
    ("\x1bPq#0;2;0;0;0\x1b\\picture", "picture"),
    ("\x1b[?1049h\x1b[?2004htext\x1b[?2004l", "text"),
    ("\x1b[>4;1mtext\x1b[6n\x1b[c", "text"),
    ("bell\a\n", "bell\n"),
    ("\x1b=\x1b>keypad", "keypad"),
    # What no terminal sequence explains stays visible.
    ("nul\0 del\x7f", "nul\u2400 del\u2421"),
    ("left\u202eright", "left\\u202eright"),
    ("cut \x1b[3", "cut \u241b[3"),
    ("lone \x1b", "lone \u241b"),
)


@pytest.mark.parametrize(("written", "shown"), SHOWN)
def test_output_is_shown_as_by_a_terminal(written: str, shown: str) -> None:
    """Case 119."""
    assert terminal_text(written.encode()) == shown


@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                [written for written, _ in SHOWN] + ["\x1b", "\x1b[", "\n" * 60, "line\n" * 60, "€", "\x9b"]
            ),
            st.text(max_size=20),
        ),
        max_size=12,
    ),
    st.integers(1, 7),
)
@example(["a€"], 1)
def test_pieces_of_any_size_give_the_same_text(parts: list[str], size: int) -> None:
    """Case 119: where the pieces of an output begin and end changes nothing, and nothing that is hidden is left."""
    output = "".join(parts).encode("utf-8", "replace")
    terminal = TerminalText()
    pieces = [output[start : start + size] for start in range(0, len(output), size)]
    text = "".join([*map(terminal.feed, pieces), terminal.finish()])
    assert text == terminal_text(output)
    assert HIDDEN.search(text) is None


def test_plain_lines_are_final_when_they_leave_the_screen() -> None:
    """Case 119: memory holds one screen, and a cursor cannot reach what has left it."""
    terminal = TerminalText()
    final = terminal.feed(b"".join(b"%d\n" % number for number in range(1000)))
    assert final.endswith(f"{1000 - SCREEN_ROWS}\n")
    assert terminal.feed(b"\x1b[900A!") == ""
    assert terminal.finish().splitlines()[:2] == ["!51", "952"]


def test_row_without_end_becomes_final_at_its_bound() -> None:
    """[I13]: a row of any length is passed on."""
    terminal = TerminalText()
    assert len(terminal.feed(b"above\n" + b"x" * (LINE_CHARS_MAX + 1))) == LINE_CHARS_MAX + 1 + len("above\n")
    assert terminal.feed(b"\r!") + terminal.finish() == "!"


def test_sequence_without_end_is_shown_at_its_bound() -> None:
    """[I13]: an escape sequence that never ends hides no output."""
    text = "x" * SEQUENCE_CHARS_MAX
    assert terminal_text(b"\x1b]0;" + text.encode()) == f"\u241b]0;{text}"


def test_plain_output_costs_no_time_per_line() -> None:
    """Case 65: an output of 50 MB in short lines is read in seconds."""
    terminal, begun = TerminalText(), time.process_time()
    for _ in range(800):
        terminal.feed(b"y\n" * 32 * 1024)
    assert time.process_time() - begun < 10
