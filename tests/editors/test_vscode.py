"""The extension in the real VS Code, with a real browser: what a user does and sees.

The scenarios are in editor-client/test/editor/scenarios. They are played once, in one editor, two at a time; each test
here asserts the outcome of one. Their pictures are kept in `.scratch/pictures`, with one of each window in which a
scenario failed. A scenario that ran out of time is played once more; a warning then says what was late. The vsix is
built from the tree, and the first scenario runs the server that it contains, with nothing else of ours on the machine.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from tests.editors import install
from tests.support.systems import linux_only
from tests.support.tools import require_tool

scenarios_s_max = 900.0
install_and_play_s_max = 1_800

pytestmark = [
    linux_only,
    pytest.mark.timeout(install_and_play_s_max),
    pytest.mark.filterwarnings("default:.* ran out of time at first"),
]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Scenario → "ok", or what went wrong; `console`: what the page reported. Played once for all processes of a test
    run."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        return play()
    shared = tmp_path_factory.getbasetemp().parent / f"outcomes-{run}.json"
    with FileLock(shared.with_suffix(".lock"), timeout=install_and_play_s_max):
        if not shared.exists():
            shared.write_text(json.dumps(play()), encoding="utf-8")
    outcomes: dict[str, str] = json.loads(shared.read_text(encoding="utf-8"))
    return outcomes


def play() -> dict[str, str]:
    node, chromium = require_tool("node"), require_tool("chromium")
    with ThreadPoolExecutor(2) as side_by_side:
        building = side_by_side.submit(install.vsix, sys.executable)
        folder, editors_node = side_by_side.submit(install.code_server).result()
        vsix = building.result()
    install.PICTURES.mkdir(parents=True, exist_ok=True)
    for old in install.PICTURES.glob("*.png"):
        old.unlink()
    command = [
        node, str(install.CLIENT / "test" / "editor" / "run.mjs"), "--code-server", str(folder),
        "--node", str(editors_node), "--vsix", str(vsix), "--python", sys.executable,
        "--pictures", str(install.PICTURES), "--chromium", chromium,
    ]  # fmt: skip
    done = subprocess.run(
        command, env=install.OWN_ENVIRONMENT, capture_output=True, text=True, timeout=scenarios_s_max, check=False
    )
    reports: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for report in reports:
        if "first" in report:
            warnings.warn(f"{report['scenario']} ran out of time at first: {report['first']}", stacklevel=2)
    outcomes: dict[str, str] = {report["scenario"]: report["outcome"] for report in reports}
    if "console" not in outcomes:  # the runner itself failed
        outcomes["console"] = done.stdout[-3000:] + done.stderr[-3000:]
    return outcomes


def holds(outcomes: Mapping[str, str], scenario: str) -> None:
    outcome = outcomes.get(scenario, f"not played: {outcomes['console']}")
    if outcome != "ok":
        pytest.fail(outcome, pytrace=False)


def test_first_use_changes_a_file_after_the_answer(outcomes: Mapping[str, str]) -> None:
    """The bundled server and the practice model: nothing is written before the answer; the end names the file (P5,
    G6)."""
    holds(outcomes, "first")


def test_rejected_call_changes_nothing(outcomes: Mapping[str, str]) -> None:
    """Rejected with a note; the card says that the call did not run (C6)."""
    holds(outcomes, "reject")


def test_uncertain_write_is_settled_by_code_actions(outcomes: Mapping[str, str]) -> None:
    """Killed in the middle of a write: squiggle, Inspect, diff, and only then Confirm; nothing is repeated (A8, A5)."""
    holds(outcomes, "lightbulb")


def test_uncertain_write_is_settled_in_the_list(outcomes: Mapping[str, str]) -> None:
    """Reject settles nothing and says so; Continue without knowing does settle (A5, A8)."""
    holds(outcomes, "list")


def test_held_back_call_shows_the_uncertain_effect(outcomes: Mapping[str, str]) -> None:
    """The question shows the uncertain effect and what can be done about it; then the call asks for permission as usual
    (B4)."""
    holds(outcomes, "held")


def test_changes_are_marked_kept_and_undone_in_the_file(outcomes: Mapping[str, str]) -> None:
    """Keys lead from change to change, keep one and undo one; a lens undoes one beside the person's text (V4)."""
    holds(outcomes, "review")


def test_changes_are_undone_from_the_lightbulb_and_all_at_once(outcomes: Mapping[str, str]) -> None:
    """The code action at a change undoes it alone; Undo All asks first and leaves the files as they were (V4)."""
    holds(outcomes, "undo")


def test_rewind_takes_files_and_conversation_back(outcomes: Mapping[str, str]) -> None:
    """The user chooses a prompt; the files and the chat are as before it (G4)."""
    holds(outcomes, "rewind")


def test_unsaved_text_is_never_overwritten(outcomes: Mapping[str, str]) -> None:
    """“Save first”, with a button that saves and continues (V2)."""
    holds(outcomes, "unsaved")


def test_draft_and_queue_survive_a_reload(outcomes: Mapping[str, str]) -> None:
    """The draft is in its box, the queue in order and paused, then resumed (D2, S4; case 76, case 77)."""
    holds(outcomes, "reload")


def test_killed_or_silent_server_is_reported_within_two_seconds(outcomes: Mapping[str, str]) -> None:
    """Stopped, then killed again and again: a clear state, a restart, finally a manual restart (D4; case 40)."""
    holds(outcomes, "killed")


def test_late_inspection_does_not_change_another_session(outcomes: Mapping[str, str]) -> None:
    """The user switched the session before the answer came (A9; case 79)."""
    holds(outcomes, "late")


def test_session_of_2000_messages_opens_fast_and_scrolls(outcomes: Mapping[str, str]) -> None:
    """2,000 messages: shown in under 2 s, with "restoring" meanwhile, and back to the first by scrolling (S5)."""
    holds(outcomes, "long")


def test_question_is_a_message_if_the_chat_is_hidden(outcomes: Mapping[str, str]) -> None:
    """The modal fallback; the answer in it counts."""
    holds(outcomes, "modal")


def test_unanswered_prompt_is_returned_or_kept_and_never_doubled(outcomes: Mapping[str, str]) -> None:
    """Killed between send and acknowledgement, before and after the prompt was durable (D1, D2; case 40)."""
    holds(outcomes, "outbox")


def test_restore_retry_and_ending_survivors_work(outcomes: Mapping[str, str]) -> None:
    """The content before comes back; what is proved absent is retried; survivors are ended (A5, F2, E5)."""
    holds(outcomes, "ways")


def test_everything_works_with_the_keyboard(outcomes: Mapping[str, str]) -> None:
    """Ask, answer, complete, stop, choose a session; the focus is never lost."""
    holds(outcomes, "keyboard")


def test_sessions_are_listed_renamed_exported_closed_and_deleted(outcomes: Mapping[str, str]) -> None:
    """And the chosen mode decides what asks for permission (S3, S5, G2)."""
    holds(outcomes, "sessions")


def test_selection_and_file_are_attached(outcomes: Mapping[str, str]) -> None:
    """Chips in the box, kept over a reload, and in the message (G5, D2)."""
    holds(outcomes, "attach")


def test_workspace_grant_is_not_asked_again(outcomes: Mapping[str, str]) -> None:
    """In another session of the workspace; the list of grants shows it (G2)."""
    holds(outcomes, "remembered")


def test_key_goes_from_the_secret_store_to_the_provider(outcomes: Mapping[str, str]) -> None:
    """Without a key nothing is sent, and a message says what to do; with it the provider gets it (P1)."""
    holds(outcomes, "secret")


def test_session_of_a_moved_folder_goes_on_in_the_folder_of_the_window(outcomes: Mapping[str, str]) -> None:
    """The editor says that the folder is gone and offers the open one; the next prompt works there (S10; case 130)."""
    holds(outcomes, "moved")


def test_second_folder_of_a_window_is_read_by_its_name(outcomes: Mapping[str, str]) -> None:
    """A session of the first folder reads a file of the second one without a question (S11; case 131)."""
    holds(outcomes, "folders")


def test_untrusted_folder_is_only_read(outcomes: Mapping[str, str]) -> None:
    """Until the user trusts it (G2)."""
    holds(outcomes, "untrusted")


def test_restricted_folder_chooses_no_program_provider_or_permission(outcomes: Mapping[str, str]) -> None:
    """Its settings name a Python, a server, a provider, a mode and rules, and its files shadow modules: nothing of them
    counts in restricted mode, after trust, or after a restart of the server (O4; case 140)."""
    holds(outcomes, "restricted")


def test_python_that_cannot_run_is_reported(outcomes: Mapping[str, str]) -> None:
    """One message, with the name of the setting, and Start again."""
    holds(outcomes, "python")


def test_browser_console_has_no_error(outcomes: Mapping[str, str]) -> None:
    """Over all scenarios: nothing of ours in the browser's console."""
    holds(outcomes, "console")


def test_every_scenario_has_a_test(outcomes: Mapping[str, str]) -> None:
    """A scenario without a test could fail unnoticed."""
    asked = set(re.findall(r'holds\(outcomes, "(\w+)"\)', Path(__file__).read_text(encoding="utf-8")))
    assert set(outcomes) == asked
