"""Opening a session: load, decide, perform, in this order. Nothing is executed because of it [I4, C8].

`decide` is pure: it reads the ledger and gives the verdicts that the classify table demands. `perform` appends them,
once: opening again finds nothing new (row C4). It is safe to crash at each operation [I5]: what is checked again is
checked against the world, and what is recorded stands in an order in which every beginning is true (row J2).

Where nothing may be written (another owner, a newer version, a full or read-only disk) the same verdicts are shown
from memory and not recorded, and nothing with an effect runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

import attrs

from steadyhand.core.folded import Attempt, Call
from steadyhand.core.ledger import Ledger, fold
from steadyhand.core.record import Author, Epoch, Notice, Outcome, Record, Result, Settled, Settlement, Stamped
from steadyhand.core.recovery import Reached, classify, settle
from steadyhand.core.views import ReadOnly
from steadyhand.core.words import retried_notice, settlement_notice, verdict_notice
from steadyhand.journal.format import Loaded
from steadyhand.journal.log import Journal, JournalBroken, load
from steadyhand.ports import Ids
from steadyhand.session.checking import Looked, recover
from steadyhand.session.folder import Held, make_names_durable
from steadyhand.session.world import World
from steadyhand.tools.content import STORES, Contents
from steadyhand.tools.tool import Ground


@attrs.frozen
class Verdict:
    """What recovery says of one call that has no end. `attempt` None: it was proposed and never admitted."""

    call: Call
    attempt: Attempt | None
    outcome: Outcome
    replied: bool


@attrs.define
class Opened:
    """A session as it was opened. `journal` None: read-only, for the reason in `read_only`."""

    ledger: Ledger
    journal: Journal | None
    read_only: ReadOnly | None
    damaged: int
    verdicts: int = 0
    torn: int = 0  # bytes of an append that did not finish, cut off and kept
    unacknowledged: int | None = None  # the first seq that this opening failed to make durable (row J6)


def decide(ledger: Ledger, reading_tools: frozenset[str]) -> list[Verdict]:
    """One verdict for each call without an end, by the classify table."""
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
    world: World, held: Held, epoch: str, ground: Ground, reading_tools: frozenset[str], unacknowledged: int | None
) -> Opened:
    """Under the owner lock. Blocks. OSError only if the journal cannot be read at all."""
    loaded = load(world.disk, held.folder)
    ledger = fold(loaded.records, loaded.breaks, unacknowledged)
    if loaded.newer:
        text = "A newer version of Steadyhand wrote this session. It is shown and not touched: update to go on."
        return Opened(ledger, None, ReadOnly("newer", text), loaded.damaged)
    if ledger.session is not None and ledger.session.session_id != held.path.rpartition("/")[2]:
        whose = ledger.session.session_id[:8]
        text = f"The journal here is of another session, {whose}. It is shown and not touched: put it back."
        return Opened(ledger, None, ReadOnly("disk", text), loaded.damaged)
    if not loaded.records and not loaded.damaged:
        text = "The first record of this session was not finished, so nothing can be read; its file is kept as it is."
        return Opened(ledger, None, ReadOnly("damaged", text), loaded.damaged)
    return _Performer(world, held, ground, ledger, loaded, reading_tools).perform(epoch, unacknowledged)


def read_only(loaded: Loaded, reading_tools: frozenset[str], ids: Ids, reason: ReadOnly, classified: bool) -> Opened:
    """Without the lock, or where nothing can be written. `classified`: there is no living owner, so verdicts show."""
    ledger = fold(loaded.records, loaded.breaks)
    if classified:
        show(ledger, [_result(ids, verdict, Looked(None)) for verdict in decide(ledger, reading_tools)])
    return Opened(ledger, None, reason, loaded.damaged)


def show(ledger: Ledger, records: Iterable[Record]) -> None:
    """Take records into the view that the journal does not hold: shown, not kept."""
    for record in records:
        ledger.apply(Stamped(0, ledger.updated or "", "", record))


@attrs.define
class _Performer:
    world: World
    held: Held
    ground: Ground
    ledger: Ledger
    loaded: Loaded
    reading_tools: frozenset[str]
    _looks: dict[str, Looked] = attrs.field(factory=dict)

    def perform(self, epoch: str, unacknowledged: int | None) -> Opened:
        verdicts = decide(self.ledger, self.reading_tools)
        pid, host, boot = self.world.processes.here()
        try:
            make_names_durable(self.world.disk, self.held)
            journal = Journal.take_up(
                self.world.disk, self.world.clock, self.held.folder, self.loaded,
                Epoch(epoch, pid, host, boot), unacknowledged,
            )  # fmt: skip
        except OSError as error:
            return self._shown(verdicts, f"Its folder cannot be written ({error.strerror}).")
        self._sweep()
        try:
            self._record(journal, verdicts)
            self._settle(journal)
        except JournalBroken as broken:
            journal.close()
            shown = self._shown(decide(self.ledger, self.reading_tools), str(broken))
            shown.unacknowledged = journal.unacknowledged
            return shown
        torn = self.loaded.size - self.loaded.tail_at if self.loaded.tail == "torn" else 0
        return Opened(self.ledger, journal, None, self.loaded.damaged, len(verdicts), torn)

    def _sweep(self) -> None:
        """What killed runs left half written: `.owner.json.<id>` and the like, and in our own stores."""
        disk, folder = self.world.disk, self.held.folder
        with suppress(OSError):
            for name in disk.names(folder):
                if name.startswith("."):
                    disk.unlink(folder, name)
        for name in STORES:
            with suppress(OSError):
                Contents(self.world.disk, self.held.path, name).sweep()

    def _record(self, journal: Journal, verdicts: Sequence[Verdict]) -> None:
        """Clear what attempts left behind, then the verdicts in one append; each beginning of it is true."""
        looks = {v.attempt.attempt_id: self._recover(v.attempt) for v in verdicts if v.attempt is not None}
        records: list[Record] = []
        for verdict in verdicts:
            seen = looks.get(verdict.attempt.attempt_id) if verdict.attempt else None
            records.append(_result(self.world.ids, verdict, seen or Looked(None)))
            if verdict.replied and verdict.attempt is not None:
                text = verdict_notice(verdict.attempt.title)
                records.append(Notice(self.world.ids.new(), text, verdict.call.turn_id))
        if records or journal.owes_damage:
            self._append(journal, records)

    def _settle(self, journal: Journal) -> None:
        """Settle by proof what is still uncertain, from whatever epoch (row B3).

        A settlement whose append was cut before its notice is told now (rows J2, T2). Restores come first: what they
        are known to have undone is settled by them (row A5).
        """
        records: list[Record] = [
            _told(self.world.ids, attempt, attempt.settlement.settled)
            for attempt in self.ledger.attempts.values()
            if attempt.settlement is not None and not attempt.told
        ]
        records += untold_retries(self.world.ids, self.ledger)
        restores = [attempt for attempt in self.ledger.uncertain() if attempt.restore_of is not None]
        if restores:
            self._append_some(journal, [*records, *self._proofs(restores)])
            records = []
        for new in self.ledger.attempts.values():
            records += undone_by(self.world.ids, self.ledger, new, "recovery")
        undone = {record.attempt_id for record in records if isinstance(record, Settlement)}
        others = [attempt for attempt in self.ledger.uncertain() if attempt.restore_of is None]
        records += self._proofs(attempt for attempt in others if attempt.attempt_id not in undone)
        self._append_some(journal, records)

    def _proofs(self, attempts: Iterable[Attempt]) -> list[Record]:
        records: list[Record] = []
        for attempt in attempts:
            seen = self._recover(attempt)
            settled = settle(seen.check, True, seen.durable, self.world.settings.settle)
            if settled is not None:
                records += settlement(self.world.ids, attempt, settled, seen)
        return records

    def _append_some(self, journal: Journal, records: Sequence[Record]) -> None:
        if records:
            self._append(journal, records)

    def _recover(self, attempt: Attempt) -> Looked:
        """One look for each attempt: a second sync may succeed although the first one lost what it was to keep."""
        if attempt.stage not in ("started", "uncertain"):
            return Looked(None)
        if attempt.attempt_id not in self._looks:
            self._looks[attempt.attempt_id] = recover(self.ground, self.ledger, attempt)
        return self._looks[attempt.attempt_id]

    def _append(self, journal: Journal, records: Sequence[Record]) -> None:
        for stamped in journal.append(records, barrier=True):
            self.ledger.apply(stamped)

    def _shown(self, verdicts: Sequence[Verdict], why: str) -> Opened:
        show(self.ledger, [_result(self.world.ids, verdict, Looked(None)) for verdict in verdicts])
        text = f"{why} The session is shown and nothing is recorded or run until that is mended; then open it again."
        return Opened(self.ledger, None, ReadOnly("disk", text), self.loaded.damaged, len(verdicts))


def settlement(ids: Ids, attempt: Attempt, settled: Settled, seen: Looked) -> list[Record]:
    """A settlement by check, and the notice that tells it once."""
    return [
        Settlement(attempt.attempt_id, attempt.call_id, settled, "recovery", check=seen.check),
        _told(ids, attempt, settled),
    ]


def untold_retries(ids: Ids, ledger: Ledger) -> list[Record]:
    """How retries ended whose process died before it told: no answer of the model proposed them, so no reply does."""
    told = {said.record.attempt_id for said in ledger.said if isinstance(said.record, Notice)}
    return [
        Notice(ids.new(), retried_notice(call, attempt.result.outcome), attempt.turn_id, attempt.attempt_id)
        for attempt in ledger.attempts.values()
        if attempt.retry_of is not None and attempt.result is not None and attempt.attempt_id not in told
        for call in (ledger.calls[attempt.call_id],)
    ]


def undone_by(ids: Ids, ledger: Ledger, new: Attempt, by: Author) -> list[Record]:
    """What a restore that is known to have happened settles, if that is not recorded yet (row A5)."""
    old = ledger.attempts.get(new.restore_of) if new.restore_of is not None and new.brought_back else None
    if old is None or old.stage not in ("uncertain", "checked"):
        return []
    return [
        Settlement(old.attempt_id, old.call_id, "restored", by, check=new.check),
        _told(ids, old, "restored"),
    ]


def _told(ids: Ids, attempt: Attempt, settled: Settled) -> Notice:
    by = attempt.settlement.by if attempt.settlement is not None else "recovery"
    text = settlement_notice(attempt, settled, by)
    return Notice(ids.new(), text, attempt.turn_id, attempt.attempt_id)


def _result(ids: Ids, verdict: Verdict, seen: Looked) -> Result:
    attempt_id = verdict.attempt.attempt_id if verdict.attempt else ids.new()
    uncertain = verdict.outcome in ("unknown", "unknown_after_restart")
    return Result(
        attempt_id, verdict.call.call_id, verdict.call.turn_id, verdict.outcome,
        by="recovery", check=seen.check if uncertain else None, kept=seen.kept,
    )  # fmt: skip
