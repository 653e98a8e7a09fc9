r"""Read a shell's line into its simple commands: the words as the shell makes them, wherever they stand in the line.

    cd a && 2>/dev/null r"m" $X    →    [cd a]  [rm \0]

Quotes and escapes are removed, redirections and assignments stand apart, and the commands in substitutions,
here-documents, control structures, functions, groups and subshells are listed like any other. `UNKNOWN` stands in a
word for each piece that only the running shell knows: a variable, the output of a substitution, a glob.

The grammar is that of POSIX sh; /bin/sh is dash on some systems and bash on others. Where the two read a text
differently, or it is no shell text, `is_clear` is false, and the commands are the best guess. Structures are not
checked: too many commands may be listed, never too few while `is_clear` holds. Deliberately absent: aliases, and the
values of variables (decision 41).
"""

from __future__ import annotations

from steadyhand.domain.shell.expansions import ExpansionReader
from steadyhand.domain.shell.sink import DEPTH_MAX, UNKNOWN, WORD_END, CommandDraft, CommandSink, TooDeep, Unfinished
from steadyhand_values import define, frozen, pattern

_NOT_A_COMMAND = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "{"})
"""Reserved words with a command behind them."""
_CLOSERS = frozenset({"fi", "done", "}"})
_ONLY_BASH = frozenset({"[[", "coproc", "function", "select"})
_ASSIGNMENT = pattern(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^]]*\])?\+?=")
_BRACE_VARIABLE = pattern(r"\{[A-Za-z_][A-Za-z0-9_]*\}")
_REDIRECTION = pattern(r"[0-9]*(?:<<<|<<-|<<|<>|<&|>>|>&|>\||<|>)")
_DESCRIPTOR = pattern("[0-9]+-?|-")
_EMPTY_PARENTHESES = pattern(r"[ \t]*\([ \t]*\)")
_FUNCTION = pattern(r"[ \t]*\)")


@frozen
class Redirection:
    """One redirection. `operator`: with its number; `target`: the word behind it, or the body of a here-document."""

    operator: str
    target: str

    @property
    def is_input_text(self) -> bool:
        """Whether the target is what the command reads."""
        return "<<" in self.operator


@frozen
class SimpleCommand:
    """One command of a line. `words`: program and arguments; empty where the line only assigns or redirects."""

    words: tuple[str, ...]
    assignments: tuple[str, ...] = ()
    redirections: tuple[Redirection, ...] = ()

    @property
    def input_texts(self) -> tuple[str, ...]:
        """The here-documents and here-strings."""
        return tuple(one.target for one in self.redirections if one.is_input_text)


@frozen
class ShellLine:
    """The simple commands of a line in the order of their ends. `is_clear` false: a shell may read it differently."""

    commands: tuple[SimpleCommand, ...]
    is_clear: bool


def read_shell_line(text: str) -> ShellLine:
    """Read a line, or several, of shell text. It never raises."""
    sink = CommandSink(is_clear="\0" not in text)
    try:
        _Reader(text, sink, 0).read_all()
    except (TooDeep, Unfinished):
        sink.is_clear = False
    commands = tuple(
        SimpleCommand(
            tuple(draft.words),
            tuple(draft.assignments),
            tuple(Redirection(operator, target) for operator, target in draft.redirections),
        )
        for draft in sink.drafts
    )
    return ShellLine(commands, sink.is_clear)


@define
class _HereDocument:
    """A here-document whose body begins at the next line end. `at`: its place among the redirections."""

    draft: CommandDraft
    at: int
    end: str
    strips_tabs: bool
    is_quoted: bool


class _Reader(ExpansionReader):
    """One pass over a text. `self.at` is the place of the next character."""

    def __init__(self, text: str, sink: CommandSink, depth: int) -> None:
        super().__init__(text, sink, depth)
        self._here_documents: list[_HereDocument] = []

    def read_all(self) -> None:
        """Read to the end of the text."""
        self.read_list("")
        self._read_bodies()

    def new_reader(self, text: str) -> ExpansionReader:
        return _Reader(text, self.sink, self.depth + 1)

    def read_list(self, closer: str, in_case: bool = False) -> None:
        """Read commands up to the closer, `)` or nothing. With `in_case` also `;;` and `esac` end the list."""
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise TooDeep
        while True:
            self._skip_separators()
            if self.is_at_end():
                self.sink.is_clear = self.sink.is_clear and not closer and not in_case
                break
            if self.peek(1) == ")":
                if closer:
                    self.at += 1
                    break
                self.unclear()
                self.at += 1
            elif in_case and self.peek(2) in (";;", ";&"):
                break
            elif self.peek(1) in ";&|":
                if self.peek(2) in (";;", "|&", "&>"):
                    self.unclear()
                self.at += 1
            elif self.peek(1) == "(":
                if self.peek(2) == "((":
                    self.unclear()
                self.at += 1
                self.read_list(")")
                self._read_command(after_compound=True)
            elif self._read_command(in_case=in_case):
                break
        self.depth -= 1

    def _skip_separators(self) -> None:
        while not self.is_at_end():
            char = self.peek(1)
            if char == "\n":
                self.at += 1
                self._read_bodies()
            elif char in " \t":
                self.at += 1
            elif self.peek(2) == "\\\n":
                self.at += 2
            elif char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return

    def _skip_blanks(self) -> None:
        while self.peek(1) in (" ", "\t") or self.peek(2) == "\\\n":
            self.at += 2 if self.peek(1) == "\\" else 1

    def _read_command(self, in_case: bool = False, after_compound: bool = False) -> bool:
        """Read one simple command, or one reserved word. True: it was the `esac` that ends the list."""
        draft = self.sink.begin()
        while True:
            self._skip_blanks()
            if self.is_at_end() or self.peek(1) in "\n;&|)":
                break
            if self.peek(1) == "#":
                self._skip_separators()
                break
            if (found := _REDIRECTION.match(self.text, self.at)) is not None:
                self._read_redirection(draft, found[0])
                continue
            if self.peek(1) == "(":
                if self._read_function_head(draft):
                    break
                continue
            begins = not (draft.words or draft.assignments or draft.redirections or after_compound)
            start = self.at
            word, is_bare = self.read_word()
            if begins and is_bare and (ended := self._read_reserved(word, in_case)) is not None:
                return ended
            self._add_word(draft, word, self.text[start : self.at], after_compound)
        self.sink.end(draft)
        return False

    def _add_word(self, draft: CommandDraft, word: str, raw: str, after_compound: bool) -> None:
        if after_compound:
            self.unclear()  # no word may follow a compound command
        if _BRACE_VARIABLE.fullmatch(raw) and self.peek(1) in ("<", ">"):
            self.unclear()  # bash opens a descriptor under this name; another shell has a word
        elif not draft.words and _ASSIGNMENT.match(raw):
            draft.assignments.append(word)
        else:
            draft.words.append(word)

    def _read_function_head(self, draft: CommandDraft) -> bool:
        """Read `()` behind a name, whose body is then read as commands, or what bash calls an array."""
        self.at += 1
        closing = _FUNCTION.match(self.text, self.at)
        if closing is not None and len(draft.words) == 1 and not draft.redirections:
            self.at = closing.end()
            draft.words.clear()
            return True
        self.unclear()
        self.read_list(")")
        return False

    def _read_reserved(self, word: str, in_case: bool) -> bool | None:
        """Read what belongs to a reserved word. None: it is none; True: the `esac` that ends the list."""
        if word in _ONLY_BASH:
            self.unclear()
        if word in _NOT_A_COMMAND or word == "coproc":
            return False
        if word in _CLOSERS:
            self._read_command(after_compound=True)
            return False
        if word == "esac":
            if not in_case:
                self.unclear()
            return in_case
        if word in ("for", "select"):
            self._read_for()
            return False
        if word == "case":
            self._read_case()
            return False
        if word == "function":
            self._skip_blanks()
            self.read_word()
            if (found := _EMPTY_PARENTHESES.match(self.text, self.at)) is not None:
                self.at = found.end()
            return False
        return None

    def _read_for(self) -> None:
        self._skip_blanks()
        if self.peek(1) == "(":  # bash: for ((…))
            self.unclear()
            return
        self.read_word()
        self._skip_separators()
        start = self.at
        if self.is_at_end() or self.peek(1) in WORD_END or self.read_word()[0] != "in":
            self.at = start
            return
        while True:
            self._skip_blanks()
            if self.is_at_end() or self.peek(1) in "\n;":
                return
            if self.peek(1) in WORD_END:
                self.unclear()
                return
            self.read_word()

    def _read_case(self) -> None:
        self._skip_blanks()
        self.read_word()
        self._skip_separators()
        if self.is_at_end() or self.peek(1) in WORD_END or self.read_word()[0] != "in":
            self.unclear()
            return
        while True:
            self._skip_separators()
            if self.is_at_end():
                self.unclear()
                return
            if not self._read_patterns():
                self._read_command(after_compound=True)
                return
            ends_with_esac = self._read_case_list()
            if ends_with_esac:
                self._read_command(after_compound=True)
                return

    def _read_patterns(self) -> bool:
        """Read the patterns of one item up to their `)`. False: `esac` came instead, or no pattern."""
        if self.peek(1) == "(":
            self.at += 1
        first = True
        while True:
            self._skip_blanks()
            if self.is_at_end():
                self.unclear()
                return False
            char = self.peek(1)
            if char == ")":
                self.at += 1
                return True
            if char == "|":
                self.at += 1
            elif char in WORD_END:
                self.unclear()
                return False
            else:
                word, is_bare = self.read_word()
                if first and is_bare and word == "esac":
                    return False
            first = False

    def _read_case_list(self) -> bool:
        """Read the commands of one item. True: `esac` ended them."""
        self.read_list("", in_case=True)
        if self.peek(2) in (";;", ";&"):
            if self.peek(2) == ";&" or self.peek(3) == ";;&":
                self.unclear()
            self.at += 3 if self.peek(3) == ";;&" else 2
            return False
        return True

    def _read_redirection(self, draft: CommandDraft, operator: str) -> None:
        self.at += len(operator)
        kind = operator.lstrip("0123456789")
        if kind == "<<<":
            self.unclear()
        if kind in ("<", ">") and self.peek(1) == "(":  # bash: the output or input of a command as a file
            self.unclear()
            self.at += 1
            self.read_list(")")
            draft.words.append(UNKNOWN)
            return
        self._skip_blanks()
        if self.is_at_end() or self.peek(1) in WORD_END:
            self.unclear()
            return
        start = self.at
        word, is_bare = self.read_word()
        draft.redirections.append((operator, "" if kind in ("<<", "<<-") else word))
        if kind in (">&", "<&") and _DESCRIPTOR.fullmatch(word) is None:
            self.unclear()  # bash redirects both outputs to a file of this name
        if kind in ("<<", "<<-"):
            raw = self.text[start : self.at]
            is_quoted = any(char in raw for char in "'\"\\")
            if not is_bare and not is_quoted:
                self.unclear()
                word = raw
            place = len(draft.redirections) - 1
            self._here_documents.append(_HereDocument(draft, place, word, kind == "<<-", is_quoted))

    def _read_bodies(self) -> None:
        """Read the here-documents that begin at this line."""
        waiting, self._here_documents = self._here_documents, []
        for one in waiting:
            body: list[str] = []
            while True:
                if self.is_at_end():
                    self.unclear()  # a shell warns and takes the rest
                    break
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line = self.text[self.at : end]
                self.at = min(end + 1, len(self.text))
                if one.strips_tabs:
                    line = line.lstrip("\t")
                if line == one.end:
                    break
                body.append(line)
            text = "\n".join(body)
            if not one.is_quoted:
                if "\\\n" in text:
                    self.unclear()
                text = self.new_reader(text).read_unquoted_body()
            operator, _ = one.draft.redirections[one.at]
            one.draft.redirections[one.at] = (operator, text)
