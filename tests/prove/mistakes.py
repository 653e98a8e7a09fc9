"""Mistakes in the journal, in recovery and in the module that replaces files: patches of the product's own functions.

Somebody could have written each of them; tests/prove/variants.py says in words what it is and which layer catches it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from steadyhand.domain.ledger import ledger as ledgers
from steadyhand.domain.records.record import Record, Result, Stamped
from steadyhand.domain.recovery import tables
from steadyhand.journal import format as journal_format
from steadyhand.journal import journal as journal_log
from steadyhand.journal import ownership
from steadyhand.journal.journal import Journal
from steadyhand.ports.disk import write_all
from steadyhand.session.calls import execute as calls
from steadyhand.session.calls import permission
from steadyhand.session.inspection import file_state
from steadyhand.session.recovery import open, resolve
from steadyhand.session.session import Session
from steadyhand.session.session_log import SessionLog
from steadyhand.session.session_state import SessionState
from steadyhand.tools.contract import Refusal
from steadyhand.tools.writes import planned_write, postcondition_check, replace_file
from steadyhand.tools.writes.blob_store import BlobStore
from tests.support.sim_disk import SimDisk

Patch = Callable[[], None]


def replaced(place: Any, name: str, value: Any) -> None:
    """The patched name must exist: a variant that patches nothing would be caught only by accident."""
    assert hasattr(place, name), f"{place} has no {name} any more"
    setattr(place, name, value)


def no_folder_sync() -> None:
    replaced(SimDisk, "sync_folder", lambda self, folder: None)


def names_not_synced() -> None:
    replaced(open, "make_names_durable", lambda disk, held: None)


def way_not_synced() -> None:
    replaced(replace_file, "sync_folder_names", lambda tool_context, folders: None)


def size_not_compared() -> None:
    replaced(ownership, "_size_loss", lambda seen, size, path: None)


def short_write_ignored() -> None:
    replaced(journal_log, "write_all", lambda disk, file, piece: disk.write(file, piece) and None)
    size_not_compared()  # otherwise the journal is lost at once, and nothing is acknowledged


def short_write_of_files_ignored() -> None:
    def once(disk: Any, file: Any, piece: bytes) -> None:
        disk.write(file, piece)

    replaced(replace_file, "write_all", once)
    replaced(replace_file._AtomicReplace, "_check_temporary", lambda self, missing: None)
    replaced(replace_file._AtomicReplace, "_read_back", lambda self, missing: replace_file.Replaced("", 0, missing))


def sync_retried() -> None:
    sync = SimDisk.sync

    def twice(self: SimDisk, file: Any) -> None:
        try:
            sync(self, file)
        except OSError:
            sync(self, file)

    replaced(SimDisk, "sync", twice)


def barrier_less(kind: type) -> Patch:
    def apply() -> None:
        append = SessionLog.append

        async def without(self: SessionLog, records: Any, barrier: bool, unless: Any = None) -> bool:
            return await append(self, records, barrier and not any(isinstance(r, kind) for r in records), unless)

        replaced(SessionLog, "append", without)

    return apply


def joint_not_checked() -> None:
    replaced(ledgers.Ledger, "break_joint", lambda self: None)


def no_checksum() -> None:
    replaced(journal_format, "_sum", _agree)
    read = journal_format._read_line

    def trusting(line: bytes) -> Any:
        journal_format_state["sum"] = line[8:16].decode("latin-1")
        return read(line)

    replaced(journal_format, "_read_line", trusting)


journal_format_state: dict[str, str] = {}


def _agree(body: bytes) -> str:
    return journal_format_state.get("sum") or "0" * 8


def tail_not_cut() -> None:
    replaced(journal_log, "_repair_tail", lambda disk, folder, file, loaded: None)
    size_not_compared()


def bad_tail_is_torn() -> None:
    read = journal_format._JournalReader.read

    def forgiving(self: Any) -> Any:
        whole, _, last = self.content.rstrip(b"\n").rpartition(b"\n")
        if self.content.endswith(b"\n") and journal_format._read_line(last) is None:
            self.content = whole + b"\n" + last
        return read(self)

    replaced(journal_format._JournalReader, "read", forgiving)


def torn_start_ignored() -> None:
    replaced(journal_format, "attempt_of_torn_start", lambda tail: None)
    replaced(journal_log, "torn_starts_beside", lambda disk, folder, records: ())


def unlink_not_synced() -> None:
    """The folder is synced before the displaced content is removed, and not after."""
    unlink = SimDisk.unlink

    def early(self: SimDisk, folder: Any, name: str) -> None:
        if name.endswith(".steadyhand"):
            SimDisk.sync_folder(self, folder)
            self.__dict__["quiet"] = True
        unlink(self, folder, name)

    sync_folder = SimDisk.sync_folder

    def quiet(self: SimDisk, folder: Any) -> None:
        if self.__dict__.pop("quiet", False):
            return
        sync_folder(self, folder)

    replaced(SimDisk, "unlink", early)
    replaced(SimDisk, "sync_folder", quiet)


def comparison_before_the_gate() -> None:
    whole, difference = replace_file._AtomicReplace.run, replace_file._AtomicReplace._find_difference

    def compared_once(self: Any) -> Any:
        first = difference(self)
        if first is not None:
            return first
        self._find_difference = lambda: None
        return whole(self)

    replaced(replace_file._AtomicReplace, "run", compared_once)


def epoch_not_compared() -> None:
    replaced(Session, "require_epoch", lambda self, epoch: None)


def result_lost_on_cancel() -> None:
    async def careless(session: Any, turn: Any, prepared: Any, evidence: Any) -> None:
        done = await prepared.planned.run(calls._call_context(session, turn, prepared, evidence))
        await calls._record_result(session, prepared, done)

    replaced(calls, "run_and_record", careless)


def permission_after_start() -> None:
    ask_permission, start = permission.ask_permission, calls._record_start
    waiting: dict[str, Any] = {}

    async def later(session: Any, turn: Any, prepared: Any) -> None:
        waiting[prepared.attempt_id] = prepared

    async def started_first(session: Any, turn: Any, call: Any, started: Any) -> bool:
        if not await start(session, turn, call, started):
            return False
        answer = await ask_permission(session, turn, waiting[started.attempt_id])
        return not isinstance(answer, Refusal)

    replaced(calls, "ask_permission", later)
    replaced(calls, "_record_start", started_first)


def two_terminal_records() -> None:
    decide = open.decide

    def again(ledger: Any, reading: Any) -> Any:
        found = decide(ledger, reading)
        ended = [
            call for call in ledger.calls.values() if call.attempt and call.attempt.started and call.attempt.result
        ]
        return found + [open.Verdict(call, call.attempt, "unknown_after_restart", True) for call in ended]

    replaced(open, "decide", again)


def displaced_save_is_litter() -> None:
    replaced(postcondition_check, "_is_disposable", lambda *_: True)
    replaced(replace_file._AtomicReplace, "_is_displaced_content_before", lambda self: True)


def inspection_not_stored() -> None:
    record_or_refuse = SessionLog.record_or_refuse

    async def shown(self: Any, records: Any) -> None:
        if any(record.kind == "inspection" for record in records):
            self._state.ledger.apply_unrecorded(records)
            return
        await record_or_refuse(self, records)

    replaced(SessionLog, "record_or_refuse", shown)


def cancel_not_looked_at() -> None:
    """The old attempt goes on behind the verdict of the next lock holder: settled with a survivor alive."""
    body = planned_write.PlannedChange._perform

    def deaf(self: Any, running: Any) -> Any:
        return body(self, attrs.evolve(running, is_cancelled=lambda: False))

    replaced(planned_write.PlannedChange, "_perform", deaf)


def settled_without_sync() -> None:
    replaced(file_state, "make_durable", lambda tool_context, evidence: True)
    replaced(resolve, "make_durable", lambda tool_context, evidence: True)
    # Clearing the temporary file syncs the folder too.
    clear = postcondition_check.remove_temporary

    def unsynced(tool_context: Any, *rest: Any) -> Any:
        return clear(attrs.evolve(tool_context, disk=Unsynced(tool_context.disk)), *rest)

    replaced(file_state, "remove_temporary", unsynced)


class Unsynced:
    """A disk whose folders are not synced."""

    def __init__(self, disk: Any) -> None:
        self._disk = disk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._disk, name)

    def sync_folder(self, folder: Any) -> None:
        return None


def temporary_not_synced() -> None:
    sync = SimDisk.sync

    def lazy(self: SimDisk, file: Any) -> None:
        if not self._name(self._handle(file).inode).endswith(".steadyhand"):
            sync(self, file)

    replaced(SimDisk, "sync", lazy)


def written_in_place() -> None:
    def in_place(self: Any, missing: Any) -> Any:
        disk, folder, name = self._disk, self._folder, self._name
        disk.unlink(folder, self._temporary)
        if disk.look(folder, name) is None:
            disk.close(disk.create(folder, name, 0o666))
        file = disk.open_append(folder, name)
        disk.truncate(file, 0)
        write_all(disk, file, self._content)
        disk.sync(file)
        disk.close(file)
        disk.sync_folder(folder)
        return self._read_back(missing)

    replaced(replace_file._AtomicReplace, "_replace", in_place)


def start_called_not_run() -> None:
    classify = tables.classify

    def hopeful(reached: Any, *rest: Any) -> Any:
        return classify("intent" if reached == "started" else reached, *rest)

    replaced(open, "classify", hopeful)


def checkpoint_not_synced() -> None:
    keep = BlobStore.store

    def lazy(self: BlobStore, piece: bytes, attempt_id: str) -> Any:
        return keep(attrs.evolve(self, disk=_UnsyncedFiles(self.disk)), piece, attempt_id)

    replaced(BlobStore, "store", lazy)


class _UnsyncedFiles(Unsynced):
    def sync(self, file: Any) -> None:
        return None


def new_file_replaces() -> None:
    def over(self: SimDisk, folder: Any, old: str, new: str) -> None:
        self._announce("rename_new", f"{old} -> {new}")
        told, self.before = self.before, None
        self.rename(folder, old, new)
        self.before = told

    replaced(SimDisk, "rename_new", over)


def broken_journal_goes_on() -> None:
    append = Journal.append

    def again(self: Journal, records: Any, barrier: bool) -> tuple[Stamped, ...]:
        self.broken = None
        return append(self, records, barrier)

    change_status = SessionState.change_status

    def forgiving(self: SessionState, event: Any, why: Any = None) -> None:
        if event != "journal_broke":
            change_status(self, event, why)

    replaced(Journal, "append", again)
    replaced(SessionState, "change_status", forgiving)


def result_before_effect() -> None:
    run = calls.run_and_record

    async def early(session: Any, turn: Any, prepared: Any, evidence: Any) -> None:
        first: list[Record] = [
            Result(
                attempt_id=prepared.attempt_id,
                call_id=prepared.call.call_id,
                turn_id=prepared.call.turn_id,
                outcome="returned",
                check="satisfied",
            )
        ]
        await session.log.append(first, barrier=True)
        await run(session, turn, prepared, evidence)

    replaced(calls, "run_and_record", early)
