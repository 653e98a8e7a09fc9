"""What the model knows of files: a fold of the history that it gets (row V3).

A file that a reply or an attachment shows counts, and so does what the model itself wrote. What a reply no longer says
(it was withdrawn, or fixed words stand in its place) does not count. A call is judged by what the model had been told
when it proposed it: replies to calls of the same answer do not count, the writes before it in that answer do. What was
before the latest rebind of the session does not count either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from steadyhand.domain.ledger.compaction import NOT_COMPACTED
from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.ledger.state import Attempt, ToolCall, TranscriptEntry
from steadyhand.domain.records.identity import BadArguments, parse_arguments
from steadyhand.domain.records.record import Assistant, Evidence, Shown, ToolResult, User
from steadyhand_values import define, frozen

LARGE_BYTES = 256 * 1024
"""Of a larger file it is enough that a part of its present content was shown."""
_LF = ("lf", "none")
"""Line endings with which an edit cannot join a lone CR and an LF to one line end."""
_NO_TEXT = ("not_found", "not_text", "not_a_file", "too_large")
"""Why a reading failed that tells the model that what it knows is not there any more."""


@frozen
class Reading:
    """The content of one file as the model knows it."""

    digest: str
    is_whole: bool  # every line of it was shown, or the model wrote it
    ranges: tuple[tuple[int, int], ...] = ()  # lines that were shown, first and last
    place: int = 0  # number of the call in the history
    encoding: str | None = None  # as evidence records it

    def covers(self, lines: int, size: int) -> bool:
        """Return whether a file of this digest, with so many lines and bytes, counts as shown whole."""
        if self.is_whole or size > LARGE_BYTES:
            return True
        reached = 0
        for first, last in sorted(self.ranges):
            if first > reached + 1:
                return False
            reached = max(reached, last)
        return bool(self.ranges) and reached >= lines


@frozen
class CommandRun:
    """A command that may have changed files."""

    title: str
    place: int


@define
class Readings:
    """Resolved path → what the model knows of it; and the commands of the turn of the call."""

    files: dict[str, Reading]
    commands: list[CommandRun]


def fold_readings(ledger: Ledger, call_id: str) -> Readings:
    """Return what the model knew when it proposed this call; all of it for a call that no message proposes."""
    return GrowingReadings().fold(ledger, call_id)


class GrowingReadings:
    """`fold_readings`, which keeps what nothing can change any more: a call costs what its own turn has."""

    def __init__(self, is_fixed: bool = False) -> None:
        """`is_fixed`: the ledger stays as it is, so that nothing can change any more."""
        self._is_fixed = is_fixed
        self._ledger: Ledger | None = None
        self._said: list[TranscriptEntry] = []
        self._turns_before: set[str] = set()
        self._standing = NOT_COMPACTED
        self._files: dict[str, Reading] = {}
        self._entries = 0  # entries of the history that are in `_files`
        self._place = 0

    def fold(self, ledger: Ledger, call_id: str) -> Readings:
        """As `fold_readings`."""
        is_other = ledger is not self._ledger or ledger.turns_before is not self._turns_before
        is_other = is_other or ledger.standing is not self._standing
        if is_other or ledger.said is not self._said:  # a rebind ends readings, and a rewind replaces the history
            self._ledger, self._said, self._turns_before = ledger, ledger.said, ledger.turns_before
            self._standing = ledger.standing
            self._files, self._entries, self._place = {}, ledger.standing.place, 0
        wanted = ledger.calls.get(call_id)
        turn_id = wanted.turn_id if wanted is not None else None
        while self._entries < len(ledger.said):
            said = ledger.said[self._entries]
            if said.turn_id == turn_id or not (self._is_fixed or _is_final(ledger, said)):
                break
            self._place = _add_entry(Readings(self._files, []), ledger, said, self._place, call_id, turn_id)
            self._entries += 1
        found, place = Readings(dict(self._files), []), self._place
        for said in islice(ledger.said, self._entries, None):
            place = _add_entry(found, ledger, said, place, call_id, turn_id)
            if isinstance(said.record, Assistant) and any(one.call_id == call_id for one in said.record.calls):
                break
        return found

    def written_by(self, ledger: Ledger, call: ToolCall) -> dict[str, Reading]:
        """Return what the model knows of the files that this call is known to have written, by resolved path."""
        wrote = [one for one in call.attempts if one.effect == "writes_files" and _is_written(one)]
        if not wrote:
            return {}
        found, place = self.fold(ledger, call.call_id).files, len(ledger.calls)
        for attempt in wrote:
            _add_writes(found, attempt, place, call.arguments)
        paths = {one.resolved for attempt in wrote if attempt.started is not None for one in attempt.started.evidence}
        return {path: found[path] for path in sorted(paths) if path in found}


def _is_final(ledger: Ledger, said: TranscriptEntry) -> bool:
    """Return whether nothing that is recorded later changes what an entry of another turn says of files."""
    if not isinstance(said.record, Assistant):
        return True
    calls = (ledger.calls[proposed.call_id] for proposed in said.record.calls)
    return all(
        (call.reply is not None or call.supplied is not None)
        and not any(attempt.open or attempt.uncertain for attempt in call.attempts)
        for call in calls
    )


def _add_entry(
    found: Readings, ledger: Ledger, said: TranscriptEntry, place: int, call_id: str, turn_id: str | None
) -> int:
    """Add what one entry says, up to the call; return the number of its last call."""
    record = said.record
    if said.turn_id in ledger.turns_before:
        return place  # it was of the folder before (row S10)
    if isinstance(record, User) and not record.aside and (turn := ledger.turns.get(record.turn_id)) is not None:
        for shown in turn.shown:
            _add(found.files, shown, place)
    if not isinstance(record, Assistant) or record.withdrawn:
        return place
    ids = [proposed.call_id for proposed in record.calls]
    is_same_answer = call_id in ids
    for call in (ledger.calls[one] for one in (ids[: ids.index(call_id)] if is_same_answer else ids)):
        place += 1
        is_shown = not is_same_answer and call.call_id not in ledger.standing.omitted
        _add_call(found, call, place, is_shown, call.turn_id == turn_id)
    return place


def _add_call(found: Readings, call: ToolCall, place: int, is_shown: bool, is_same_turn: bool) -> None:
    reply = call.reply if call.supplied is None else None
    if reply is not None and is_shown:
        for shown in reply.shown:
            _add(found.files, shown, place)
        if call.tool == "read_file" and call.attempt is not None and _is_without_content(reply):
            for path in call.attempt.scope.paths:
                found.files.pop(path, None)
    for attempt in call.attempts:
        if attempt.effect == "opaque" and attempt.started is not None and is_same_turn:
            found.commands.append(CommandRun(attempt.title, place))
        if attempt.effect == "writes_files" and _is_written(attempt):
            _add_writes(found.files, attempt, place, call.arguments)


def _is_without_content(reply: ToolResult) -> bool:
    """Return whether a reading ended without a digest of what is there, so that an older one counts no more."""
    return reply.reason in _NO_TEXT or (reply.outcome == "returned" and not reply.shown)


def _is_written(attempt: Attempt) -> bool:
    """Return whether the files were as intended for certain: it returned, or a check found so.

    What was restored or replaced afterwards counts too: the model knows the content that it made."""
    if attempt.settlement is not None:
        return attempt.settlement.settled in ("checked_present", "restored", "superseded")
    return attempt.result is not None and attempt.result.outcome == "returned"


def _add(files: dict[str, Reading], shown: Shown, place: int) -> None:
    known = files.get(shown.path)
    is_same = known is not None and known.digest == shown.digest
    ranges = ((shown.from_, shown.to),) if shown.to >= shown.from_ else ()
    files[shown.path] = Reading(
        shown.digest,
        shown.whole or (known is not None and is_same and known.is_whole),
        (*(known.ranges if known is not None and is_same else ()), *ranges),
        place,
        shown.encoding,
    )


def _add_writes(files: dict[str, Reading], attempt: Attempt, place: int, arguments: str) -> None:
    evidence = attempt.started.evidence if attempt.started is not None else ()
    before = {one.resolved: files.get(one.resolved) for one in evidence}
    for one in evidence:
        files.pop(one.resolved, None)
        if one.intended is None or one.kind != "file":
            continue
        known = _source_of(one, evidence, before)
        if one.is_only_in_buffer and one.buffer is not None:
            is_whole = known is not None and known.is_whole and known.digest == one.buffer.before
            files[one.resolved] = Reading(one.buffer.intended, is_whole, (), place, one.encoding)
            continue
        is_same = known is not None and known.digest == (one.intended if attempt.tool == "move_file" else one.before)
        if attempt.tool == "move_file":
            if known is not None and is_same:
                files[one.resolved] = Reading(known.digest, known.is_whole, known.ranges, place, known.encoding)
            continue
        is_whole = attempt.tool == "write_file" or (known is not None and is_same and known.is_whole)
        ranges = known.ranges if known is not None and is_same and attempt.tool == "edit_file" else ()
        if is_whole or not ranges or one.line_ending not in _LF or not _is_line_count_kept(arguments):
            ranges = ()
        files[one.resolved] = Reading(one.intended, is_whole, ranges, place, one.encoding)


def _is_line_count_kept(arguments: str) -> bool:
    """Return whether these arguments of `edit_file` replace each text by one of as many lines."""
    parsed = parse_arguments(arguments)
    edits = None if isinstance(parsed, BadArguments) else parsed.value.get("edits")
    return isinstance(edits, list) and all(_line_ends(one.get("old")) == _line_ends(one.get("new")) for one in edits)


def _line_ends(text: object) -> int:
    return 0 if not isinstance(text, str) else text.count("\n") + text.count("\r") - text.count("\r\n")


def _source_of(goal: Evidence, evidence: Iterable[Evidence], before: dict[str, Reading | None]) -> Reading | None:
    """Return what was known of the content that is put there: of a move, of its other path."""
    return next(_known_sources(goal, evidence, before), before[goal.resolved])


def _known_sources(
    goal: Evidence, evidence: Iterable[Evidence], before: dict[str, Reading | None]
) -> Iterator[Reading | None]:
    for one in evidence:
        if one is not goal and one.intended is None and one.before == goal.intended:
            yield before[one.resolved]
