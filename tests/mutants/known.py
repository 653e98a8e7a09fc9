"""Mistakes that somebody made in this code on purpose and no test noticed then, each with the test that notices it now.

`python -m tests.mutants --known` makes each mistake in a copy of the server and expects its test to fail. That every
mistake can still be made is a fast test (tests/support/test_known_mistakes.py).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from steadyhand_values import frozen

ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / "server" / "steadyhand"
COPY = ROOT / ".scratch" / "mutants" / "known"


@frozen
class Mistake:
    """`before` stands once in the module, and the mistake makes `after` of it."""

    what: str
    module: str  # below server/steadyhand
    before: str
    after: str
    test: str  # what pytest is given
    named: str = ""  # what -k is given


CONFIRM = "tests/session/recovery/test_confirm.py"
PROVES = "tests/session/recovery/test_opening_proves.py"
LAST_CHECKS = "tests/tools/writes/test_last_checks.py"
MISTAKES: tuple[Mistake, ...] = (
    Mistake(
        "two findings are compared without their digests",
        "session/inspection/inspect.py",
        "(one.path, one.check, one.exists, one.digest)",
        "(one.path, one.check, one.exists, None)",
        CONFIRM,
        "one_conflict_became_another",
    ),
    Mistake(
        "a finding that cannot be made durable is settled",
        "session/recovery/resolve.py",
        "    if not lasting:\n",
        "    if False:\n",
        CONFIRM,
        "cannot_be_made_durable",
    ),
    Mistake(
        "a confirm looks first and makes durable afterwards",
        "session/recovery/resolve.py",
        "    lasting = not proves or await context.in_thread(make_durable, session.tool_context, evidence)\n"
        "    found = await inspect_now(session, attempt)\n",
        "    found = await inspect_now(session, attempt)\n"
        "    lasting = not proves or await context.in_thread(make_durable, session.tool_context, evidence)\n",
        CONFIRM,
        "looks_after",
    ),
    Mistake(
        "a restore does not compare its evidence with the inspection",
        "session/calls/take_back.py",
        "!= one.before for one in gathered.evidence)",
        "!= one.before for one in ())",
        "tests/session/calls/test_restore_kept.py",
        "changed_after_its_inspection",
    ),
    Mistake(
        "a file with a second name is replaced",
        "tools/writes/replace_file.py",
        "seen.mode != self._evidence.mode or seen.links > 1",
        "seen.mode != self._evidence.mode",
        LAST_CHECKS,
        "second_name",
    ),
    Mistake(
        "a move does not ask about unsaved text at its new path",
        "tools/writes/move.py",
        "if is_unsaved_in_editor(self._tool_context, self._goal.path, self._goal.resolved):",
        "if False:",
        LAST_CHECKS,
        "unsaved_text",
    ),
    Mistake(
        "a check that was disturbed compares the size alone",
        "tools/writes/postcondition_check.py",
        "if tool_context.disk.look(folder, located.name) != seen or size != seen.size:",
        "if size != seen.size:",
        LAST_CHECKS,
        "while_it_is_read",
    ),
    Mistake(
        "a removal does not compare the mode",
        "tools/writes/remove.py",
        "if there is None or there.mode != evidence.mode:",
        "if there is None:",
        LAST_CHECKS,
        "another_mode",
    ),
    Mistake(
        "an unacknowledged mode counts",
        "domain/ledger/ledger.py",
        "    Taken,\n    ModeSet,\n    Review,",
        "    Taken,\n    Review,",
        "tests/domain/ledger/test_ledger.py",
        "mode_in_the_unacknowledged_tail",
    ),
    Mistake(
        "a conflict after an error counts as failed",
        "session/calls/execute.py",
        'if seen.check == "unchanged":\n        return ToolOutcome("failed"',
        'if seen.check in ("unchanged", "conflict"):\n        return ToolOutcome("failed"',
        "tests/session/turns/test_errors.py",
        "after_a_concurrent_save",
    ),
    Mistake(
        "an opening checks an attempt a second time",
        "session/recovery/open.py",
        "if attempt.attempt_id not in self._checks:",
        "if True:",
        CONFIRM,
        "checks_an_attempt_once",
    ),
    Mistake(
        "an invalid value falls through to the next source",
        "config/sources.py",
        'is not {expected}")\n            return default\n',
        'is not {expected}")\n',
        "tests/config/test_settings.py",
        "not_replaced_by_the_next_source",
    ),
    Mistake(
        "of two starts without a known order neither overtakes",
        "domain/recovery/start_order.py",
        "if number is None or other.read_at >= number:",
        "if number is None or other.read_at > number:",
        "tests/domain/recovery/test_start_order.py",
        "read_before_a_numbered_one",
    ),
    Mistake(
        "a move syncs its old folder first",
        "tools/writes/move.py",
        "        self._disk.sync_folder(self._there)\n        self._disk.sync_folder(self._here)\n        ret",
        "        self._disk.sync_folder(self._here)\n        self._disk.sync_folder(self._there)\n        ret",
        LAST_CHECKS,
        "new_folder_before",
    ),
    Mistake(
        "a move that is undone syncs its new folder first",
        "tools/writes/move.py",
        "            self._disk.sync_folder(self._here)\n            self._disk.sync_folder(self._there)\n",
        "            self._disk.sync_folder(self._there)\n            self._disk.sync_folder(self._here)\n",
        LAST_CHECKS,
        "moved_back",
    ),
    Mistake(
        "a reading has no bound while it reads",
        "tools/writes/blob_store.py",
        "while left > 0 and (piece := disk.read_piece(file, min(left, PIECE_BYTES_MAX))):",
        "while piece := disk.read_piece(file, PIECE_BYTES_MAX):",
        "tests/tools/writes/test_growing_file.py",
        "end_while_the_doubtful_file_grows",
    ),
    Mistake(
        "our own temporary file counts as somebody's save",
        "session/inspection/file_state.py",
        "if left and is_own_leftover(tool_context, path, intended):",
        "if False:",
        "tests/session/inspection/test_own_leftover.py",
        "settles_and_names",
    ),
    Mistake(
        "a move is undone by a copy",
        "tools/writes/restore.py",
        "if pair is None or not is_movable_back(old, [one.before for one in running.evidence]):",
        "if True:",
        "tests/session/calls/test_restore_kept.py",
        "moves_the_same_file_back",
    ),
    Mistake(
        "a restored file gets its mode alone",
        "tools/writes/kept_attributes.py",
        "    if kept is not None:\n        with",
        "    if False:\n        with",
        "tests/session/calls/test_restore_kept.py",
        "gives_it_its_owner",
    ),
    Mistake(
        "the journal of another session is opened",
        "session/recovery/open.py",
        'if ledger.session is not None and ledger.session.session_id != held.path.rpartition("/")[2]:',
        "if ledger.session is None:",
        PROVES,
        "journal_of_another_session",
    ),
    Mistake(
        "an attempt without an end is settled",
        "domain/ledger/attempt_states.py",
        '    ("uncertain", "check"): "checked",\n',
        '    ("uncertain", "check"): "checked",\n    ("started", "check"): "checked",\n',
        PROVES,
        "settlement_before_the_result",
    ),
    Mistake(
        "an opening settles before it records the result",
        "session/recovery/open.py",
        "            self._record(journal, verdicts)\n            self._settle(journal)\n",
        "            self._settle(journal)\n            self._record(journal, verdicts)\n",
        PROVES,
        "result_before_its_settlement",
    ),
    Mistake(
        "an inspection of an earlier process counts",
        "domain/views/recovery_snapshot.py",
        "return attempt.inspection is not None and attempt.inspection_epoch == epoch",
        "return attempt.inspection is not None",
        PROVES,
        "earlier_process",
    ),
    Mistake(
        "the newest uncertain effect is asked about first",
        "session/calls/holdback.py",
        "*found[0])",
        "*found[-1])",
        "tests/session/calls/test_holdback.py",
        "oldest_effect_first",
    ),
)


def unnoticed(only: str = "") -> list[Mistake]:
    """Make each mistake and run its test; return those with which the test passes, or without which it fails.

    `only`: a part of `what`.
    """
    found: list[Mistake] = []
    for mistake in (one for one in MISTAKES if only in one.what):
        shutil.rmtree(COPY, ignore_errors=True)
        shutil.copytree(SERVER, COPY / "steadyhand", ignore=shutil.ignore_patterns("__pycache__"))
        passed = _test(mistake) == 0
        path = COPY / "steadyhand" / mistake.module
        path.write_text(changed(mistake), encoding="utf-8")
        noticed = passed and _test(mistake) == 1
        print(f"{'noticed' if noticed else 'NOT NOTICED'}: {mistake.what}", flush=True)
        if not noticed:
            found.append(mistake)
    return found


def changed(mistake: Mistake) -> str:
    """Return the text of the module with the mistake in it."""
    text = (SERVER / mistake.module).read_text(encoding="utf-8")
    assert text.count(mistake.before) == 1, f"{mistake.module} has changed: {mistake.what}"
    return text.replace(mistake.before, mistake.after)


def _test(mistake: Mistake) -> int:
    """Return the exit code of pytest; 1 if the test failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", mistake.test, "-k", mistake.named]
    environment = {**os.environ, "PYTHONPATH": str(COPY)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False).returncode
