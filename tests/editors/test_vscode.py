"""The extension in the real VS Code, before a real browser: what a user does, and sees.

The stories stand in editor-client/test/editor/stories and are told once, in one editor, two at a time; each test here
asks for the outcome of one. Their pictures are kept in `.scratch/pictures`, with one of each window in which a story
failed. The vsix is built from the tree, and the first story runs the server that it carries, with nothing else of
ours on the machine.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from tests.editors import place
from tests.support.systems import linux_only
from tests.support.tools import require_tool

stories_s_max = 900.0
install_and_tell_s_max = 1_800

pytestmark = [linux_only, pytest.mark.timeout(install_and_tell_s_max)]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Story → "ok", or what went wrong; `console`: what the page reported. Told once for all processes of a run."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        return tell()
    shared = tmp_path_factory.getbasetemp().parent / f"told-{run}.json"
    with FileLock(shared.with_suffix(".lock"), timeout=install_and_tell_s_max):
        if not shared.exists():
            shared.write_text(json.dumps(tell()), encoding="utf-8")
    outcomes: dict[str, str] = json.loads(shared.read_text(encoding="utf-8"))
    return outcomes


def tell() -> dict[str, str]:
    node, chromium = require_tool("node"), require_tool("chromium")
    with ThreadPoolExecutor(2) as side_by_side:
        building = side_by_side.submit(place.vsix, sys.executable)
        folder, editors_node = side_by_side.submit(place.code_server).result()
        vsix = building.result()
    place.PICTURES.mkdir(parents=True, exist_ok=True)
    for old in place.PICTURES.glob("*.png"):
        old.unlink()
    command = [
        node, str(place.CLIENT / "test" / "editor" / "run.mjs"), "--code-server", str(folder),
        "--node", str(editors_node), "--vsix", str(vsix), "--python", sys.executable,
        "--pictures", str(place.PICTURES), "--chromium", chromium,
    ]  # fmt: skip
    done = subprocess.run(
        command, env=place.OWN_ENVIRONMENT, capture_output=True, text=True, timeout=stories_s_max, check=False
    )
    reports: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    outcomes: dict[str, str] = {report["story"]: report["outcome"] for report in reports}
    if "console" not in outcomes:  # the stage itself fell
        outcomes["console"] = done.stdout[-3000:] + done.stderr[-3000:]
    return outcomes


def holds(told: Mapping[str, str], story: str) -> None:
    outcome = told.get(story, f"not told: {told['console']}")
    if outcome != "ok":
        pytest.fail(outcome, pytrace=False)


def test_a_fresh_machine_comes_to_a_changed_file(told: Mapping[str, str]) -> None:
    """Carried server, practice model: nothing is written before the answer; the end names the file (P5, G6)."""
    holds(told, "first")


def test_a_rejected_call_changes_nothing(told: Mapping[str, str]) -> None:
    """Rejected with a note; the card says that it did not run (C6)."""
    holds(told, "reject")


def test_a_doubt_is_settled_by_the_lightbulb(told: Mapping[str, str]) -> None:
    """Killed in mid-write: squiggle, Inspect, diff, and only then Confirm; nothing is repeated (A8, A5)."""
    holds(told, "lightbulb")


def test_a_doubt_is_settled_in_the_list(told: Mapping[str, str]) -> None:
    """Rejecting settles nothing and says so; Continue without knowing does (A5, A8)."""
    holds(told, "list")


def test_a_held_back_call_asks_with_the_effect_it_waits_for(told: Mapping[str, str]) -> None:
    """The question shows the uncertain effect and its ways on; then the call is asked for as usual (B4)."""
    holds(told, "held")


def test_unsaved_text_is_never_overwritten(told: Mapping[str, str]) -> None:
    """“Save first”, with a button that saves and goes on (V2)."""
    holds(told, "unsaved")


def test_draft_and_queue_survive_a_reload(told: Mapping[str, str]) -> None:
    """The draft in its box, the queue in order and paused, then resumed (D2, S4; case 76, case 77)."""
    holds(told, "reload")


def test_a_killed_or_silent_server_is_said_within_two_seconds(told: Mapping[str, str]) -> None:
    """Stopped, then killed again and again: a clear state, a restart, at last a manual one (D4; case 40)."""
    holds(told, "killed")


def test_a_late_inspection_changes_nothing_of_another_session(told: Mapping[str, str]) -> None:
    """The session was switched before the answer came (A9; case 79)."""
    holds(told, "late")


def test_a_long_session_opens_soon_and_scrolls(told: Mapping[str, str]) -> None:
    """2,000 messages: shown in under 2 s, "restoring" said meanwhile, and back to the first by scrolling (S5)."""
    holds(told, "long")


def test_a_question_comes_as_a_message_where_the_chat_is_not_seen(told: Mapping[str, str]) -> None:
    """The modal fallback; what is answered there is the answer."""
    holds(told, "modal")


def test_a_prompt_without_an_answer_is_back_or_there_and_never_twice(told: Mapping[str, str]) -> None:
    """Killed between send and acknowledgement, before and after it was durable (D1, D2; case 40)."""
    holds(told, "outbox")


def test_restore_retry_and_end_them(told: Mapping[str, str]) -> None:
    """The content before comes back; what is proved absent is tried again; survivors are ended (A5, F2, E5)."""
    holds(told, "ways")


def test_the_keyboard_is_enough(told: Mapping[str, str]) -> None:
    """Ask, answer, complete, stop, choose a session; the focus is never lost."""
    holds(told, "keyboard")


def test_sessions_are_listed_renamed_exported_closed_and_deleted(told: Mapping[str, str]) -> None:
    """And the mode that is chosen decides what asks (S3, S5, G2)."""
    holds(told, "sessions")


def test_a_selection_and_a_file_are_attached(told: Mapping[str, str]) -> None:
    """Chips in the box, over a reload, and in the message (G5, D2)."""
    holds(told, "attach")


def test_allowed_in_this_workspace_is_not_asked_again(told: Mapping[str, str]) -> None:
    """In another session of it; the list of what is remembered shows it (G2)."""
    holds(told, "remembered")


def test_a_key_goes_from_the_secret_store_to_the_provider(told: Mapping[str, str]) -> None:
    """Without it nothing is asked, and the way on is said; with it the provider gets it (P1)."""
    holds(told, "secret")


def test_a_folder_that_is_not_trusted_is_only_read(told: Mapping[str, str]) -> None:
    """Until the user trusts it (G2)."""
    holds(told, "untrusted")


def test_a_python_that_cannot_be_run_is_said(told: Mapping[str, str]) -> None:
    """One message, with the setting's name, and Start again."""
    holds(told, "python")


def test_the_page_reports_no_error(told: Mapping[str, str]) -> None:
    """Over all stories: nothing of ours in the browser's console."""
    holds(told, "console")


def test_every_story_is_asked_for(told: Mapping[str, str]) -> None:
    """A story that nobody asks for would fail unseen."""
    asked = set(re.findall(r'holds\(told, "(\w+)"\)', Path(__file__).read_text(encoding="utf-8")))
    assert set(told) == asked
