"""Known-bad variants of the product, each a mistake somebody could make; a proof that misses them proves nothing.

Each is a patch of the product's own functions, or a disk that keeps less than it says, applied in a process of its own.
Nothing in the product knows of them. `layer` is the one that has to catch it.
"""

from __future__ import annotations

import attrs

from steadyhand.core.record import Result, Started
from steadyhand.tools import delete_file, move_file, restore
from tests.prove import mistakes, mistakes_redoing
from tests.prove.mistakes import Patch


@attrs.frozen
class Variant:
    """`breaks` is the mistake, in words."""

    breaks: str
    apply: Patch
    layer: str


VARIANTS: tuple[Variant, ...] = (
    Variant("no folder is synced", mistakes.no_folder_sync, "L1"),
    Variant("names not synced by who finds a session", mistakes.names_not_synced, "L1 killed"),
    Variant("folders on the way not synced", mistakes.way_not_synced, "L1"),
    Variant("short write of the journal ignored", mistakes.short_write_ignored, "L2"),
    Variant("short write of a file ignored", mistakes.short_write_of_files_ignored, "L2"),
    Variant("failed sync tried again", mistakes.sync_retried, "L2"),
    Variant("a broken journal goes on", mistakes.broken_journal_goes_on, "L2"),
    Variant("started not synced", mistakes.barrier_less(Started), "L1"),
    Variant("result not synced", mistakes.barrier_less(Result), "L2"),
    Variant("result recorded before the effect", mistakes.result_before_effect, "L1"),
    Variant("joint not checked", mistakes.joint_not_checked, "L6"),
    Variant("checksum not checked", mistakes.no_checksum, "L6"),
    Variant("tail not cut", mistakes.tail_not_cut, "L1"),
    Variant("any bad tail taken as torn", mistakes.bad_tail_is_torn, "L6"),
    Variant("unlink not synced", mistakes.unlink_not_synced, "L1"),
    Variant("comparison before the gate", mistakes.comparison_before_the_gate, "L1 saves"),
    Variant("a new file replaces one", mistakes.new_file_replaces, "L1 saves"),
    Variant("displaced save removed as litter", mistakes.displaced_save_is_litter, "L1 saves"),
    Variant("epoch not compared", mistakes.epoch_not_compared, "L1 decisions"),
    Variant("inspection not stored before the answer", mistakes.inspection_not_stored, "L1 decisions"),
    Variant("result lost on cancel", mistakes.result_lost_on_cancel, "L1 stops"),
    Variant("permission after started", mistakes.permission_after_start, "L1 asks"),
    Variant("two terminal records", mistakes.two_terminal_records, "L1"),
    Variant("settled with a survivor alive", mistakes.cancel_not_looked_at, "L7"),
    Variant("settled without a sync", mistakes.settled_without_sync, "L1 killed"),
    Variant("temporary file not synced", mistakes.temporary_not_synced, "L1"),
    Variant("written in place", mistakes.written_in_place, "L1"),
    Variant("started read as not run", mistakes.start_called_not_run, "L1"),
    Variant("checkpoint not synced", mistakes.checkpoint_not_synced, "L1"),
    Variant("a move replaces what is there", mistakes_redoing.move_replaces, "L1 moves"),
    Variant("a move looks not at what it moved", mistakes_redoing.moved_unseen, "L1 moves"),
    Variant("a move's folders not synced", mistakes_redoing.moved_names_not_synced, "L1 moves"),
    Variant("a move takes its old name away first", mistakes_redoing.old_name_removed_first, "L1 moves"),
    Variant("a move that is half done called done", mistakes_redoing.half_is_whole, "L1 moves"),
    Variant("a move keeps nothing", mistakes_redoing.nothing_kept(move_file), "L1 moves"),
    Variant("a deletion keeps nothing", mistakes_redoing.nothing_kept(delete_file), "L1 moves"),
    Variant("a restore keeps nothing", mistakes_redoing.nothing_kept(restore), "L1 restores"),
    Variant("restored before it is", mistakes_redoing.restored_before_it_is, "L1 restores"),
    Variant("a retry with a new key", mistakes_redoing.retry_with_a_new_key, "L1 retries"),
    Variant("a retry without a fence", mistakes_redoing.retry_without_a_fence, "L1 retries"),
    Variant("a retry of another scope", mistakes_redoing.retry_of_another_scope, "L1 retries"),
    Variant("given up before there is another", mistakes_redoing.superseded_first, "L1 retries"),
    Variant("tried again and not given up", mistakes_redoing.never_given_up, "L1 retries"),
    Variant("a background command is uncertain", mistakes_redoing.background_is_uncertain, "L7"),
    Variant("a job is stopped by its number", mistakes_redoing.stopped_by_its_number, "L7"),
    Variant("a job that was left is not told", mistakes_redoing.left_jobs_untold, "L7"),
    Variant("the model settles without a start", mistakes_redoing.model_settles_as_a_read, "L1 the model"),
)
