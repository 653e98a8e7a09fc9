"""Files that an answer says it wrote and that were not written (row G6); pure.

A claim is a verb of writing in the past and a file that it speaks of: "I wrote `a.py` and b.json", "b.json was
created", "Created: b.json". It says nothing of what an answer denies, asks, plans, quotes, attributes to somebody
else or tells of earlier turns; code blocks are no claims. What is doubtful is no claim: a false alarm makes the true
ones worthless. Only English is understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

sentence_chars_max = 2_000
"""What is longer is no sentence, and says nothing."""

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
"""Of a bare name: `os.path` and `1.2.3` are no files."""
_NAMES_ALONE = frozenset({"Makefile", "Dockerfile", "Justfile", "LICENSE", "README"})
_PRODUCTS = re.compile(r"(?:Node|Vue|Next|Nuxt|Express|Three|D3|React|Backbone|Ember|Alpine|Chart)\.js")

_FENCED = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?])(?=[\s\"')\]]|$)|\n")
_CLAUSE_END = re.compile(
    r";|,?\s+(?:but|however|although|though|because|since|so that|instead of|rather than|whereas|while|when|if)\s", re.I
)
_NO_CLAIM = re.compile(
    r"\b(?:not|no|never|neither|nor|without|cannot|failed|unable|refused|would|should|could|will|shall|can|may|might|must"
    r"|if|unless|whether|please|plan|planned|going to|need|needs|want|let me|try|tried|attempt|attempted|already"
    r"|earlier|previously|last turn|before|unknown|uncertain)\b|n['\u2019]t\b|['\u2019]ll\b|['\u2019]d\b"
    rf"|\b(?:you|user|they|somebody|someone|it)\s+(?:have\s+|has\s+|also\s+|just\s+)*(?:{_VERBS})\b",
    re.I,
)
"""Words that make a clause no claim of this turn's work."""
_VERB = re.compile(rf"(?<![\w`/.-])(?:{_VERBS})(?![\w`/.-])", re.I)
_PATH = re.compile(r"`([^`\n]+)`|(?<![\w`/.@:~-])((?:\.{0,2}/)?[\w.@+-]+(?:/[\w.@+-]+)*)(?![\w`/@:]|://)")
_AWAY = re.compile(
    r"\b(?:from|using|with|via|like|imports?|imported|for|of|than|which|that|see|per|by|calls?|reads?|based|after|as in"
    r"|similar|and then|to (?!(?:the |a |an |new |file |files |both )*\W?\0))",
    re.I,
)
"""After these words a clause speaks of other files than those that were written."""
_PASSIVE = re.compile(
    rf"\W*(?:(?:was|were|has been|have been|is now|are now)\s+)?(?:now\s+|newly\s+)?(?:{_VERBS})\b(?!\s+by)", re.I
)
_AND = re.compile(r"(?:\s|,|and|&|\+|[*_\"'()-])*", re.I)


def unclaimed(text: str, changed_paths: Iterable[str]) -> tuple[str, ...]:
    """The paths that `text` names as written and that are not among `changed_paths`, in the order they are named."""
    changed = [path.strip("/") for path in changed_paths]
    found = dict.fromkeys(path for sentence in _sentences(text) for path in _claimed(sentence))
    return tuple(path for path in found if not any(_same(path, each) for each in changed))


def _sentences(text: str) -> Iterator[str]:
    for line in _SENTENCE_END.split(_FENCED.sub("\n", text)):
        told = line.strip()
        if told and len(told) <= sentence_chars_max and not told.startswith(">") and not told.endswith("?"):
            yield told


def _claimed(sentence: str) -> Iterator[str]:
    for clause in _CLAUSE_END.split(sentence):
        if _NO_CLAIM.search(_without_names(clause)):
            continue
        yield from _by_verb(clause)


def _by_verb(clause: str) -> Iterator[str]:
    """Files after a verb, as far as it speaks of them; files right before one."""
    paths = [(found.start(), found.end(), path) for found in _PATH.finditer(clause) if (path := _path(found))]
    blanked = _blanked(clause, paths)
    for verb in _VERB.finditer(clause):
        away = _AWAY.search(blanked, verb.end())
        for start, _, path in paths:
            if start >= verb.end() and (away is None or start < away.start()):
                yield path
    for index, (_, end, _) in enumerate(paths):
        if _PASSIVE.match(clause, end):
            yield from _joined(clause, paths[: index + 1])


def _joined(clause: str, paths: list[tuple[int, int, str]]) -> Iterator[str]:
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
    """So that a word in a file's name denies nothing."""
    return _PATH.sub(lambda found: " " if _path(found) or found[1] else found[0], clause)


def _blanked(clause: str, paths: list[tuple[int, int, str]]) -> str:
    """As long as before, with NULs for each file."""
    for start, end, _ in paths:
        clause = clause[:start] + "\0" * (end - start) + clause[end:]
    return clause


def _same(claimed: str, changed: str) -> bool:
    """Whether both may name one file: equal, or one ends with the other from a folder on."""
    claimed = re.sub(r"^(?:\./)+", "", claimed).strip("/")
    return claimed == changed or changed.endswith("/" + claimed) or claimed.endswith("/" + changed)
