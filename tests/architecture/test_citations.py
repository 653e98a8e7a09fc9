"""Every citation leads to a line with text: rows, invariants, cases, decisions and pages.

A citation is text for a reader: a docstring, a comment, a Markdown page, the title of a test in TypeScript. A string
literal is none, so a test may write any page into its workspace; nor is a page's name in a code span of Markdown,
unless it begins with `docs/`. Where each kind is looked up:

    row J8, rows B3, C6, (X1), "B2: …" at the beginning   a section of docs/requirements.md
    [I3], [I3, I5]                                        the same, and a row of the table in docs/architecture.md
    case 41, cases 94, 95, case 94/95                     a section of docs/cases.md
    decision 4                                            a page of docs/decisions/
    protocol.md, docs/protocol.md#bounds                  a page of this repository, and a heading of it
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import attrs
import pytest

from tests.support.markdown import sections, unfenced

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SOURCES = ("server", "protocol", "tests", "editor-client/src", "editor-client/test")
NOT_OURS = {"node_modules", "__pycache__", "out", "dist"}
REQUIREMENT_CHARS_MIN = 40

# Files of a user's workspace: texts may speak of them, and they are no pages of ours. The last one is the example's.
OF_A_WORKSPACE = {"AGENTS.md", "README.md", "CLAUDE.md", "SKILL.md", "notes.md"}

ROW = r"[A-Z]\d{1,2}"
BETWEEN = r"(?:\s*(?:,\s*and|,|/|–|-|\band\b|\bto\b|\bor\b)\s*)"  # noqa: RUF001
ROWS = re.compile(rf"\b[Rr]ows?\s+({ROW}(?:{BETWEEN}{ROW})*)\b")
LEADING = re.compile(rf"\A\W*({ROW}(?:{BETWEEN}{ROW})*)[:,]\s")
BRACKETED = re.compile(r"\(([^()]*)\)")
LISTED = re.compile(rf"{ROW}(?:{BETWEEN}{ROW})*")
INVARIANTS = re.compile(rf"\[(I\d+(?:{BETWEEN}I\d+)*)\]")
CASES = re.compile(rf"\b[Cc]ases?\s+(\d+(?:{BETWEEN}(?:cases?\s+)?\d+)*)\b")
DECISIONS = re.compile(rf"\b[Dd]ecisions?\s+(\d+(?:{BETWEEN}\d+)*)\b")
PAGE = re.compile(r"(?<![\w*<>{}.~/-])((?:\.{1,2}/)*[\w./-]*\w\.md)\b(?:#([\w-]+))?")
SPAN = re.compile(r"`(?!docs/)[^`]*`")
OWN_ANCHOR = re.compile(r"\]\(#([\w-]+)\)")


@attrs.frozen
class Passage:
    """A text for readers in one file: `line` is where it begins, `text` has blanks in place of comment marks."""

    line: int
    text: str
    markdown: bool = False


@attrs.frozen
class Citation:
    """What is cited, and where: `kind` is row, invariant, case, decision, page or anchor."""

    line: int
    kind: str
    name: str
    anchor: str = ""


# --- where readers' texts stand -----------------------------------------------------------------------------

PYTHON_TOKEN = re.compile(
    r'[rRbBuUfF]{0,2}(?:"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\')'
    r'|[rRbBuUfF]{0,2}(?:"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
    r"|#[^\n]*",
    re.DOTALL,
)
SCRIPT_TOKEN = re.compile(
    r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|`(?:\\.|[^`\\])*`|/\*.*?\*/|//[^\n]*',
    re.DOTALL,
)
MARKS = re.compile(r"^[ \t]*(?:#+|//+|/\*+|\*+/?)", re.MULTILINE)


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _joined(parts: list[tuple[int, int]], text: str) -> Iterator[Passage]:
    """Comments of neighbouring lines are one passage, so that a citation may be wrapped."""
    together: list[list[int]] = []
    for start, end in parts:
        if together and not text[together[-1][1] : start].strip() and text.count("\n", together[-1][1], start) == 1:
            together[-1][1] = end
        else:
            together.append([start, end])
    for start, end in together:
        yield Passage(text.count("\n", 0, start) + 1, MARKS.sub(_blank, text[start:end]))


def python_passages(text: str) -> Iterator[Passage]:
    """Comments, and the triple-quoted strings that are statements of their own: docstrings."""
    comments: list[tuple[int, int]] = []
    for found in PYTHON_TOKEN.finditer(text):
        start, end = found.span()
        if found[0].startswith("#"):
            comments.append((start, end))
        elif found[0].lstrip("rRuU").startswith('"""'):
            before = text[:start].rstrip(" \t")
            code = re.sub(r"(?:\s|#[^\n]*$)+\Z", "", before[-2_000:], flags=re.MULTILINE)
            begins_a_line = not before or before.endswith("\n")
            if begins_a_line and not code.endswith(("(", ",", "[", "{", "=", "+", "\\", "|", "%")):
                yield Passage(text.count("\n", 0, start) + 1, found[0].lstrip("rRuU").strip('"'))
    yield from _joined(comments, text)


def script_passages(text: str) -> Iterator[Passage]:
    """Comments of TypeScript and C, and the titles of tests."""
    comments: list[tuple[int, int]] = []
    for found in SCRIPT_TOKEN.finditer(text):
        if found[0].startswith(("//", "/*")):
            comments.append(found.span())
        elif re.search(r"\b(?:test|it|describe)\(\s*\Z", text[max(0, found.start() - 40) : found.start()]):
            yield Passage(text.count("\n", 0, found.start()) + 1, found[0])
    yield from _joined(comments, text)


def scenario_passages(text: str) -> Iterator[Passage]:
    """The comments of a scenario: lines that begin with `#`."""
    yield from _joined([found.span() for found in re.finditer(r"^#.*$", text, re.MULTILINE)], text)


def page_passages(text: str) -> Iterator[Passage]:
    """Paragraphs of a page outside fenced blocks; each line of a table is one of its own."""
    block: list[str] = []
    first = 0
    for number, line in [*unfenced(text), (0, "")]:
        if block and (not line.strip() or line.startswith("|") or number != first + len(block)):
            yield Passage(first, "\n".join(block), markdown=True)
            block = []
        if line.startswith("|"):
            yield Passage(number, line, markdown=True)
        elif line.strip():
            first = first if block else number
            block.append(line)


READERS: dict[str, Callable[[str], Iterator[Passage]]] = {
    ".py": python_passages,
    ".ts": script_passages,
    ".tsx": script_passages,
    ".c": script_passages,
    ".txt": scenario_passages,
    ".md": page_passages,
}


def files() -> Iterator[Path]:
    """Every file in which a citation may stand; what is generated or fetched is left out."""
    yield ROOT / "README.md"
    yield from sorted(DOCS.rglob("*.md"))
    for source in SOURCES:
        for path in sorted((ROOT / source).rglob("*")):
            if path.suffix in READERS and not NOT_OURS.intersection(path.relative_to(ROOT).parts) and path.is_file():
                yield path


# --- what is cited ------------------------------------------------------------------------------------------


def _numbers(listed: str) -> list[str]:
    return re.findall(r"\d+", listed)


def _rows(listed: str) -> list[str]:
    return re.findall(ROW, listed)


def _parts_in_brackets(inner: str, letters: str) -> Iterator[str]:
    """Rows that stand in brackets without the word: each part between commas or semicolons counts alone."""
    parts = [part.strip() for part in re.split(r"[,;]", inner)]
    if LISTED.fullmatch(parts[0]):
        for part in parts:
            if LISTED.fullmatch(part) and part[0] in letters:
                yield from _rows(part)


def citations(passages: Iterable[Passage], letters: str) -> Iterator[Citation]:
    """Everything that some passages cite. `letters`: those of the parts; in brackets another is no row."""
    for passage in passages:
        text = passage.text

        def at(found: re.Match[str], passage: Passage = passage) -> int:
            return passage.line + passage.text.count("\n", 0, found.start())

        for found in ROWS.finditer(text.replace("`", " ")):
            yield from (Citation(at(found), "row", name) for name in _rows(found[1]))
        for found in BRACKETED.finditer(text):
            yield from (Citation(at(found), "row", name) for name in _parts_in_brackets(found[1], letters))
        leading = LEADING.match(text)
        if leading is not None and not passage.markdown:
            yield from (Citation(at(leading), "row", name) for name in _rows(leading[1]) if name[0] in letters)
        if passage.markdown and text.startswith("|"):
            cells = [cell.strip() for cell in text.strip("|").split("|")]
            listed = [cell for cell in cells if LISTED.fullmatch(cell)]
            named = [name for cell in listed for name in _rows(cell)]
            yield from (Citation(passage.line, "row", name) for name in named if name[0] in letters)
        for found in INVARIANTS.finditer(text):
            yield from (Citation(at(found), "invariant", name) for name in _rows(found[1]))
        for found in CASES.finditer(text):
            yield from (Citation(at(found), "case", name) for name in _numbers(found[1]))
        for found in DECISIONS.finditer(text):
            yield from (Citation(at(found), "decision", name) for name in _numbers(found[1]))
        for found in PAGE.finditer(SPAN.sub(_blank, text) if passage.markdown else text):
            yield Citation(at(found), "page", found[1], found[2] or "")
        for found in OWN_ANCHOR.finditer(text) if passage.markdown else ():
            yield Citation(at(found), "anchor", found[1])


# --- what it leads to ---------------------------------------------------------------------------------------


@attrs.frozen
class Library:
    """All that can be cited. `pages`: path from the root → anchors; the others: name → text."""

    requirements: dict[str, str]
    invariants: dict[str, str]  # of the table in docs/architecture.md
    cases: dict[str, str]
    decisions: frozenset[str]
    pages: dict[str, frozenset[str]]

    @property
    def letters(self) -> str:
        """The letters that rows have."""
        return "".join(sorted({name[0] for name in self.requirements}))


def texts_of(page: str, heading: str) -> dict[str, str]:
    """Name → text of each section whose heading fits; `heading` has the name as its group."""
    found: dict[str, str] = {}
    current = ""
    for _, line in unfenced(page):
        if line.startswith("#"):
            named = re.match(heading, line)
            current = named[1] if named is not None else ""
        elif current:
            found[current] = found.get(current, "") + line
    return found


def invariants_of(page: str) -> dict[str, str]:
    """Name → the rest of its line in the table of docs/architecture.md."""
    return dict(re.findall(r"^\| (I\d+) \|(.*)\|$", page, re.MULTILINE))


@cache
def pages() -> dict[str, str]:
    """Every Markdown page of the repository: path from the root → text."""
    found = [ROOT / "README.md", *sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
    found += sorted((ROOT / "editor-client").glob("*.md"))
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in found if path.is_file()}


@cache
def library() -> Library:
    """What this repository offers to be cited."""
    there = pages()
    return Library(
        requirements=texts_of(there["docs/requirements.md"], r"### ([A-Z]\d+)\."),
        invariants=invariants_of(there["docs/architecture.md"]),
        cases=texts_of(there["docs/cases.md"], r"### Case (\d+)\b"),
        decisions=frozenset(name[15:19].lstrip("0") for name in there if name.startswith("docs/decisions/")),
        pages={name: frozenset(sections(text)) for name, text in there.items()},
    )


def page_named(name: str, source: str, there: dict[str, frozenset[str]]) -> str | None:
    """The page that a name means in a file: beside it, from the root, in docs, or by its name alone."""
    parts: list[str] = source.split("/")[:-1]
    for part in name.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    for path in ("/".join(parts), name, f"docs/{name}", f"docs/decisions/{name}"):
        if path in there:
            return path
    return None


def trouble(cited: Citation, source: str, books: Library) -> str | None:
    """Why a citation in a file leads nowhere; None where it leads to a text."""
    match cited.kind:
        case "row" if len(books.requirements.get(cited.name, "").strip()) < REQUIREMENT_CHARS_MIN:
            return f"no row {cited.name}"
        case "invariant" if not (
            books.requirements.get(cited.name, "").strip() and books.invariants.get(cited.name, "").strip()
        ):
            return f"no invariant {cited.name}"
        case "case" if len(books.cases.get(cited.name, "").strip()) < REQUIREMENT_CHARS_MIN:
            return f"no case {cited.name}"
        case "decision" if cited.name.lstrip("0") not in books.decisions:
            return f"no decision {cited.name}"
        case "anchor" if cited.name not in books.pages.get(source, frozenset()):
            return f"no heading #{cited.name}"
        case "page":
            path = page_named(cited.name, source, books.pages)
            if path is None:
                return None if cited.name.split("/")[-1] in OF_A_WORKSPACE else f"no page {cited.name}"
            if cited.anchor and cited.anchor not in books.pages[path]:
                return f"no heading {cited.name}#{cited.anchor}"
        case _:
            pass
    return None


def leading_nowhere(found: Iterable[Citation], source: str, books: Library) -> list[str]:
    """The citations of one file that lead nowhere, as `file:line what`."""
    judged = ((cited, trouble(cited, source, books)) for cited in found)
    return [f"{source}:{cited.line} {why}" for cited, why in judged if why is not None]


def broken(source: str, text: str, books: Library) -> list[str]:
    """The same of a text, read as the file's name says."""
    read = READERS["." + source.rsplit(".", 1)[-1]]
    return leading_nowhere(citations(read(text), books.letters), source, books)


@cache
def cited_here() -> dict[str, tuple[Citation, ...]]:
    """Everything that is cited in the repository: path from the root → citations, read once."""
    letters = library().letters
    return {
        path.relative_to(ROOT).as_posix(): tuple(
            citations(READERS[path.suffix](path.read_text(encoding="utf-8")), letters)
        )
        for path in files()
    }


# --- the tests ----------------------------------------------------------------------------------------------


def test_every_citation_leads_somewhere() -> None:
    """Each row, invariant, case, decision, page and heading that is cited anywhere exists and has a text."""
    found = [why for source, cited in cited_here().items() for why in leading_nowhere(cited, source, library())]
    assert found == []


def test_there_is_much_to_cite_and_much_is_cited() -> None:
    """The check is not empty: the library is large, and citations of each kind are found in the sources."""
    books = library()
    assert len(books.requirements) > 140
    assert len(books.invariants) == 16
    assert len(books.cases) > 120
    assert len(books.decisions) > 20
    kinds = Counter(cited.kind for found in cited_here().values() for cited in found)
    least = {"row": 700, "case": 100, "invariant": 200, "decision": 5, "page": 50}
    assert {kind: number for kind, number in least.items() if kinds[kind] < number} == {}
    sources = {source.split("/")[0] for source, found in cited_here().items() if found}
    assert sources >= {"server", "tests", "editor-client", "docs", "README.md"}


BOOKS = Library(
    requirements={"B2": "text " * 20, "C6": "text " * 20, "C7": "  ", "I3": "text " * 20, "I4": "text " * 20},
    invariants={"I3": "holds | here", "I4": " "},
    cases={"41": "text " * 20, "42": " "},
    decisions=frozenset({"4"}),
    pages={"docs/protocol.md": frozenset({"bounds"}), "docs/decisions/0004-a.md": frozenset()},
)

WRONG = [
    ("row Z9", "no row Z9"),
    ("rows B2, C9", "no row C9"),
    ("rows B2 and C9", "no row C9"),
    ("row C7", "no row C7"),  # a heading without a text
    ("It holds (C9).", "no row C9"),
    ("It holds (B2, C9; [I3]).", "no row C9"),
    ("It holds [I7].", "no invariant I7"),
    ("It holds [I3, I7].", "no invariant I7"),
    ("It holds [I4].", "no invariant I4"),  # the table has no text for it
    ("as in case 43", "no case 43"),
    ("as in case 42", "no case 42"),
    ("as in cases 41, 43", "no case 43"),
    ("as in case 41/43", "no case 43"),
    ("as in cases 41 and 43", "no case 43"),
    ("see decision 5", "no decision 5"),
    ("see wires.md", "no page wires.md"),
    ("see docs/wires.md", "no page docs/wires.md"),
    ("see protocol.md#doors", "no heading protocol.md#doors"),
]

RIGHT = [
    "row B2, rows B2, C6, rows B2 to C6, (B2), (B2, C6), (row B2, case 41)",
    "[I3] and case 41, case 41/41; decision 4",
    "see protocol.md, docs/protocol.md#bounds and ../docs/protocol.md",
    "AGENTS.md, README.md, CLAUDE.md and .agents/skills/one/SKILL.md belong to a workspace",
    "(Z9) is no row, as no part has that letter; U+2028 and 3 of 5 cases are none either",
]


@pytest.mark.parametrize(
    ("source", "form"),
    [
        ("server/a.py", '"""{}"""\n'),
        ("server/a.py", 'def f() -> None:\n    """One.\n\n    {}\n    """\n'),
        ("server/a.py", "x = 1  # {}\n"),
        ("editor-client/src/a.ts", "/** {} */\n"),
        ("editor-client/src/a.ts", "let x = 1; // {}\n"),
        ("editor-client/test/a.test.ts", 'test("{}", () => 1);\n'),
        ("tests/scenarios/a.txt", "# {}\n\nmode auto\n"),
        ("docs/a.md", "# Page\n\n- {}\n"),
    ],
)
def test_a_broken_citation_is_seen(source: str, form: str) -> None:
    """Each kind of citation that leads nowhere is found, once, in each kind of text for readers."""
    for text, why in WRONG:
        found = broken(source, form.format(text), BOOKS)
        assert [one.split(" ", 1)[1] for one in found] == [why], text


@pytest.mark.parametrize("text", RIGHT)
@pytest.mark.parametrize("source", ["server/a.py", "docs/a.md"])
def test_a_sound_citation_passes(source: str, text: str) -> None:
    """What leads to a text is no trouble, in any of its forms, and neither is a name of a workspace's file."""
    assert broken(source, f'"""{text}"""\n', BOOKS) == []


def test_a_citation_at_the_beginning_is_seen() -> None:
    """A docstring that begins with a row and a colon or comma cites it; a label with another letter does not."""
    assert broken("server/a.py", '"""B2, C9, protocol.md: the list."""\n', BOOKS) == ["server/a.py:1 no row C9"]
    assert broken("server/a.py", '"""C9: the list."""\n', BOOKS) == ["server/a.py:1 no row C9"]
    assert broken("server/a.py", '"""Z9: the list."""\n', BOOKS) == []


def test_a_row_in_a_cell_is_seen() -> None:
    """A cell of a table that holds rows alone cites them."""
    table = "| kind | row |\n|---|---|\n| `told` | B2, C9 |\n"
    assert broken("docs/a.md", table, BOOKS) == ["docs/a.md:3 no row C9"]


def test_a_page_in_a_code_span_is_looked_up() -> None:
    """A code span that begins with `docs/` names a page of ours, as a link does."""
    assert broken("docs/a.md", "See `docs/wires.md`.\n", BOOKS) == ["docs/a.md:1 no page docs/wires.md"]
    assert broken("docs/a.md", "See [it](wires.md).\n", BOOKS) == ["docs/a.md:1 no page wires.md"]
    assert broken("docs/a.md", "See [it](protocol.md#doors).\n", BOOKS) == ["docs/a.md:1 no heading protocol.md#doors"]


def test_an_anchor_of_the_page_itself_is_looked_up() -> None:
    """A link within a page leads to one of its headings."""
    assert broken("docs/protocol.md", "See [one](#bounds), [two](#doors).\n", BOOKS) == [
        "docs/protocol.md:1 no heading #doors"
    ]


def test_a_wrapped_citation_is_one() -> None:
    """A citation may go on in the next line of a docstring or comment, and is told where it begins."""
    assert broken("server/a.py", "x = 1\n# as in cases 41,\n# 43\n", BOOKS) == ["server/a.py:2 no case 43"]
    assert broken("server/a.py", '"""One.\n\nAs in row\nC9.\n"""\n', BOOKS) == ["server/a.py:3 no row C9"]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("tests/a.py", 'write("wires.md", "row Z9")  \n'),
        ("tests/a.py", 'write(\n    """see wires.md, row Z9"""\n)\n'),
        ("tests/a.py", 'x = """\nsee wires.md # row Z9\n"""\n'),
        ("tests/a.py", "match n:\n    case 43:\n        pass\n"),
        ("editor-client/src/a.ts", 'const x = "// wires.md";\n'),
        ("tests/scenarios/a.txt", "you: write wires.md with row Z9\n"),
        ("docs/a.md", "# Page\n\n```\nwires.md\n```\n"),
        ("docs/a.md", "# Page\n\nThe model writes `wires.md`.\n"),
    ],
)
def test_what_is_no_text_for_readers_cites_nothing(source: str, text: str) -> None:
    """String literals, code, steps of a scenario and fenced blocks may name what is not there."""
    assert broken(source, text, BOOKS) == []


def test_a_docstring_behind_any_code_is_read() -> None:
    """Docstrings of modules, classes, functions and members are read, behind comments and blank lines too."""
    text = (
        '# note\n\n"""row Z1"""\n\nclass A:\n    """row Z2"""\n\n    x = 1\n    """row Z3"""\n\n'
        'def f(a: str) -> None:  # note\n    """row Z4"""\n'
    )
    assert [found.split()[-1] for found in broken("server/a.py", text, BOOKS)] == ["Z1", "Z2", "Z3", "Z4"]


# --- docs/cases.md ------------------------------------------------------------------------------------------


def named_tests(text: str) -> list[str]:
    """The tests that a case names: files from `tests/` on, or of the client from the top level on."""
    return re.findall(r"`([\w./-]+\.(?:py(?:::\w+)?|ts|txt))`", text)


def proves(test: str, number: str) -> bool:
    """Whether a test exists and a text for readers in it cites the case."""
    name, _, function = test.partition("::")
    path = next((folder / name for folder in (ROOT / "tests", ROOT) if (folder / name).is_file()), None)
    if path is None:
        return False
    text = path.read_text(encoding="utf-8")
    if function:
        body = re.search(rf"^( *)(?:async )?def {function}\(.*?(?=^\1\S(?<!\))|\Z)", text, re.MULTILINE | re.DOTALL)
        if body is None:
            return False
        text = body[0]
    return any(cited.kind == "case" and cited.name == number for cited in citations(READERS[path.suffix](text), ""))


def test_what_a_case_says_is_tested_is_tested() -> None:
    """Each case has a state, and each test that a case names exists and cites it."""
    found: list[str] = []
    for number, text in library().cases.items():
        state = re.search(r"\*\*State\.\*\* (built|not tested|open \(not built\))", text)
        tests = named_tests(text[state.end() :]) if state is not None else []
        if state is None or (state[1] == "built") != bool(tests):
            found.append(f"case {number}: its state")
        found += [f"case {number}: {test}" for test in tests if not proves(test, number)]
    assert found == []


def test_a_case_that_names_the_wrong_test_is_seen() -> None:
    """A test that is missing, and one that cites another case, prove nothing."""
    assert not proves("house/test_nowhere.py", "41")
    assert not proves("architecture/test_citations.py::test_of_nothing", "41")
    assert not proves("architecture/test_docs.py", "41")
