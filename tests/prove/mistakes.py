"""Mistakes of journal, recovery and the room that replaces files: patches of the product's own functions.

Each is what somebody could have written; tests/prove/variants.py says in words what it is and which layer catches it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from steadyhand.core import ledger as ledgers
from steadyhand.core import recovery
from steadyhand.core.record import Record, Result, Stamped
from steadyhand.journal import format as journal_format
from steadyhand.journal import log as journal_log
from steadyhand.journal.log import Journal
from steadyhand.session import call as calls
from steadyhand.session import checking, opening, resolving
from steadyhand.session.owner import Owner
from steadyhand.tools import change, check, content, replace
from steadyhand.tools.content import Contents
from steadyhand.tools.tool import Refusal
from tests.support.sim_disk import SimDisk

Patch = Callable[[], None]


def replaced(place: Any, name: str, value: Any) -> None:
    """What is replaced has to be there: a variant of nothing would be caught by accident."""
    assert hasattr(place, name), f"{place} has no {name} any more"
    setattr(place, name, value)


def no_folder_sync() -> None:
    replaced(SimDisk, "sync_folder", lambda self, folder: None)


def names_not_synced() -> None:
    replaced(opening, "make_names_durable", lambda disk, held: None)


def way_not_synced() -> None:
    replaced(replace, "sync_way", lambda ground, folders: None)


def short_write_ignored() -> None:
    replaced(journal_log, "write_all", lambda disk, file, piece: disk.write(file, piece) and None)


def short_write_of_files_ignored() -> None:
    def once(disk: Any, file: Any, piece: bytes) -> None:
        disk.write(file, piece)

    replaced(replace, "write_all", once)
    replaced(replace._Try, "_unfit", lambda self, missing: None)
    replaced(replace._Try, "_read_back", lambda self, missing: replace.Replaced("", 0, missing))


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
        append = Owner.append

        async def without(self: Owner, records: Any, barrier: bool, unless: Any = None) -> bool:
            return await append(self, records, barrier and not any(isinstance(r, kind) for r in records), unless)

        replaced(Owner, "append", without)

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
    replaced(journal_log, "_mend_tail", lambda disk, folder, file, loaded: None)


def bad_tail_is_torn() -> None:
    read = journal_format._Reader.read

    def forgiving(self: Any) -> Any:
        whole, _, last = self.content.rstrip(b"\n").rpartition(b"\n")
        if self.content.endswith(b"\n") and journal_format._read_line(last) is None:
            self.content = whole + b"\n" + last
        return read(self)

    replaced(journal_format._Reader, "read", forgiving)


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
    whole, difference = replace._Try.whole, replace._Try._difference

    def compared_once(self: Any) -> Any:
        first = difference(self)
        if first is not None:
            return first
        self._difference = lambda: None
        return whole(self)

    replaced(replace._Try, "whole", compared_once)


def epoch_not_compared() -> None:
    replaced(Owner, "require_epoch", lambda self, epoch: None)


def result_lost_on_cancel() -> None:
    async def careless(owner: Any, turn: Any, admitted: Any, evidence: Any) -> None:
        done = await admitted.planned.run(calls._running(owner, turn, admitted, evidence))
        await calls._record(owner, admitted, done)

    replaced(calls, "run_and_record", careless)


def permission_after_start() -> None:
    permitted, start = calls.permitted, calls._start
    waiting: dict[str, Any] = {}

    async def later(owner: Any, turn: Any, admitted: Any) -> None:
        waiting[admitted.attempt_id] = admitted

    async def started_first(owner: Any, turn: Any, call: Any, started: Any) -> bool:
        if not await start(owner, turn, call, started):
            return False
        answer = await permitted(owner, turn, waiting[started.attempt_id])
        return not isinstance(answer, Refusal)

    replaced(calls, "permitted", later)
    replaced(calls, "_start", started_first)


def two_terminal_records() -> None:
    decide = opening.decide

    def again(ledger: Any, reading: Any) -> Any:
        found = decide(ledger, reading)
        ended = [
            call for call in ledger.calls.values() if call.attempt and call.attempt.started and call.attempt.result
        ]
        return found + [opening.Verdict(call, call.attempt, "unknown_after_restart", True) for call in ended]

    replaced(opening, "decide", again)


def displaced_save_is_litter() -> None:
    replaced(check, "_disposable", lambda *_: True)
    replaced(replace._Try, "_displaced_is_before", lambda self: True)


def inspection_not_stored() -> None:
    record_or_refuse = Owner.record_or_refuse

    async def shown(self: Any, records: Any) -> None:
        if any(record.kind == "inspection" for record in records):
            opening.show(self.ledger, records)
            return
        await record_or_refuse(self, records)

    replaced(Owner, "record_or_refuse", shown)


def cancel_not_looked_at() -> None:
    """The old attempt goes on behind the verdict of the next owner: settled with a survivor alive."""
    body = change.PlannedChange._body

    def deaf(self: Any, running: Any) -> Any:
        return body(self, attrs.evolve(running, cancelled=lambda: False))

    replaced(change.PlannedChange, "_body", deaf)


def settled_without_sync() -> None:
    replaced(checking, "make_durable", lambda ground, evidence: True)
    replaced(resolving, "make_durable", lambda ground, evidence: True)
    # Clearing the temporary file syncs the folder too.
    clear = check.clear_temporary

    def unsynced(ground: Any, *rest: Any) -> Any:
        return clear(attrs.evolve(ground, disk=Unsynced(ground.disk)), *rest)

    replaced(checking, "clear_temporary", unsynced)


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
        content.write_all(disk, file, self._content)
        disk.sync(file)
        disk.close(file)
        disk.sync_folder(folder)
        return self._read_back(missing)

    replaced(replace._Try, "_replace", in_place)


def start_called_not_run() -> None:
    classify = recovery.classify

    def hopeful(reached: Any, *rest: Any) -> Any:
        return classify("intent" if reached == "started" else reached, *rest)

    replaced(opening, "classify", hopeful)


def checkpoint_not_synced() -> None:
    keep = Contents.keep

    def lazy(self: Contents, piece: bytes, attempt_id: str) -> Any:
        return keep(attrs.evolve(self, disk=_UnsyncedFiles(self.disk)), piece, attempt_id)

    replaced(Contents, "keep", lazy)


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

    replaced(Journal, "append", again)


def result_before_effect() -> None:
    run = calls.run_and_record

    async def early(owner: Any, turn: Any, admitted: Any, evidence: Any) -> None:
        first: list[Record] = [
            Result(admitted.attempt_id, admitted.call.call_id, admitted.call.turn_id, "returned", check="satisfied")
        ]
        await owner.append(first, barrier=True)
        await run(owner, turn, admitted, evidence)

    replaced(calls, "run_and_record", early)
