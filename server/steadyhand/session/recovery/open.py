"""Open a session: load, decide, perform, in this order. Nothing is executed because of it [I4, C8].

`decide` is pure: it reads the ledger and returns the verdicts that the classify table demands. `perform` appends them
once: opening again finds nothing new (row C4). A crash is safe at each operation [I5]: a check is repeated against the
files, and records are written in an order in which every beginning is true (row J2).

Where nothing may be written (another owner, a newer version, a full or read-only disk) the same verdicts are shown
from memory and not recorded, and nothing with an effect runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

import attrs

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.ledger.state import Attempt, ToolCall
from steadyhand.domain.records.record import (
    Epoch,
    Notice,
    Outcome,
    Record,
    Result,
    Settlement,
)
from steadyhand.domain.recovery.tables import Reached, classify, settle
from steadyhand.domain.views.sentences import verdict_notice
from steadyhand.domain.views.types import ReadOnly
from steadyhand.journal.format import LoadedJournal
from steadyhand.journal.journal import Journal, JournalBroken, UnacknowledgedTail
from steadyhand.journal.ownership import SessionLock
from steadyhand.ports.system import Ids
from steadyhand.session.context import SessionContext
from steadyhand.session.inspection.file_state import FileCheck, clear_and_check
from steadyhand.session.recovery.settlement_records import (
    notice_of_settlement,
    notices_of_ended_retries,
    notices_of_open_rewinds,
    records_of_check_settlement,
    records_of_restore,
    told_of_undos,
)
from steadyhand.session.storage.loaded_ledger import ledger_of, load_with_ledger
from steadyhand.session.storage.lock import make_names_durable
from steadyhand.tools.contract import ToolContext
from steadyhand.tools.writes.blob_store import STORES, BlobStore
from steadyhand_values import define, frozen


@frozen
class Verdict:
    """The outcome of one call that has no end. `attempt` None: the call was proposed and nothing more."""

    call: ToolCall
    attempt: Attempt | None
    outcome: Outcome
    replied: bool


@define
class OpenResult:
    """A session as it was opened. `journal` None: read-only, for the reason in `read_only`."""

    ledger: Ledger
    journal: Journal | None
    read_only: ReadOnly | None
    damaged: int
    torn: int = 0  # bytes of an append that did not finish, cut off and kept
    unacknowledged: UnacknowledgedTail | None = None  # what this opening failed to make durable (row J6)
    said: tuple[str, ...] = ()  # sentences for the user


def decide(ledger: Ledger, reading_tools: frozenset[str]) -> list[Verdict]:
    """Return a verdict for each call without an end, by the classify table."""
    found: list[Verdict] = []
    for call in ledger.open_calls():
        attempt = call.attempt
        reached: Reached = "proposed" if attempt is None else "started" if attempt.stage == "started" else "intent"
        reads = attempt.effect == "reads" if attempt is not None else call.tool in reading_tools
        broken = call.broken if attempt is None else attempt.broken
        outcome = classify(reached, reads, broken, call.reply is not None)
        if outcome is not None:
            found.append(Verdict(call, attempt, outcome, call.reply is not None))
    return found


def open_owned(
    context: SessionContext,
    held: SessionLock,
    epoch: str,
    tool_context: ToolContext,
    reading_tools: frozenset[str],
    tail: UnacknowledgedTail | None,
    read: tuple[LoadedJournal, Ledger] | None = None,
) -> OpenResult:
    """Open a session whose lock this process holds. Blocks. OSError only if the journal cannot be read at all.

    `tail`: what this process wrote there and did not acknowledge. `read`: what was read under this lock; None: it is
    read now. The ledger becomes the session's."""
    loaded, ledger = load_with_ledger(context.disk, held.folder) if read is None else read
    unacknowledged: int | None = None
    if tail is not None and tail.is_in(loaded) and not _is_taken_up_since(loaded, tail.first, context):
        unacknowledged = tail.first
        ledger = ledger_of(loaded, unacknowledged)
    if loaded.newer:
        text = "A newer version of Steadyhand wrote this session. It is shown read-only. Update Steadyhand to continue."
        return OpenResult(ledger, None, ReadOnly("newer", text), loaded.damaged)
    if ledger.session is not None and ledger.session.session_id != held.path.rpartition("/")[2]:
        whose = ledger.session.session_id[:8]
        text = (
            f"The journal in this folder belongs to another session, {whose}. It is shown read-only."
            " Put it back in its own folder."
        )
        return OpenResult(ledger, None, ReadOnly("disk", text), loaded.damaged)
    if not loaded.records and not loaded.damaged:
        text = "The first record of this session is incomplete, so nothing can be read. Its file is not changed."
        return OpenResult(ledger, None, ReadOnly("damaged", text), loaded.damaged)
    return _RecoveryRun(context, held, tool_context, ledger, loaded, reading_tools).perform(epoch, unacknowledged)


def _is_taken_up_since(loaded: LoadedJournal, first: int, context: SessionContext) -> bool:
    """Whether another process took the journal up after this one failed to acknowledge `first` (row J6).

    It went on from what it read there, and its own records, which it acknowledged, have higher numbers. So neither is
    in doubt because of this process's failure."""
    here = context.processes.here()
    epochs = [one.record for one in loaded.records if one.seq >= first and isinstance(one.record, Epoch)]
    return any((epoch.pid, epoch.host, epoch.boot) != here for epoch in epochs)


def open_read_only(
    loaded: LoadedJournal, reading_tools: frozenset[str], ids: Ids, reason: ReadOnly, classified: bool
) -> OpenResult:
    """Open a session without its lock. `classified`: no process owns it, so the verdicts are shown."""
    ledger = ledger_of(loaded)
    if classified:
        ledger.apply_unrecorded([_result(ids, verdict, FileCheck(None)) for verdict in decide(ledger, reading_tools)])
    return OpenResult(ledger, None, reason, loaded.damaged)


@define
class _RecoveryRun:
    context: SessionContext
    held: SessionLock
    tool_context: ToolContext
    ledger: Ledger
    loaded: LoadedJournal
    reading_tools: frozenset[str]
    said: tuple[str, ...] = ()  # for the user, beside what the chat shows
    _checks: dict[str, FileCheck] = attrs.field(factory=dict)

    def perform(self, epoch: str, unacknowledged: int | None) -> OpenResult:
        """Record the epoch, the verdicts and what a check proves; or show them where that cannot be recorded."""
        verdicts = decide(self.ledger, self.reading_tools)
        pid, host, boot = self.context.processes.here()
        try:
            make_names_durable(self.context.disk, self.held)
            journal = Journal.open_existing(
                self.context.disk,
                self.context.clock,
                self.held,
                self.loaded,
                Epoch(epoch=epoch, pid=pid, host=host, boot=boot),
                unacknowledged,
            )
        except OSError as error:
            return self._show_unrecorded(verdicts, f"Its folder cannot be written ({error.strerror}).")
        except JournalBroken as broken:
            return self._show_unrecorded(verdicts, str(broken))
        self._sweep()
        try:
            self._record(journal, verdicts)
            self._settle(journal)
        except JournalBroken as broken:
            journal.close()
            shown = self._show_unrecorded(decide(self.ledger, self.reading_tools), str(broken))
            shown.unacknowledged = journal.unacknowledged
            return shown
        torn = self.loaded.size - self.loaded.tail_at if self.loaded.tail == "torn" else 0
        return OpenResult(self.ledger, journal, None, self.loaded.damaged, torn, said=self.said)

    def _sweep(self) -> None:
        """Remove files that a crash left half written: `.owner.json.<id>` and the like, and in the blob stores."""
        disk, folder = self.context.disk, self.held.folder
        with suppress(OSError):
            for name in disk.names(folder):
                if name.startswith("."):
                    disk.unlink(folder, name)
        for name in STORES:
            with suppress(OSError):
                BlobStore(self.context.disk, self.held.path, name).remove_temporaries()

    def _record(self, journal: Journal, verdicts: Sequence[Verdict]) -> None:
        """Clear what attempts left behind, then append the verdicts together; each beginning of the append is true."""
        checks = {v.attempt.attempt_id: self._recover(v.attempt) for v in verdicts if v.attempt is not None}
        records: list[Record] = []
        for verdict in verdicts:
            seen = checks.get(verdict.attempt.attempt_id) if verdict.attempt else None
            records.append(_result(self.context.ids, verdict, seen or FileCheck(None)))
            if verdict.replied and verdict.attempt is not None:
                text = verdict_notice(verdict.attempt.title)
                records.append(Notice(message_id=self.context.ids.new(), text=text, turn_id=verdict.call.turn_id))
        if records or journal.has_pending_damage:
            self._append(journal, records)

    def _settle(self, journal: Journal) -> None:
        """Settle what is still uncertain and a check proves, from whatever epoch (row B3).

        A settlement whose append was cut before its notice gets the notice now (rows J2, T2). Restores come first:
        they settle what they certainly have undone (row A5).
        """
        records: list[Record] = [
            notice_of_settlement(self.context.ids, attempt, attempt.settlement.settled)
            for attempt in self.ledger.attempts.values()
            if attempt.settlement is not None and not attempt.told
        ]
        records += notices_of_ended_retries(self.context.ids, self.ledger)
        restores = [attempt for attempt in self.ledger.uncertain() if attempt.restore_of is not None]
        if restores:
            self._append_if_any(journal, [*records, *self._settled_by_proof(restores)])
            records = []
        for new in self.ledger.attempts.values():
            records += records_of_restore(self.context.ids, self.ledger, new, "recovery")
        undone = {record.attempt_id for record in records if isinstance(record, Settlement)}
        others = [attempt for attempt in self.ledger.uncertain() if attempt.restore_of is None]
        records += self._settled_by_proof(attempt for attempt in others if attempt.attempt_id not in undone)
        self._append_if_any(journal, records)
        cut_off = notices_of_open_rewinds(self.context.ids, self.ledger)
        self._append_if_any(journal, [*cut_off, *told_of_undos(self.context.ids, self.ledger)])
        self.said = tuple(notice.text for notice in cut_off)

    def _settled_by_proof(self, attempts: Iterable[Attempt]) -> list[Record]:
        records: list[Record] = []
        for attempt in attempts:
            seen = self._recover(attempt)
            gone = seen.fenced or seen.check == "satisfied"
            settled = settle(seen.check, gone, seen.durable, self.context.settings.settle)
            if settled is not None:
                records += records_of_check_settlement(self.context.ids, attempt, settled, seen)
        return records

    def _append_if_any(self, journal: Journal, records: Sequence[Record]) -> None:
        if records:
            self._append(journal, records)

    def _recover(self, attempt: Attempt) -> FileCheck:
        """Check each attempt once: a second sync may succeed although the first one lost the data it had to keep."""
        if attempt.stage not in ("started", "uncertain"):
            return FileCheck(None)
        if attempt.attempt_id not in self._checks:
            self._checks[attempt.attempt_id] = clear_and_check(self.tool_context, self.ledger, attempt)
        return self._checks[attempt.attempt_id]

    def _append(self, journal: Journal, records: Sequence[Record]) -> None:
        for stamped in journal.append(records, barrier=True):
            self.ledger.apply(stamped)

    def _show_unrecorded(self, verdicts: Sequence[Verdict], why: str) -> OpenResult:
        self.ledger.apply_unrecorded([_result(self.context.ids, verdict, FileCheck(None)) for verdict in verdicts])
        text = f"{why} The session is shown read-only. Fix this, then open the session again."
        return OpenResult(self.ledger, None, ReadOnly("disk", text), self.loaded.damaged)


def _result(ids: Ids, verdict: Verdict, seen: FileCheck) -> Result:
    attempt_id = verdict.attempt.attempt_id if verdict.attempt else ids.new()
    uncertain = verdict.outcome in ("unknown", "unknown_after_restart")
    return Result(
        attempt_id=attempt_id,
        call_id=verdict.call.call_id,
        turn_id=verdict.call.turn_id,
        outcome=verdict.outcome,
        by="recovery",
        check=seen.check if uncertain else None,
        kept=seen.kept,
    )
