"""What a terminal shows at the end of an output: colours are gone, and a progress bar is one line (case 119).

The terminal has `SCREEN_ROWS` rows and no right margin, because a reply has no width. Text that leaves the screen at
its top is final and is returned at once, so memory holds one screen whatever the length of the output. A carriage
return, a backspace and the sequences that move the cursor or erase text work as in an ECMA-48 terminal; all other
escape sequences and the bell show nothing. Remaining control characters are shown as their pictures. A character counts
as one column, so text that overwrites wide characters can be displaced.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable

from steadyhand_values import pattern

SCREEN_ROWS = 50
LINE_CHARS_MAX = 64 * 1024
"""Of one row; the beginning of a longer one is final."""
SEQUENCE_CHARS_MAX = 64 * 1024
"""Of an escape sequence that is not complete yet; a longer one is shown as text."""
CURSOR_MOVE_MAX = 10_000

_TOKEN = pattern(
    r"(?P<text>[^\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+)"
    r"|\x1b\[(?P<parameters>[0-?]*)(?P<between>[ -/]*)(?P<final>[@-~])"
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|\x1b(?P<simple>[ -/]*[0-OQ-WYZ`-~])"
    r"|(?P<control>[^\x1b])"
)
_NUMBER = pattern(r"[0-9]{1,5}")
HIDDEN = pattern("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Characters that cannot be seen, or that change how other characters are seen."""


def terminal_text(output: bytes) -> str:
    """Return what a terminal shows at the end of this output. A byte that is not UTF-8 is U+FFFD; line ends are LF."""
    terminal = TerminalText()
    return terminal.feed(output) + terminal.finish()


class TerminalText:
    """One output, given in pieces. `has_replaced`: text that was written is not shown any more."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""  # an escape sequence whose end has not come yet
        self._rows = [""]
        self._row, self._column = 0, 0
        self._saved = (0, 0)
        self._final: list[str] = []
        self.has_replaced = False

    def feed(self, piece: bytes) -> str:
        """Add a piece of the output; return the text that became final."""
        self._show(self._rest + self._decoder.decode(piece))
        return self._take_final()

    def finish(self) -> str:
        """Return the text of the screen; nothing is added afterwards."""
        text, self._rest = self._rest + self._decoder.decode(b"", True), ""
        if text:
            self._write(show_controls(text))
        self._final.append("\n".join(self._rows))
        return self._take_final()

    def _take_final(self) -> str:
        final, self._final = "".join(self._final), []
        return final

    def _show(self, text: str) -> None:
        self._rest = ""
        if text.count("\n") >= SCREEN_ROWS and self._is_at_end and HIDDEN.search(text) is None:
            self._append_lines(text)
            return
        at = 0
        while at < len(text):
            token = _TOKEN.match(text, at)
            if token is None:  # only an escape sequence without its end
                if len(text) - at <= SEQUENCE_CHARS_MAX:
                    self._rest = text[at:]
                    return
                self._write(show_controls(text[at]))
                at += 1
                continue
            if token["text"] is not None:
                self._write(token["text"])
            elif token["control"] is not None:
                self._control(token["control"])
            elif token["final"] is not None and not token["between"]:
                self._sequence(token["parameters"], token["final"])
            elif token["simple"] is not None:
                self._simple_sequence(token["simple"])
            at = token.end()

    @property
    def _is_at_end(self) -> bool:
        return self._row + 1 == len(self._rows) and self._column == len(self._rows[-1])

    def _append_lines(self, text: str) -> None:
        """Add plain text that fills the screen, in one step."""
        above, *rows = text.rsplit("\n", SCREEN_ROWS)
        self._final += ["\n".join(self._rows), above, "\n"]
        self._rows, self._row, self._column = rows, len(rows) - 1, len(rows[-1])

    def _write(self, text: str) -> None:
        row = self._rows[self._row]
        if self._column == len(row):
            self._rows[self._row] = row + text
        else:
            after = row[self._column + len(text) :]
            self.has_replaced |= bool(row[self._column : self._column + len(text)].strip())
            self._rows[self._row] = row[: self._column].ljust(self._column) + text + after
        self._column += len(text)
        if self._is_at_end and self._column > LINE_CHARS_MAX:
            self._final.append("\n".join(self._rows))
            self._rows, self._row, self._column = [""], 0, 0

    def _control(self, control: str) -> None:
        if control == "\n":
            self._line_feed()
        elif control == "\r":
            self._column = 0
        elif control == "\b":
            self._column = max(0, self._column - 1)
        elif control != "\a":
            self._write(show_controls(control))

    def _line_feed(self) -> None:
        """Go to the beginning of the next row: output of a pipe has no terminal driver that adds the return."""
        self._column = 0
        if self._row + 1 < len(self._rows):
            self._row += 1
            return
        self._rows.append("")
        self._row += 1
        while len(self._rows) > SCREEN_ROWS:
            self._final.append(self._rows.pop(0) + "\n")
            self._row -= 1

    def _sequence(self, parameters: str, final: str) -> None:
        act = _SEQUENCES.get(final)
        if act is not None and parameters[:1] not in ("<", "=", ">", "?"):
            found = [_NUMBER.match(part) for part in parameters.split(";")]
            numbers = [0 if number is None else int(number[0]) for number in found]
            act(self, [min(number, CURSOR_MOVE_MAX) for number in numbers])

    def _simple_sequence(self, letters: str) -> None:
        if letters == "7":
            self._saved = (self._row, self._column)
        elif letters == "8":
            self._go_to(*self._saved)
        elif letters == "M":
            self._go_to(self._row - 1, self._column)

    def _go_to(self, row: int, column: int) -> None:
        """Put the cursor on the screen; rows that do not exist yet are added."""
        row = min(max(row, 0), SCREEN_ROWS - 1)
        while len(self._rows) <= row:
            self._rows.append("")
        self._row, self._column = row, max(column, 0)

    def _erase(self, row: int, begin: int, end: int | None) -> None:
        text = self._rows[row]
        stop = len(text) if end is None else end
        self.has_replaced |= bool(text[begin:stop].strip())
        self._rows[row] = text[:begin] if end is None else text[:begin] + " " * len(text[begin:end]) + text[end:]

    def _erase_line(self, numbers: list[int]) -> None:
        if numbers[0] == 0:
            self._erase(self._row, self._column, None)
        elif numbers[0] == 1:
            self._erase(self._row, 0, self._column + 1)
        else:
            self._erase(self._row, 0, None)

    def _erase_screen(self, numbers: list[int]) -> None:
        self._erase_line(numbers)
        below, above = range(self._row + 1, len(self._rows)), range(self._row)
        for row in below if numbers[0] == 0 else above if numbers[0] == 1 else (*above, *below):
            self._erase(row, 0, None)
        while len(self._rows) > self._row + 1 and not self._rows[-1]:
            self._rows.pop()

    def _delete_characters(self, numbers: list[int]) -> None:
        row, count = self._rows[self._row], max(1, numbers[0])
        self.has_replaced |= bool(row[self._column : self._column + count].strip())
        self._rows[self._row] = row[: self._column] + row[self._column + count :]

    def _insert_blanks(self, numbers: list[int]) -> None:
        row = self._rows[self._row].ljust(self._column)
        self._rows[self._row] = row[: self._column] + " " * max(1, numbers[0]) + row[self._column :]

    def _move(self, rows: int, columns: int) -> None:
        self._go_to(self._row + rows, self._column + columns)

    def _save(self, _: list[int]) -> None:
        self._saved = (self._row, self._column)


def _times(numbers: list[int]) -> int:
    return max(1, numbers[0])


# The final character of a control sequence → what it does; the numbers are its parameters, 0 where one is missing.
_SEQUENCES: dict[str, Callable[[TerminalText, list[int]], None]] = {
    "A": lambda terminal, numbers: terminal._move(-_times(numbers), 0),
    "B": lambda terminal, numbers: terminal._move(_times(numbers), 0),
    "C": lambda terminal, numbers: terminal._move(0, _times(numbers)),
    "D": lambda terminal, numbers: terminal._move(0, -_times(numbers)),
    "E": lambda terminal, numbers: terminal._go_to(terminal._row + _times(numbers), 0),
    "F": lambda terminal, numbers: terminal._go_to(terminal._row - _times(numbers), 0),
    "G": lambda terminal, numbers: terminal._go_to(terminal._row, _times(numbers) - 1),
    "H": lambda terminal, numbers: terminal._go_to(_times(numbers) - 1, _times(numbers[1:] or [1]) - 1),
    "f": lambda terminal, numbers: terminal._go_to(_times(numbers) - 1, _times(numbers[1:] or [1]) - 1),
    "d": lambda terminal, numbers: terminal._go_to(_times(numbers) - 1, terminal._column),
    "J": TerminalText._erase_screen,
    "K": TerminalText._erase_line,
    "P": TerminalText._delete_characters,
    "@": TerminalText._insert_blanks,
    "X": lambda terminal, numbers: terminal._erase(terminal._row, terminal._column, terminal._column + _times(numbers)),
    "s": TerminalText._save,
    "u": lambda terminal, _: terminal._go_to(*terminal._saved),
}


def show_controls(text: str) -> str:
    """Return a text in which every character can be seen: control characters as pictures, others as escapes."""
    return HIDDEN.sub(lambda found: _picture(found[0]), text)


def _picture(character: str) -> str:
    """Return the picture of a control character, or the escape of another character that cannot be seen."""
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"\\u{code:04x}"
