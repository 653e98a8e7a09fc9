"""Read one word of a shell's line: quotes, escapes, and the expansions that stand in it.

The text of a word has its quotes and escapes removed. `UNKNOWN` (`domain.shell.sink`) stands for each expansion.
Commands inside an expansion go to the sink. A subclass reads lists of commands.
"""

from __future__ import annotations

from steadyhand.domain.shell.sink import DEPTH_MAX, UNKNOWN, WORD_END, CommandSink, TooDeep, Unfinished
from steadyhand_values import pattern

_NAME = pattern(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]")
_BRACES = pattern(r"\{[^\s{}]*(?:,|\.\.)\S*\}")


class ExpansionReader:
    """One pass over a text. `at` is the place of the next character."""

    def __init__(self, text: str, sink: CommandSink, depth: int) -> None:
        if depth > DEPTH_MAX:
            raise TooDeep
        self.text = text
        self.sink = sink
        self.depth = depth
        self.at = 0

    def read_all(self) -> None:
        """Read commands to the end of the text."""
        raise NotImplementedError

    def read_list(self, closer: str, in_case: bool = False) -> None:
        """Read commands up to the closer."""
        raise NotImplementedError

    def new_reader(self, text: str) -> ExpansionReader:
        """Return a reader of a text that stands inside this one, with the same sink."""
        raise NotImplementedError

    def is_at_end(self) -> bool:
        """Whether everything is read."""
        return self.at >= len(self.text)

    def peek(self, length: int) -> str:
        """Return the next characters, fewer at the end."""
        return self.text[self.at : self.at + length]

    def unclear(self) -> None:
        """Note that shells may read this text differently."""
        self.sink.is_clear = False

    def read_word(self) -> tuple[str, bool]:
        """Read one word. The second value says that it has neither quotes nor expansions: it may be reserved."""
        out: list[str] = []
        is_bare = True
        while not self.is_at_end():
            char = self.peek(1)
            if char in WORD_END:
                break
            if self.peek(2) == "\\\n":
                self.at += 2
                continue
            if char in "\\'\"$`":
                is_bare = False
                out.append(self._read_quoted(char))
                continue
            self.at += 1
            if char in "*?" or (char == "[" and self._is_class(out)) or (char == "{" and self._is_brace()):
                is_bare = False
                char = UNKNOWN
            out.append(char)
        return "".join(out), is_bare

    def read_unquoted_body(self) -> str:
        """Read the body of a here-document whose expansions count; the whole text is one."""
        out: list[str] = []
        while not self.is_at_end():
            char = self.peek(1)
            if char == "\\" and self.peek(2)[1:] in ("$", "`", "\\"):
                out.append(self.text[self.at + 1])
                self.at += 2
            elif char in "$`":
                out.append(self._read_expansion(in_double_quotes=True))
            else:
                out.append(char)
                self.at += 1
        return "".join(out)

    def _is_class(self, out: list[str]) -> bool:
        """Whether a `[` that was read may begin a class of characters; the program `[` does not."""
        return bool(out) or not (self.is_at_end() or self.peek(1) in WORD_END)

    def _is_brace(self) -> bool:
        """Whether a `{` that was read may begin words that bash makes of one: `{a,b}`, `{1..3}`."""
        return _BRACES.match(self.text, self.at - 1) is not None

    def _read_quoted(self, char: str) -> str:
        if char == "\\":
            taken = self.peek(2)[1:] or "\\"
            self.at += 2
            return taken
        if char == "'":
            return self._read_single_quotes()
        if char == '"':
            return self._read_double_quotes()
        return self._read_expansion(in_double_quotes=False)

    def _read_single_quotes(self) -> str:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise Unfinished
        taken = self.text[self.at + 1 : end]
        self.at = end + 1
        return taken

    def _read_double_quotes(self) -> str:
        out: list[str] = []
        self.at += 1
        while not self.is_at_end():
            char = self.peek(1)
            if char == '"':
                self.at += 1
                return "".join(out)
            if char == "\\":
                escaped = self.peek(2)[1:]
                out.append("" if escaped == "\n" else escaped if escaped and escaped in '$`"\\' else "\\" + escaped)
                self.at += 2
            elif char in "$`":
                out.append(self._read_expansion(in_double_quotes=True))
            else:
                out.append(char)
                self.at += 1
        raise Unfinished

    def _read_expansion(self, in_double_quotes: bool) -> str:
        """Read what begins with `$` or a backquote here."""
        if self.peek(1) == "`":
            return self._read_backquotes(in_double_quotes)
        self.at += 1
        char = self.peek(1)
        if self.peek(2) == "((":
            self._read_arithmetic()
        elif char == "(":
            self.at += 1
            self.read_list(")")
        elif char == "{":
            self._read_braced(in_double_quotes)
        elif char in ("'", '"') and not in_double_quotes:
            self.unclear()  # bash has an escape of its own here
            self._read_quoted(char)
        elif char == "[":
            self.unclear()  # bash: an old form of arithmetic
        elif (name := _NAME.match(self.text, self.at)) is not None:
            self.at = name.end()
        else:
            return "$"
        return UNKNOWN

    def _read_backquotes(self, in_double_quotes: bool) -> str:
        self.at += 1
        inner: list[str] = []
        while not self.is_at_end():
            char = self.peek(1)
            if char == "`":
                self.at += 1
                self.new_reader("".join(inner)).read_all()
                return UNKNOWN
            if char == "\\":
                escaped = self.peek(2)[1:]
                plain = escaped in ("$", "`", "\\") or (in_double_quotes and escaped == '"')
                inner.append(escaped if plain and escaped else "\\" + escaped)
                self.at += 2
            else:
                inner.append(char)
                self.at += 1
        raise Unfinished

    def _read_braced(self, in_double_quotes: bool) -> None:
        """Read `${…}`. Shells differ about quotes in it."""
        self.at += 1
        depth = 1
        while not self.is_at_end():
            char = self.peek(1)
            if char == "}":
                self.at += 1
                depth -= 1
                if not depth:
                    return
            elif char in "$`":
                self._read_expansion(in_double_quotes=True)
            elif char == "\\":
                self.at += 2
            else:
                if char in "'\"{":
                    self.unclear()
                self.at += 1
        raise Unfinished

    def _read_arithmetic(self) -> None:
        """Read `$((…))`; if it does not end so, it is a substitution that begins with a subshell."""
        start = self.at
        self.at += 2
        depth = 0
        while not self.is_at_end():
            char = self.peek(1)
            if char in "$`":
                self._read_expansion(in_double_quotes=True)
                continue
            if char == "\\":
                self.at += 2
                continue
            if char in "'\"":
                self.unclear()
            if char == ")" and not depth:
                if self.peek(2) == "))":
                    self.at += 2
                    return
                break
            depth += (char == "(") - (char == ")")
            self.at += 1
        self.unclear()
        self.at = start + 1
        self.read_list(")")
