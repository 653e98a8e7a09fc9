"""Find files that an answer claims to have written and that the turn did not write (row G6). Pure.

A claim is a verb of writing in the past tense and the file it is about: "I wrote `a.py` and b.json", "b.json was
created", "Created: b.json". An answer that denies, asks, plans, quotes, attributes the change to somebody else or
speaks of earlier turns makes no claim; neither do code blocks. A doubtful sentence is no claim, since false alarms make
users ignore the true ones. Only English is understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from steadyhand_values import pattern

SENTENCE_CHARS_MAX = 2_000
"""A longer piece of text is not read as a sentence and makes no claim."""

_VERBS = (
    "wrote|written|rewrote|rewritten|overwrote|overwritten|created|updated|saved|changed|edited|added|modified"
    "|generated|deleted|removed|renamed|moved|replaced"
)
_KNOWN = (
    "bat c cc cfg cmake conf cpp cs css csv cxx dart diff ex exs go gradle h hpp hs html htm ini ipynb java jl js json"
    " jsonc jsx kt kts less lock log lua m md mdx mjs cjs mk mm php pl po proto ps1 py pyi r rb rs rst sass scala scss"
    " sh sql svelte svg swift tex tf toml ts tsx txt vue xml yaml yml zig"
)
_EXTENSIONS = frozenset(_KNOWN.split())
"""The extensions that make a bare name a file; `os.path` and `1.2.3` are no files."""
_NAMES_ALONE = frozenset({"Makefile", "Dockerfile", "Justfile", "LICENSE", "README"})
_PRODUCTS = pattern(r"(?:Node|Vue|Next|Nuxt|Express|Three|D3|React|Backbone|Ember|Alpine|Chart)\.js")

_FENCED = pattern(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_SENTENCE_END = pattern(r"(?<=[.!?])(?=[\s\"')\]]|$)|\n")
_CLAUSE_END = pattern(
    r";|,?\s+(?:but|however|although|though|because|since|so that|instead of|rather than|whereas|while|when|if)\s", re.I
)
_NO_CLAIM = pattern(
    r"\b(?:not|no|never|neither|nor|without|cannot|failed|unable|refused|would|should|could|will|shall|can|may|might|must"
    r"|if|unless|whether|please|plan|planned|going to|need|needs|want|let me|try|tried|attempt|attempted|already"
    r"|earlier|previously|last turn|before|unknown|uncertain)\b|n['\u2019]t\b|['\u2019]ll\b|['\u2019]d\b"
    rf"|\b(?:you|user|they|somebody|someone|it)\s+(?:have\s+|has\s+|also\s+|just\s+)*(?:{_VERBS})\b",
    re.I,
)
"""Words that keep a clause from being a claim about this turn."""
_VERB = pattern(rf"(?<![\w`/.-])(?:{_VERBS})(?![\w`/.-])", re.I)
_PATH = pattern(r"`([^`\n]+)`|(?<![\w`/.@:~-])((?:\.{0,2}/)?[\w.@+-]+(?:/[\w.@+-]+)*)(?![\w`/@:]|://)")
_AWAY = pattern(
    r"\b(?:from|using|with|via|like|imports?|imported|for|of|than|which|that|see|per|by|calls?|reads?|based|after|as in"
    r"|similar|and then|to (?!(?:the |a |an |new |file |files |both )*\W?\0))",
    re.I,
)
"""After one of these words a clause names files that were not written."""
_PASSIVE = pattern(
    rf"\W*(?:(?:was|were|has been|have been|is now|are now)\s+)?(?:now\s+|newly\s+)?(?:{_VERBS})\b(?!\s+by)", re.I
)
_AND = pattern(r"(?:\s|,|and|&|\+|[*_\"'()-])*", re.I)


def find_false_claims(text: str, changed_paths: Iterable[str]) -> tuple[str, ...]:
    """The paths that `text` names as written and that are not among `changed_paths`, in the order they are named."""
    changed = [path.strip("/") for path in changed_paths]
    found = dict.fromkeys(path for sentence in _sentences(text) for path in _claimed_paths(sentence))
    return tuple(path for path in found if not any(_is_same_file(path, each) for each in changed))


def _sentences(text: str) -> Iterator[str]:
    for line in _SENTENCE_END.split(_FENCED.sub("\n", text)):
        told = line.strip()
        if told and len(told) <= SENTENCE_CHARS_MAX and not told.startswith(">") and not told.endswith("?"):
            yield told


def _claimed_paths(sentence: str) -> Iterator[str]:
    for clause in _CLAUSE_END.split(sentence):
        if _NO_CLAIM.search(_without_names(clause)):
            continue
        yield from _paths_by_verb(clause)


def _paths_by_verb(clause: str) -> Iterator[str]:
    """Yield the files that follow a verb and belong to it, and the files right before a passive verb."""
    paths = [(found.start(), found.end(), path) for found in _PATH.finditer(clause) if (path := _path(found))]
    blanked = _blank_names(clause, paths)
    for verb in _VERB.finditer(clause):
        away = _AWAY.search(blanked, verb.end())
        for start, _, path in paths:
            if start >= verb.end() and (away is None or start < away.start()):
                yield path
    for index, (_, end, _) in enumerate(paths):
        if _PASSIVE.match(clause, end):
            yield from _joined_paths(clause, paths[: index + 1])


def _joined_paths(clause: str, paths: list[tuple[int, int, str]]) -> Iterator[str]:
    """The last file, and those before it that "and" or a comma joins to it."""
    first = len(paths) - 1
    while first > 0 and _AND.fullmatch(clause[paths[first - 1][1] : paths[first][0]]):
        first -= 1
    for _, _, path in paths[first:]:
        yield path


def _path(found: re.Match[str]) -> str | None:
    """The file that a match names; None if it is none."""
    quoted, bare = found.groups()
    name: str = re.sub(r"^_(.+)_$", r"\1", (quoted or bare).strip().rstrip(".,:;"))
    last = name.rpartition("/")[2]
    stem, dot, extension = last.rpartition(".")
    if re.search(r"[\s()<>$*{}=]|://", name) or not re.search(r"\w", last) or _PRODUCTS.fullmatch(name):
        return None
    if last in _NAMES_ALONE and (quoted or "/" in name):
        return name
    if not dot:
        return None
    if not stem:  # .gitignore
        return name if quoted and re.fullmatch(r"[A-Za-z][\w-]+", extension) else None
    known = extension.lower() in _EXTENSIONS
    return name if known or ("/" in name and re.fullmatch(r"[A-Za-z]\w{0,7}", extension)) else None


def _without_names(clause: str) -> str:
    """Blank out file names, so that a word inside a name cannot deny a claim."""
    return _PATH.sub(lambda found: " " if _path(found) or found[1] else found[0], clause)


def _blank_names(clause: str, paths: list[tuple[int, int, str]]) -> str:
    """Replace each file name by NULs; the length stays the same."""
    for start, end, _ in paths:
        clause = clause[:start] + "\0" * (end - start) + clause[end:]
    return clause


def _is_same_file(claimed: str, changed: str) -> bool:
    """Return whether both may name one file: they are equal, or one ends with the other at a `/`."""
    claimed = re.sub(r"^(?:\./)+", "", claimed).strip("/")
    return claimed == changed or changed.endswith("/" + claimed) or claimed.endswith("/" + changed)
