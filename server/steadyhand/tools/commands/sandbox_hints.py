"""What the reply of a confined command says about its sandbox when the command failed (row O3).

The kernel does not tell which calls it refused, so only the words of the output can hint at it, and other programs use
the same words: the sentence says "may". Every piece of the output is searched as it comes, also what the reply leaves
out.
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyhand.ports.processes import Finished
from steadyhand.ports.sandbox import Confinement
from steadyhand.tools.prepared_command import Cause
from steadyhand_values import pattern

HINTS = (
    *("Read-only file system", "Permission denied", "Operation not permitted", "Device or resource busy"),
    *("Invalid cross-device link", "Network is unreachable", "Address family not supported", "Connection refused"),
    *("Could not resolve host", "Temporary failure in name resolution"),
)
"""Words of an output that a sandbox may have caused."""
MAY_HAVE_CAUSED = "The sandbox may have caused this."
CHANGES_GIT = "This changes how git runs programs."
"""Fixed sentences (rows O1, O3)."""
KEPT_PROTECTED = (
    "Protected files may have kept their old content, and git may be half done: look at git status. To replace them,"
    " propose the git command again with `unconfined` and say why; the user is asked."
)

_GIT = pattern(r"(?:^|[\s;&|(/])git(?:\s|$)")
_GIT_PLACES = (
    ".git/config",
    ".git/hooks",
    ".git/info/attributes",
    ".git/commondir",
    ".git/objects/info/alternates",
    ".git/modules/",
)
_GIT_HALF_DONE = "update of config-file failed"
_GIT_KEPT_OLD = "unable to unlink old '"
_GIT_KEPT = ("unable to unlink", "unable to create file")
_GIT_CONFIG_KEPT = "could not write config file"
_REFUSALS = ("Read-only file system", "Device or resource busy")
_WORDS = (*HINTS, *_GIT_PLACES, _GIT_HALF_DONE, _GIT_KEPT_OLD, *_GIT_KEPT, _GIT_CONFIG_KEPT)


class SandboxHints:
    """The hints of one command; `add` gets its whole output. It holds only the words found and a few bytes."""

    def __init__(self, command: str, confinement: Confinement | None, causes: Sequence[Cause] = ()) -> None:
        self._command = command
        self._confinement = confinement
        self._causes = causes
        words = (*_WORDS, *(one for cause in causes for one in (*cause.words, *cause.also)))
        self._words = frozenset(_folded(word) for word in words)
        self._length_max = max(len(word) for word in self._words)
        self._tail = b""
        self._found: set[bytes] = set()

    def add(self, piece: bytes) -> None:
        """Search a piece of output; a word may begin in the piece before."""
        if self._confinement is None:
            return
        text = self._tail + piece.lower()
        self._found.update(word for word in self._words if word not in self._found and word in text)
        self._tail = text[-self._length_max :]

    def notes(self, end: Finished) -> tuple[str, ...]:
        """Return what the reply says after the exit code; nothing where the command was not confined or succeeded.

        git can exit with 0 although it could not replace a protected file."""
        confinement = self._confinement
        is_git = _GIT.search(self._command) is not None
        kept = self._has(_GIT_KEPT_OLD) or (is_git and self._has(*_GIT_KEPT))  # a script may have started git
        kept = kept or (is_git and not end.exit_code and self._has(_GIT_CONFIG_KEPT))
        if confinement is None or not (end.exit_code or kept):
            return ()
        notes = [f"This command ran in a sandbox ({confinement.kind}, network {confinement.network})."]
        if kept:
            notes.append(KEPT_PROTECTED)
        if self._has(*HINTS):
            notes.append(MAY_HAVE_CAUSED)
        refused = self._has(_GIT_HALF_DONE) or (self._has(*_REFUSALS) and self._has(*_GIT_PLACES))
        if is_git and refused:
            notes.append(CHANGES_GIT)
        notes += [one.sentence for one in self._causes if self._shows(one) and (is_git or not one.is_git)]
        return tuple(notes)

    def _shows(self, cause: Cause) -> bool:
        return self._has(*cause.words) and (not cause.also or self._has(*cause.also))

    def _has(self, *words: str) -> bool:
        return any(_folded(word) in self._found for word in words)


def _folded(word: str) -> bytes:
    """Return a word as it is compared: Go and JavaScript write the system's words small."""
    return word.encode("utf-8", "surrogateescape").lower()
