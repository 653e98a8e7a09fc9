"""Known-bad variants of the product, each a mistake somebody could make; a proof that misses them proves nothing.

Each is a patch of the product's own functions, or a disk that keeps less than it says, applied in a process of its own.
Nothing in the product knows of them. `layers` are tried in order until one catches it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from steadyhand.core import ledger as ledgers
from steadyhand.core import recovery
from steadyhand.core.record import Record, Result, Stamped, Started
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


@attrs.frozen
class Variant:
    """`breaks` is the mistake, in words."""

    breaks: str
    apply: Patch
    layers: tuple[str, ...]


def _set(place: Any, name: str, value: Any) -> None:
    """What is replaced has to be there: a variant of nothing would be caught by accident."""
    assert hasattr(place, name), f"{place} has no {name} any more"
    setattr(place, name, value)


def _no_folder_sync() -> None:
    _set(SimDisk, "sync_folder", lambda self, folder: None)


def _names_not_synced() -> None:
    _set(opening, "make_names_durable", lambda disk, held: None)


def _way_not_synced() -> None:
    _set(replace, "sync_way", lambda ground, folders: None)


def _short_write_ignored() -> None:
    _set(journal_log, "write_all", lambda disk, file, piece: disk.write(file, piece) and None)


def _short_write_of_files_ignored() -> None:
    def once(disk: Any, file: Any, piece: bytes) -> None:
        disk.write(file, piece)

    _set(replace, "write_all", once)
    _set(replace._Try, "_unfit", lambda self, missing: None)
    _set(replace._Try, "_read_back", lambda self, missing: replace.Replaced("", 0, missing))


def _sync_retried() -> None:
    sync = SimDisk.sync

    def twice(self: SimDisk, file: Any) -> None:
        try:
            sync(self, file)
        except OSError:
            sync(self, file)

    _set(SimDisk, "sync", twice)


def _barrier_less(kind: type) -> Patch:
    def apply() -> None:
        append = Owner.append

        async def without(self: Owner, records: Any, barrier: bool, unless: Any = None) -> bool:
            return await append(self, records, barrier and not any(isinstance(r, kind) for r in records), unless)

        _set(Owner, "append", without)

    return apply


def _joint_not_checked() -> None:
    _set(ledgers.Ledger, "break_joint", lambda self: None)


def _no_checksum() -> None:
    _set(journal_format, "_sum", _agree)
    read = journal_format._read_line

    def trusting(line: bytes) -> Any:
        journal_format_state["sum"] = line[8:16].decode("latin-1")
        return read(line)

    _set(journal_format, "_read_line", trusting)


journal_format_state: dict[str, str] = {}


def _agree(body: bytes) -> str:
    return journal_format_state.get("sum") or "0" * 8


def _tail_not_cut() -> None:
    _set(journal_log, "_mend_tail", lambda disk, folder, file, loaded: None)


def _bad_tail_is_torn() -> None:
    read = journal_format._Reader.read

    def forgiving(self: Any) -> Any:
        whole, _, last = self.content.rstrip(b"\n").rpartition(b"\n")
        if self.content.endswith(b"\n") and journal_format._read_line(last) is None:
            self.content = whole + b"\n" + last
        return read(self)

    _set(journal_format._Reader, "read", forgiving)


def _unlink_not_synced() -> None:
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

    _set(SimDisk, "unlink", early)
    _set(SimDisk, "sync_folder", quiet)


def _comparison_before_the_gate() -> None:
    whole, difference = replace._Try.whole, replace._Try._difference

    def compared_once(self: Any) -> Any:
        first = difference(self)
        if first is not None:
            return first
        self._difference = lambda: None
        return whole(self)

    _set(replace._Try, "whole", compared_once)


def _epoch_not_compared() -> None:
    _set(Owner, "require_epoch", lambda self, epoch: None)


def _result_lost_on_cancel() -> None:
    async def careless(owner: Any, turn: Any, admitted: Any, evidence: Any) -> None:
        done = await admitted.planned.run(calls._running(owner, turn, admitted, evidence))
        await calls._record(owner, admitted, done)

    _set(calls, "run_and_record", careless)


def _permission_after_start() -> None:
    permitted, start = calls._permitted, calls._start

    async def later(owner: Any, turn: Any, admitted: Any) -> None:
        return None

    async def started_first(owner: Any, turn: Any, admitted: Any, *rest: Any) -> bool:
        if not await start(owner, turn, admitted, *rest):
            return False
        answer = await permitted(owner, turn, admitted)
        return not isinstance(answer, Refusal)

    _set(calls, "_permitted", later)
    _set(calls, "_start", started_first)


def _two_terminal_records() -> None:
    decide = opening.decide

    def again(ledger: Any, reading: Any) -> Any:
        found = decide(ledger, reading)
        ended = [
            call for call in ledger.calls.values() if call.attempt and call.attempt.started and call.attempt.result
        ]
        return found + [opening.Verdict(call, call.attempt, "unknown_after_restart", True) for call in ended]

    _set(opening, "decide", again)


def _displaced_save_is_litter() -> None:
    _set(check, "_disposable", lambda *_: True)
    _set(replace._Try, "_displaced_is_before", lambda self: True)


def _inspection_not_stored() -> None:
    record_or_refuse = Owner.record_or_refuse

    async def shown(self: Any, records: Any) -> None:
        if any(record.kind == "inspection" for record in records):
            opening.show(self.ledger, records)
            return
        await record_or_refuse(self, records)

    _set(Owner, "record_or_refuse", shown)


def _cancel_not_looked_at() -> None:
    """The old attempt goes on behind the verdict of the next owner: settled with a survivor alive."""
    body = change.PlannedChange._body

    def deaf(self: Any, running: Any) -> Any:
        return body(self, attrs.evolve(running, cancelled=lambda: False))

    _set(change.PlannedChange, "_body", deaf)


def _settled_without_sync() -> None:
    _set(checking, "make_durable", lambda ground, evidence: True)
    _set(resolving, "make_durable", lambda ground, evidence: True)
    # Clearing the temporary file syncs the folder too.
    clear = check.clear_temporary

    def unsynced(ground: Any, *rest: Any) -> Any:
        return clear(attrs.evolve(ground, disk=_Unsynced(ground.disk)), *rest)

    _set(checking, "clear_temporary", unsynced)


class _Unsynced:
    """A disk whose folders are not synced."""

    def __init__(self, disk: Any) -> None:
        self._disk = disk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._disk, name)

    def sync_folder(self, folder: Any) -> None:
        return None


def _temporary_not_synced() -> None:
    sync = SimDisk.sync

    def lazy(self: SimDisk, file: Any) -> None:
        if not self._name(self._handle(file).inode).endswith(".steadyhand"):
            sync(self, file)

    _set(SimDisk, "sync", lazy)


def _written_in_place() -> None:
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

    _set(replace._Try, "_replace", in_place)


def _start_called_not_run() -> None:
    classify = recovery.classify

    def hopeful(reached: Any, *rest: Any) -> Any:
        return classify("intent" if reached == "started" else reached, *rest)

    _set(opening, "classify", hopeful)


def _checkpoint_not_synced() -> None:
    keep = Contents.keep

    def lazy(self: Contents, piece: bytes, attempt_id: str) -> Any:
        return keep(attrs.evolve(self, disk=_UnsyncedFiles(self.disk)), piece, attempt_id)

    _set(Contents, "keep", lazy)


class _UnsyncedFiles(_Unsynced):
    def sync(self, file: Any) -> None:
        return None


def _new_file_replaces() -> None:
    def over(self: SimDisk, folder: Any, old: str, new: str) -> None:
        self._announce("rename_new", f"{old} -> {new}")
        told, self.before = self.before, None
        self.rename(folder, old, new)
        self.before = told

    _set(SimDisk, "rename_new", over)


def _broken_journal_goes_on() -> None:
    append = Journal.append

    def again(self: Journal, records: Any, barrier: bool) -> tuple[Stamped, ...]:
        self.broken = None
        return append(self, records, barrier)

    _set(Journal, "append", again)


def _result_before_effect() -> None:
    run = calls.run_and_record

    async def early(owner: Any, turn: Any, admitted: Any, evidence: Any) -> None:
        first: list[Record] = [
            Result(admitted.attempt_id, admitted.call.call_id, admitted.call.turn_id, "returned", check="satisfied")
        ]
        await owner.append(first, barrier=True)
        await run(owner, turn, admitted, evidence)

    _set(calls, "run_and_record", early)


VARIANTS: tuple[Variant, ...] = (
    Variant("no folder is synced", _no_folder_sync, ("L1",)),
    Variant("names not synced by who finds a session", _names_not_synced, ("L1 killed",)),
    Variant("folders on the way not synced", _way_not_synced, ("L1",)),
    Variant("short write of the journal ignored", _short_write_ignored, ("L2",)),
    Variant("short write of a file ignored", _short_write_of_files_ignored, ("L2",)),
    Variant("failed sync tried again", _sync_retried, ("L2",)),
    Variant("a broken journal goes on", _broken_journal_goes_on, ("L2",)),
    Variant("started not synced", _barrier_less(Started), ("L1",)),
    Variant("result not synced", _barrier_less(Result), ("L1", "L2")),
    Variant("result recorded before the effect", _result_before_effect, ("L1",)),
    Variant("joint not checked", _joint_not_checked, ("L6",)),
    Variant("checksum not checked", _no_checksum, ("L6",)),
    Variant("tail not cut", _tail_not_cut, ("L1",)),
    Variant("any bad tail taken as torn", _bad_tail_is_torn, ("L6",)),
    Variant("unlink not synced", _unlink_not_synced, ("L1",)),
    Variant("comparison before the gate", _comparison_before_the_gate, ("L1 saves",)),
    Variant("a new file replaces one", _new_file_replaces, ("L1 saves",)),
    Variant("displaced save removed as litter", _displaced_save_is_litter, ("L1 saves",)),
    Variant("epoch not compared", _epoch_not_compared, ("L1 decisions",)),
    Variant("inspection not stored before the answer", _inspection_not_stored, ("L1 decisions",)),
    Variant("result lost on cancel", _result_lost_on_cancel, ("L1 stops",)),
    Variant("permission after started", _permission_after_start, ("L1 asks",)),
    Variant("two terminal records", _two_terminal_records, ("L1",)),
    Variant("settled with a survivor alive", _cancel_not_looked_at, ("L7",)),
    Variant("settled without a sync", _settled_without_sync, ("L1 killed",)),
    Variant("temporary file not synced", _temporary_not_synced, ("L1",)),
    Variant("written in place", _written_in_place, ("L1",)),
    Variant("started read as not run", _start_called_not_run, ("L1",)),
    Variant("checkpoint not synced", _checkpoint_not_synced, ("L1",)),
)
