"""Tables of file names by kind, and the search for a path in them. Names are compared in folded form (row W12).

An entry is a name, or several joined by `/` that follow each other in a path. A name may begin or end with `*`. An
entry that ends with `/` is a folder: it covers what is below it too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from steadyhand.domain.text.folding import fold
from steadyhand_values import frozen

NameKinds = Mapping[str, str]
"""Kind → its entries, separated by blanks."""


@frozen
class _Entry:
    kind: str
    names: tuple[str, ...]
    is_folder: bool


class NameTable:
    """The entries of all kinds. `anywhere`: an entry without `/` at its end also covers what is below that name."""

    def __init__(self, kinds: NameKinds, anywhere: bool) -> None:
        self._anywhere = anywhere
        self._by_name: dict[str, list[_Entry]] = {}
        self._by_wildcard: list[_Entry] = []
        for kind, text in kinds.items():
            for entry in text.split():
                names = tuple(fold(name) for name in entry.strip("/").split("/"))
                made = _Entry(kind, names, entry.endswith("/"))
                if "*" in names[0]:
                    self._by_wildcard.append(made)
                else:
                    self._by_name.setdefault(names[0], []).append(made)
        wild = [entry.names[0] for entry in self._by_wildcard]
        self._beginnings = tuple(name[:-1] for name in wild if name.endswith("*"))
        self._ends = tuple(name[1:] for name in wild if not name.endswith("*"))

    def kind_of(self, names: Sequence[str]) -> str | None:
        """Return the kind of the first entry that covers a path of these names; None: no entry does."""
        return next((entry.kind for entry, _ in self._find(names)), None)

    def may_begin(self, name: str) -> bool:
        """Return whether an entry may begin with this name; quick, for the many names that begin none."""
        folded = name.lower()
        return folded in self._by_name or folded.startswith(self._beginnings) or folded.endswith(self._ends)

    def is_named_by(self, segments: Collection[str], names: Sequence[str]) -> bool:
        """Return whether the path is covered, and each covered part of it is among these names or entries.

        `segments`: the names of a pattern, folded.
        """
        found = list(self._find(names))
        return bool(found) and all(
            all(name in segments or wanted in segments for name, wanted in zip(here, entry.names, strict=True))
            for entry, here in found
        )

    def _find(self, names: Sequence[str]) -> Iterator[tuple[_Entry, tuple[str, ...]]]:
        """Yield each entry that covers the path, with the names of the path that are the entry."""
        # Some file systems ignore case, so `.GIT` is `.git`. On the others this only asks once too often.
        folded = tuple(fold(name) for name in names)
        for at, first in enumerate(folded):
            may_be_wild = first.startswith(self._beginnings) or first.endswith(self._ends)
            for entry in (*self._by_name.get(first, ()), *(self._by_wildcard if may_be_wild else ())):
                here = folded[at : at + len(entry.names)]
                reaches_end = at + len(entry.names) == len(folded)
                if (
                    (self._anywhere or entry.is_folder or reaches_end)
                    and len(here) == len(entry.names)
                    and all(_is_name(wanted, name) for wanted, name in zip(entry.names, here, strict=True))
                ):
                    yield entry, here


def _is_name(wanted: str, name: str) -> bool:
    if wanted.endswith("*"):
        return name.startswith(wanted[:-1])
    return name.endswith(wanted[1:]) if wanted.startswith("*") else name == wanted
