"""Known-bad variants of the product: mistakes that somebody could make. A proof that misses them proves nothing.

Each variant patches the product's own functions, or uses a disk that keeps less than it says, in a process of its own.
Nothing in the product knows of them. `layer` is the layer that has to catch it.
"""

from __future__ import annotations

import attrs

from steadyhand.domain.records.record import Result, Rewind, Started, User
from steadyhand.tools.builtin import delete_file, move_file
from steadyhand.tools.writes import restore
from tests.prove import (
    mistakes,
    mistakes_in_editor,
    mistakes_in_place,
    mistakes_owning,
    mistakes_redoing,
    mistakes_taking_back,
)
from tests.prove.mistakes import Patch


@attrs.frozen
class Variant:
    """`breaks` is the mistake, in words."""

    breaks: str
    apply: Patch
    layer: str


VARIANTS: tuple[Variant, ...] = (
    Variant("no folder is synced", mistakes.no_folder_sync, "L1"),
    Variant("session names not synced on opening", mistakes.names_not_synced, "L1 killed"),
    Variant("parent folders not synced", mistakes.way_not_synced, "L1"),
    Variant("short write of the journal ignored", mistakes.short_write_ignored, "L2"),
    Variant("short write of a file ignored", mistakes.short_write_of_files_ignored, "L2"),
    Variant("failed sync repeated", mistakes.sync_retried, "L2"),
    Variant("a failed journal accepts records", mistakes.broken_journal_goes_on, "L2"),
    Variant("started not synced", mistakes.barrier_less(Started), "L1"),
    Variant("result not synced", mistakes.barrier_less(Result), "L2"),
    Variant("result recorded before the effect", mistakes.result_before_effect, "L1"),
    Variant("link between records not checked", mistakes.joint_not_checked, "L6"),
    Variant("checksum not checked", mistakes.no_checksum, "L6"),
    Variant("tail not cut", mistakes.tail_not_cut, "L1"),
    Variant("any invalid tail treated as torn", mistakes.bad_tail_is_torn, "L6"),
    Variant("a torn start counts for nothing", mistakes.torn_start_ignored, "L6"),
    Variant("unlink not synced", mistakes.unlink_not_synced, "L1"),
    Variant("content compared too early", mistakes.comparison_before_the_gate, "L1 saves"),
    Variant("a new file replaces one", mistakes.new_file_replaces, "L1 saves"),
    Variant("displaced save removed as a temporary file", mistakes.displaced_save_is_litter, "L1 saves"),
    Variant("epoch not compared", mistakes.epoch_not_compared, "L1 decisions"),
    Variant("inspection not stored before the answer", mistakes.inspection_not_stored, "L1 decisions"),
    Variant("result lost on cancel", mistakes.result_lost_on_cancel, "L1 stops"),
    Variant("permission after started", mistakes.permission_after_start, "L1 asks"),
    Variant("two terminal records", mistakes.two_terminal_records, "L1"),
    Variant("settled with a survivor alive", mistakes.cancel_not_looked_at, "L7"),
    Variant("settled without a sync", mistakes.settled_without_sync, "L1 killed"),
    Variant("temporary file not synced", mistakes.temporary_not_synced, "L1"),
    Variant("written in place", mistakes.written_in_place, "L1"),
    Variant("a write in place not synced", mistakes_in_place.not_synced, "L1 in place"),
    Variant("a half-written file called as before", mistakes_in_place.mix_is_unchanged, "L1 in place"),
    Variant("old bytes not put back after an error", mistakes_in_place.not_put_back, "L2 in place"),
    Variant("bytes that a failed sync lost are believed", mistakes_in_place.failed_sync_forgotten, "L2 in place"),
    Variant("a write in place not asked about", mistakes_in_place.not_asked, "L1 in place"),
    Variant("started read as not run", mistakes.start_called_not_run, "L1"),
    Variant("checkpoint not synced", mistakes.checkpoint_not_synced, "L1"),
    Variant("a move replaces what is there", mistakes_redoing.move_replaces, "L1 moves"),
    Variant("a move does not check what it moved", mistakes_redoing.moved_unseen, "L1 moves"),
    Variant("a move's folders not synced", mistakes_redoing.moved_names_not_synced, "L1 moves"),
    Variant("a move removes its old name first", mistakes_redoing.old_name_removed_first, "L1 moves"),
    Variant("a half-done move reported as done", mistakes_redoing.half_is_whole, "L1 moves"),
    Variant("a move keeps nothing", mistakes_redoing.nothing_kept(move_file), "L1 moves"),
    Variant("a deletion keeps nothing", mistakes_redoing.nothing_kept(delete_file), "L1 moves"),
    Variant("a restore keeps nothing", mistakes_redoing.nothing_kept(restore), "L1 restores"),
    Variant("restored recorded before the restore", mistakes_redoing.restored_before_it_is, "L1 restores"),
    Variant("a retry with a new key", mistakes_redoing.retry_with_a_new_key, "L1 retries"),
    Variant("a retry without a fence", mistakes_redoing.retry_without_a_fence, "L1 retries"),
    Variant("a retry with another scope", mistakes_redoing.retry_of_another_scope, "L1 retries"),
    Variant("superseded before the new attempt is recorded", mistakes_redoing.superseded_first, "L1 retries"),
    Variant("retried and not superseded", mistakes_redoing.never_given_up, "L1 retries"),
    Variant("a closed document called as before", mistakes_in_editor.closed_is_unchanged, "L1 editor"),
    Variant("an edit fenced while its editor lives", mistakes_in_editor.fenced_while_it_lives, "L1 editor"),
    Variant("an editor's save not synced", mistakes_in_editor.save_not_synced, "L1 editor"),
    Variant("unsaved text counts as durable", mistakes_in_editor.text_is_durable, "L1 editor"),
    Variant("an undo told before it happened", mistakes_taking_back.told_before_it_is_undone, "L1 takes back"),
    Variant("a rewind recorded before its files", mistakes_taking_back.rewind_recorded_first, "L1 takes back"),
    Variant("a rewind answered before it is durable", mistakes_taking_back.without_a_barrier(Rewind), "L1 takes back"),
    Variant(
        "a rewind's files counted before they are back", mistakes_taking_back.begun_counts_as_done, "L1 takes back"
    ),
    Variant(
        "a revision answered before it is durable",
        mistakes_taking_back.without_a_barrier(User, replacing=True),
        "L1 takes back",
    ),
    Variant("a revised prompt beside the old one", mistakes_taking_back.revision_beside_the_old, "L1 takes back"),
    Variant("ownership not checked before a write", mistakes_owning.unchecked(before_write=True), "L5"),
    Variant("ownership not checked after a barrier", mistakes_owning.unchecked(before_write=False), "L5"),
    Variant("ownership not checked before a body", mistakes_owning.body_unchecked, "L5"),
    Variant("ownership not checked before the change itself", mistakes_owning.change_unchecked, "L5"),
    Variant("a new journal not opened for appending only", mistakes_owning.created_without_append, "L5"),
    Variant("owner lock not compared", mistakes_owning.lock_not_compared, "L5"),
    Variant("session folder not compared", mistakes_owning.folder_not_compared, "L5"),
    Variant("journal file not compared", mistakes_owning.journal_not_compared, "L5"),
    Variant("size of the journal not compared", mistakes.size_not_compared, "L5"),
    Variant("second names not seen", mistakes_owning.names_not_counted, "L5"),
    Variant("a loss is not told", mistakes_owning.loss_not_told, "L5"),
    Variant("a background command is uncertain", mistakes_redoing.background_is_uncertain, "L7"),
    Variant("a job is stopped by its process id", mistakes_redoing.stopped_by_its_number, "L7"),
    Variant("a job that was left is not reported", mistakes_redoing.left_jobs_untold, "L7"),
    Variant("the model settles without a start", mistakes_redoing.model_settles_as_a_read, "L1 the model"),
)
