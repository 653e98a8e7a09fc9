"""Edit files byte by byte: an edit changes nothing that it does not name.

The text of a file is what `decoding` finds. An edit in the text is a splice in the bytes (`splices`), so every byte
outside the replaced range stays, also one that the encoding would write in another way, and the file keeps its encoding
and its mark (case 49). A text that the encoding cannot hold is refused before anything is touched.

Matching works on the LF view (every CRLF seen as LF; a lone CR is an ordinary character), and an offset map leads back
to the content. A match is exact and contiguous, and unique unless all matches are asked for; nothing is matched
approximately, but a refusal says how the nearest place differs (`near_miss`). What `old` and `new` have in common at
both ends is not rewritten. An edit cannot change line ends: an inserted line end takes the kind of its place.
`write_file` can change them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Literal

import attrs

from steadyhand.domain.text.decoding import FileText, NewText, to_lf
from steadyhand.domain.text.near_miss import nearest_difference
from steadyhand.domain.text.splices import Splice, encoded, splice, unfit_text
from steadyhand_values import frozen

LINES_NAMED_MAX = 20
"""Lines named in a refusal because the old text is not unique."""
COMPARED_CHARS = 4096
"""Characters that are compared at once at the common ends of two texts."""


@frozen
class Edit:
    """Replace `old` by `new`: the one match, or with `all` every match, left to right and not overlapping."""

    old: str
    new: str
    all: bool = False


@frozen
class Edited:
    """The result of all edits, or of a whole write."""

    raw: bytes
    content: str  # the text of `raw`, with its own line ends
    counts: tuple[int, ...] = ()  # replacements per edit, in the order of the edits


@frozen
class EditRefused:
    """Nothing was changed; `text` is one sentence for the model. `encoding`: the file's encoding forbids it."""

    text: str
    reason: Literal["bad_arguments", "encoding"] = "bad_arguments"


def apply_edits(file: FileText, edits: Sequence[Edit]) -> Edited | EditRefused:
    """Apply all edits, each to the result of the one before, and return the bytes; a refused edit applies none."""
    if not edits:
        return EditRefused("No edit is given.")
    if file.doubt is not None:
        return EditRefused(file.doubt, "encoding")
    body, content = file.raw[len(file.mark) :], file.content
    counts: list[int] = []
    for number, edit in enumerate(edits, 1):
        splices = _splices(content, edit)
        done = splices if isinstance(splices, EditRefused) else _spliced(file, body, content, splices)
        if isinstance(done, EditRefused):
            return done if len(edits) == 1 else attrs.evolve(done, text=f"Edit {number} of {len(edits)}: {done.text}")
        body, content = done.raw, done.content
        counts += done.counts
    return Edited(file.mark + body, content, tuple(counts))


def _spliced(file: FileText, body: bytes, content: str, splices: Sequence[Splice]) -> Edited | EditRefused:
    unfit = unfit_text([one.new for one in splices], file.encoding)
    if unfit is not None:
        return EditRefused(unfit, "encoding")
    done = splice(body, content, splices, file.encoding)
    if done is None:
        return EditRefused(f"The new text cannot stand at its place in {file.encoding.word} text.", "encoding")
    return Edited(*done, counts=(len(splices),))


def new_content(existing: FileText | NewText, content: str) -> Edited | EditRefused:
    """Return the bytes of a whole write.

    The encoding, line ends and byte order mark of an existing file are kept (row W9). The mark stays. A file with CRLF
    only keeps CRLF if the content has no CR, which is how a model sees the file. Otherwise, and for a new file, the
    content is written as given. What the old and the new text have in common at both ends keeps its bytes.
    """
    if (trouble := _unwritable(content, "content")) is not None:
        return trouble
    if existing.mark:
        content = content.removeprefix("\ufeff")
    if isinstance(existing, NewText):
        unfit = unfit_text([content], existing.encoding)
        if unfit is not None:
            return EditRefused(unfit, "encoding")
        return Edited(existing.mark + encoded(content, existing.encoding), content)
    if existing.doubt is not None:
        return EditRefused(existing.doubt, "encoding")
    if existing.line_ending == "crlf" and "\r" not in content:
        content = content.replace("\n", "\r\n")
    old = existing.content
    head, tail = shared_ends(old, content)
    whole = Splice(head, len(old) - tail, content[head : len(content) - tail])
    done = _spliced(existing, existing.raw[len(existing.mark) :], old, [whole])
    return done if isinstance(done, EditRefused) else Edited(existing.mark + done.raw, content)


@frozen
class _View:
    """The LF view of a text, and the map back to its content."""

    content: str
    text: str
    ends: Sequence[int]  # positions of line ends in the view; a lone CR is none
    crlf: Sequence[int]  # those of them that are CRLF in the content

    def at(self, position: int) -> int:
        """Return the content position of a view position; for a CRLF, that of its CR."""
        return position + bisect_left(self.crlf, position)

    def kind(self, end: int) -> str:
        place = self.at(end)
        return "\r\n" if self.content[place] == "\r" else "\n"

    def with_kinds(self, inserted: str, whole: range, spliced: range) -> str:
        """Give each inserted line end its kind.

        The replaced line ends give theirs, in order. After them comes the kind of the nearest one within the matched
        range, else that of the line that holds the match, else that of the line before, else LF.
        """
        if "\n" not in inserted:
            return inserted
        first, last = bisect_left(self.ends, spliced.start), bisect_left(self.ends, spliced.stop)
        own = [self.kind(end) for end in self.ends[first:last]]
        if not own:
            own = [self._neighbour(first, whole)]
        pieces = inserted.split("\n")
        kinds = own + [own[-1]] * len(pieces)
        return pieces[0] + "".join(kind + piece for kind, piece in zip(kinds, pieces[1:], strict=False))

    def _neighbour(self, after: int, whole: range) -> str:
        if after > 0 and self.ends[after - 1] >= whole.start:
            return self.kind(self.ends[after - 1])
        if after < len(self.ends):
            return self.kind(self.ends[after])
        return self.kind(self.ends[after - 1]) if after > 0 else "\n"


def _view(content: str) -> _View:
    ends: list[int] = []
    crlf: list[int] = []
    for match in re.finditer("\r?\n", content):
        position = match.start() - len(crlf)
        ends.append(position)
        if match.end() - match.start() == 2:
            crlf.append(position)
    return _View(content, to_lf(content), ends, crlf)


def _splices(content: str, edit: Edit) -> list[Splice] | EditRefused:
    """Return what one edit replaces in the content."""
    trouble = _unwritable(edit.old, "old") or _unwritable(edit.new, "new")
    if trouble is not None:
        return trouble
    if "\x00" in edit.new:
        return EditRefused("The new text holds a NUL character, which would make the file binary.")
    view, old, new = _view(content), to_lf(edit.old), to_lf(edit.new)
    starts = _starts(view.text, old, edit.all)
    if isinstance(starts, EditRefused):
        return starts
    head, tail = shared_ends(old, new)
    middle = new[head : len(new) - tail]
    splices: list[Splice] = []
    for start in starts:
        whole = range(start, start + len(old))
        spliced = range(whole.start + head, whole.stop - tail)
        inserted = view.with_kinds(middle, whole, spliced)
        splices.append(Splice(view.at(spliced.start), view.at(spliced.stop), inserted))
    return splices


def _starts(text: str, old: str, every: bool) -> list[int] | EditRefused:
    """Return the positions of `old` in the view: the only one, or with `every` all of them, not overlapping."""
    if not old:
        if not text:
            return [0]  # an empty file has one position
        return EditRefused(
            "The old text is empty: give a piece of the file that occurs once, and repeat it in the new text."
        )
    if every:
        starts = [match.start() for match in re.finditer(re.escape(old), text)]
    else:
        starts = _places(text, old, LINES_NAMED_MAX + 1)
    if not starts:
        near = nearest_difference(text, old)
        return EditRefused(
            near or "The old text is not in the file: read the file again and copy the text exactly, with its blanks."
        )
    if len(starts) > 1 and not every:
        named = ", ".join(str(_lines_ended(text[:start]) + 1) for start in starts[:LINES_NAMED_MAX])
        more = " and more" if len(starts) > LINES_NAMED_MAX else ""
        return EditRefused(
            f"The old text occurs more than once in the file, at lines {named}{more}: "
            "add lines around it until it is unique, or ask for all."
        )
    return starts


def _places(text: str, old: str, most: int) -> list[int]:
    """Return the first positions of `old`. Overlapping ones count, because they are not unique either."""
    places: list[int] = []
    position = text.find(old)
    while position >= 0 and len(places) < most:
        places.append(position)
        position = text.find(old, position + 1)
    return places


def shared_ends(old: str, new: str) -> tuple[int, int]:
    """Return the lengths of the common beginning and, after it, of the common end."""
    most = min(len(old), len(new))
    head = 0
    while head + COMPARED_CHARS <= most and old.startswith(new[head : head + COMPARED_CHARS], head):
        head += COMPARED_CHARS
    while head < most and old[head] == new[head]:
        head += 1
    tail, step = 0, COMPARED_CHARS
    while tail + step <= most - head and old.endswith(
        new[len(new) - tail - step : len(new) - tail], 0, len(old) - tail
    ):
        tail += step
    while tail < most - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return head, tail


def _unwritable(text: str, what: str) -> EditRefused | None:
    match = re.search("[\ud800-\udfff]", text)
    if match is None:
        return None
    return EditRefused(f"The {what} text holds the lone surrogate U+{ord(match.group()):04X}, which is no character.")


def _lines_ended(piece: str) -> int:
    """Count line ends as an editor does: LF, CRLF and lone CR; never U+2028, form feed or the like."""
    return piece.count("\n") + piece.count("\r") - piece.count("\r\n")
