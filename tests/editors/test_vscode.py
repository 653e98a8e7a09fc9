"""The extension in the real VS Code, before a real browser: what a user does, and sees.

The stories stand in editor-client/test/editor/stories.mjs and are told once, in one editor; each test here asks for the
outcome of one. Their pictures are kept in `.scratch/pictures`. The vsix is built from the tree, and the first story
runs the server that it carries, with nothing else of ours on the machine.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.editors import place
from tests.support.systems import linux_only
from tests.support.tools import require_tool

stories_s_max = 1_500.0
build_and_tell_s_max = 3_600

pytestmark = [linux_only, pytest.mark.timeout(build_and_tell_s_max)]


@pytest.fixture(scope="module")
def told() -> Mapping[str, str]:
    """Story → "ok", or what went wrong; `console` has an entry where the page reported an error."""
    node, chromium = require_tool("node"), require_tool("chromium")
    folder, editors_node = place.code_server()
    place.PICTURES.mkdir(parents=True, exist_ok=True)
    command = [
        node, str(place.CLIENT / "test" / "editor" / "run.mjs"), "--code-server", str(folder),
        "--node", str(editors_node), "--vsix", str(place.vsix(sys.executable)), "--python", sys.executable,
        "--pictures", str(place.PICTURES), "--chromium", chromium,
    ]  # fmt: skip
    done = subprocess.run(
        command, env=place.OWN_ENVIRONMENT, capture_output=True, text=True, timeout=stories_s_max, check=False
    )
    outcomes = dict.fromkeys(re.findall(r"^\[.*?\] ok (\w+)$", done.stdout, re.MULTILINE), "ok")
    failures = re.findall(r"^\[.*?\] FAILED (\w+): (.*(?:\n(?!\[).*)*)", done.stdout, re.MULTILINE)
    outcomes |= dict(failures)
    troubles = re.findall(r"^TROUBLE (.*)$", done.stdout, re.MULTILINE)
    return outcomes | {"console": "\n".join(troubles) or "ok", "all": done.stdout[-3000:] + done.stderr[-1000:]}


def holds(told: Mapping[str, str], story: str) -> None:
    assert told.get(story, f"not told:\n{told['all']}") == "ok"


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
    """2,000 messages: shown in under 2 s, and back to the first by scrolling."""
    holds(told, "long")


def test_a_question_comes_as_a_message_where_the_chat_is_not_seen(told: Mapping[str, str]) -> None:
    """The modal fallback; what is answered there is the answer."""
    holds(told, "modal")


def test_the_page_reports_no_error(told: Mapping[str, str]) -> None:
    """Over all stories: nothing of ours in the browser's console."""
    holds(told, "console")


def test_every_story_is_asked_for(told: Mapping[str, str]) -> None:
    """A story that nobody asks for would fail unseen."""
    asked = set(re.findall(r'holds\(told, "(\w+)"\)', Path(__file__).read_text(encoding="utf-8")))
    assert set(told) - {"all"} == asked
