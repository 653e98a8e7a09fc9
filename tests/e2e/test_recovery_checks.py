"""The four answers of a check, each reached through a real kill, and what can be done with it (W2, B3, A4, A5, A8).

The server is killed in the middle of a write, the world is changed where the check needs it, and the next life is asked
over the wire as any LSP client would ask.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from steadyhand.core.recovery import SettleSetting
from tests.support.recovered import ABSENT, PRESENT, Client, Json, Lives, lives_in, only, resolution
from tests.support.systems import linux_only

pytestmark = linux_only

BEFORE = "one\ntwo\nthree\n"
WRITE = 'write a.txt with "one\\nTWÖ\\nthree\\n"'
INTENDED = "one\nTWÖ\nthree\n"
OF_NOW = "This speaks of the file now, not of what happened."
TITLE = "write_file: a.txt"


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    with lives_in(tmp_path) as found:
        found.place.write("a.txt", BEFORE)
        yield found


def nothing(_: Path) -> None:
    """The world stays as the killed server left it."""


def somebody_wrote(path: Path) -> None:
    path.write_text("one\ntwo\nthird\n")


def somebody_removed(path: Path) -> None:
    path.unlink()


def folder_in_its_place(path: Path) -> None:
    path.unlink()
    path.mkdir()


def link_leads_elsewhere(path: Path) -> None:
    (path.parent / "other.txt").write_text(INTENDED)
    path.unlink()
    path.symlink_to("other.txt")


def pipe_in_its_place(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@attrs.frozen
class Story:
    """One way to a check: where the server dies, what happens then, what is found, at which line."""

    fault: Json
    then: Callable[[Path], None]
    check: str
    state: str
    says: str
    line: int
    width: int


STORIES = {
    "satisfied": Story(
        PRESENT, nothing, "satisfied", "postcondition_satisfied", "the file has the intended content now", 0, 3
    ),
    "unchanged": Story(ABSENT, nothing, "unchanged", "absent_fenced", "the file is now as it was before", 1, 3),
    "conflict": Story(PRESENT, somebody_wrote, "conflict", "unknown", "neither as it was before nor as intended", 1, 3),
    "deleted": Story(
        PRESENT, somebody_removed, "conflict", "unknown", "neither as it was before nor as intended", 0, 0
    ),
    "a folder": Story(
        PRESENT, folder_in_its_place, "unknown", "unknown", "it cannot be told how the file is now", 0, 0
    ),
    "a link": Story(PRESENT, link_leads_elsewhere, "unknown", "unknown", "it cannot be told how the file is now", 0, 0),
    "a pipe": Story(PRESENT, pipe_in_its_place, "unknown", "unknown", "it cannot be told how the file is now", 0, 0),
}


def lived(lives: Lives, story: Story, settle: SettleSetting) -> tuple[str, Client]:
    """The killed life and what happened then; the session, and the life after it."""
    session_id = lives.die(WRITE, story.fault, settle=settle)
    story.then(lives.place.workspace / "a.txt")
    return session_id, lives.start(settle=settle)


@pytest.mark.parametrize("name", STORIES)
def test_each_check_and_its_doubt_at_the_file(lives: Lives, name: str) -> None:
    """W2, A8, B3 with `ask`: nothing is settled; code, severity, sentence, place and data of the diagnostic; Inspect
    alone is offered; the inspection says what was found, and that it speaks of now (W7) [I9]."""
    story = STORIES[name]
    session_id, client = lived(lives, story, "ask")
    found = client.squiggle("a.txt", "uncertain-write")
    snapshot = client.snapshot(session_id)
    call = only(snapshot)
    assert found == {
        "range": {
            "start": {"line": story.line, "character": 0},
            "end": {"line": story.line, "character": story.width},
        },
        "message": found["message"],
        "severity": 2,
        "code": "uncertain-write",
        "source": "steadyhand",
        "data": {"sessionId": session_id, "attemptId": call["attemptId"]},
    }
    assert story.says in found["message"]
    assert OF_NOW in found["message"]
    assert (call["state"], call["check"], call["actions"]) == ("unknown", story.check, ["inspect"])
    assert "settled" not in call
    assert "inspection" not in call
    looked = client.inspected(session_id, call["attemptId"])["inspection"]
    assert (looked["check"], looked["state"]) == (story.check, story.state)
    assert [path["check"] for path in looked["paths"]] == [story.check]
    assert story.says in looked["text"]
    if story.check == "unknown":
        assert looked["paths"][0]["reason"] in looked["text"], "why it cannot be told is said"


@pytest.mark.parametrize(("name", "settled"), [("satisfied", "checked_present"), ("unchanged", "checked_absent")])
def test_what_is_proved_is_settled_and_stays_visible(lives: Lives, name: str, settled: str) -> None:
    """B3 with `checked`: settled by proof, recorded once, shown as `checked-write` until the next turn starts."""
    session_id, client = lived(lives, STORIES[name], "checked")
    found = client.squiggle("a.txt", "checked-write")
    assert found["severity"] == 3
    assert found["range"]["start"]["line"] == STORIES[name].line
    snapshot = client.snapshot(session_id)
    (call,) = snapshot["settled"]
    assert snapshot["calls"] == []
    assert (call["state"], call["settled"], call["actions"]) == ("settled", settled, ["inspect"])
    assert snapshot["statistics"]["checked"] == snapshot["statistics"]["unknown"] == 1
    (record,) = lives.having(session_id, "settlement")
    assert (record["settled"], record["by"]) == (settled, "recovery")
    (told,) = client.notifications("window/showMessage")
    assert TITLE in told["message"]
    assert "settled" in told["message"]
    assert client.say("say on", sessionId=session_id)["reason"] == "done"
    client.squiggle("a.txt", None)
    assert client.snapshot(session_id)["settled"] == []


@pytest.mark.parametrize(("name", "happened"), [("satisfied", 1), ("unchanged", 0)])
def test_what_is_settled_holds_nothing_back(lives: Lives, name: str, happened: int) -> None:
    """B3, N2: the same call runs again without a question; only what is known to have happened makes a new key."""
    session_id, client = lived(lives, STORIES[name], "checked")
    client.squiggle("a.txt", "checked-write")
    ended = client.say(WRITE, sessionId=session_id)
    assert ended["reason"] == "done"
    assert "done: 1 of 1" in ended["text"]
    assert (lives.place.workspace / "a.txt").read_text() == INTENDED
    first, second = lives.having(session_id, "intent")
    assert (first["key"] == second["key"]) is not bool(happened)
    assert client.server_requests == []


CONFIRMED = {
    "satisfied": "checked_present",
    "unchanged": "checked_absent",
    "conflict": "user_confirmed",
    "deleted": "user_confirmed",
    "a folder": "user_confirmed",
    "a link": "user_confirmed",
    "a pipe": "user_confirmed",
}


@pytest.mark.parametrize("name", CONFIRMED)
def test_confirm_settles_as_the_inspection_found_it(lives: Lives, name: str) -> None:
    """A5, A4: proved present, proved absent, else the user's word; the settlement names the inspection it rests on,
    which stands before it (J2), and is not a result; the squiggle goes or becomes `checked-write`."""
    session_id, client = lived(lives, STORIES[name], "ask")
    attempt_id = only(client.snapshot(session_id))["attemptId"]
    looked = client.inspected(session_id, attempt_id)
    restore = [] if STORIES[name].check == "unchanged" else ["restore"]
    assert only(looked["snapshot"])["actions"] == ["inspect", "confirm", "reject", "waive", *restore]
    results = lives.having(session_id, "result")
    done = client.resolve(looked["snapshot"], attempt_id, "confirm", looked["inspection"]["inspectionId"])
    assert done["snapshot"]["calls"] == []
    (call,) = done["snapshot"]["settled"]
    assert call["settled"] == CONFIRMED[name]
    kinds = [record["kind"] for record in lives.records(session_id)]
    assert kinds.index("inspection") < kinds.index("settlement")
    (record,) = lives.having(session_id, "settlement")
    assert record["inspectionId"] == looked["inspection"]["inspectionId"]
    assert (record["settled"], record["by"]) == (CONFIRMED[name], "user")
    assert lives.having(session_id, "result") == results
    proved = CONFIRMED[name] != "user_confirmed"
    client.squiggle("a.txt", "checked-write" if proved else None)
    counted = done["snapshot"]["statistics"]
    assert (counted["checked"], counted["confirmed"]) == ((1, 0) if proved else (0, 1))


def test_reject_frees_nothing_and_says_so(lives: Lives) -> None:
    """A5: recorded, still uncertain and marked; not offered twice; the other ways stay."""
    session_id, client = lived(lives, STORIES["conflict"], "checked")
    attempt_id = only(client.snapshot(session_id))["attemptId"]
    looked = client.inspected(session_id, attempt_id)
    inspection_id = looked["inspection"]["inspectionId"]
    rejected = client.resolve(looked["snapshot"], attempt_id, "reject", inspection_id)
    call = only(rejected["snapshot"])
    assert (call["state"], call["actions"]) == ("rejected", ["inspect", "confirm", "waive", "restore"])
    client.wait_for(
        lambda: "You rejected a repeat." in client.squiggle("a.txt", "uncertain-write")["message"] or None, 10
    )
    refused = client.refusal(lambda: client.resolve(rejected["snapshot"], attempt_id, "reject", inspection_id))
    assert refused.data["kind"] == "notOffered"
    waived = client.resolve(rejected["snapshot"], attempt_id, "waive", inspection_id)
    assert waived["snapshot"]["calls"] == []
    assert waived["snapshot"]["statistics"] == {
        "unknown": 1, "checked": 0, "confirmed": 0, "rejected": 1, "waived": 1, "retried": 0, "restored": 0,
        "heldBack": 0,
    }  # fmt: skip


def test_waive_frees_the_scope_and_tells_the_model(lives: Lives) -> None:
    """A5: the user goes on without knowing; a later write runs, and the notice says "unknown, waived by the user"."""
    session_id, client = lived(lives, STORIES["conflict"], "checked")
    attempt_id = only(client.snapshot(session_id))["attemptId"]
    looked = client.inspected(session_id, attempt_id)
    client.resolve(looked["snapshot"], attempt_id, "waive", looked["inspection"]["inspectionId"])
    client.squiggle("a.txt", None)
    assert client.say("write a.txt with new", sessionId=session_id)["changed"] == [
        {"path": "a.txt", "change": "modified"}
    ]
    notices = [record["text"] for record in lives.having(session_id, "notice")]
    assert any("unknown, waived by the user" in text for text in notices)


def test_confirm_when_the_file_changed_since(lives: Lives) -> None:
    """A5, wire.md "inspectFirst": nothing is settled; the answer carries a new inspection, whose id works then [I8]."""
    session_id, client = lived(lives, STORIES["satisfied"], "ask")
    attempt_id = only(client.snapshot(session_id))["attemptId"]
    looked = client.inspected(session_id, attempt_id)
    somebody_wrote(lives.place.workspace / "a.txt")
    seen = looked["inspection"]["inspectionId"]
    refused = client.refusal(lambda: client.resolve(looked["snapshot"], attempt_id, "confirm", seen))
    assert refused.data["kind"] == "inspectFirst"
    new = refused.data["inspection"]
    assert new["check"] == "conflict"
    assert new["inspectionId"] != seen
    assert lives.having(session_id, "settlement") == []
    done = client.resolve(client.snapshot(session_id), attempt_id, "confirm", new["inspectionId"])
    assert done["snapshot"]["settled"][0]["settled"] == "user_confirmed"


def test_a_save_that_slipped_in_stays_a_conflict(lives: Lives) -> None:
    """W9: what lies under the attempt's temporary name and is not its own is kept and named, also by an inspection,
    whatever stands under the path itself."""
    session_id = lives.die(WRITE, ABSENT)
    (started,) = lives.having(session_id, "started")
    temporary = lives.place.workspace / started["evidence"][0]["temporary"]
    temporary.write_text("somebody's save\n")
    client = lives.start()
    call = only(client.snapshot(session_id))
    assert call["check"] == "conflict"
    looked = client.inspected(session_id, call["attemptId"])
    assert looked["inspection"]["check"] == "conflict"
    assert temporary.name in looked["inspection"]["text"]
    temporary.unlink()
    seen = looked["inspection"]["inspectionId"]
    refused = client.refusal(lambda: client.resolve(looked["snapshot"], call["attemptId"], "confirm", seen))
    assert refused.data["inspection"]["check"] == "unchanged"


def test_a_command_stays_unknown(lives: Lives) -> None:
    """F4, E5, A4: nothing can be checked; no diagnostic; changed files are a hint; only the user's word settles it."""
    session_id = lives.die("run echo two > b.txt; sleep 0.2; echo done", PRESENT)
    client = lives.start()
    client.notification("window/showMessage", 20)
    call = only(client.snapshot(session_id))
    assert "check" not in call
    assert call["scope"] == {"everything": True}
    assert call["title"] == "run_command: echo"
    looked = client.inspected(session_id, call["attemptId"])["inspection"]
    assert looked["state"] == "unknown"
    assert looked["paths"] == []
    assert "check" not in looked
    assert looked["changed"] == ["b.txt"]
    assert looked["changedMore"] == 0
    assert looked["survivors"] == []
    assert "would not be seen" in looked["text"]
    done = client.resolve(client.snapshot(session_id), call["attemptId"], "confirm", looked["inspectionId"])
    assert done["snapshot"]["settled"][0]["settled"] == "user_confirmed"
    assert client.diagnostics("a.txt") is None
    assert client.diagnostics("b.txt") is None


def test_a_new_file_in_a_new_folder(lives: Lives) -> None:
    """W2, A8: the URI of a name with blanks, an umlaut and `#` is the editor's own spelling; the doubt stands there."""
    name = "ein ordner/ü #1.txt"
    session_id = lives.die(f'write "{name}" with "hallo\\n"', PRESENT, settle="ask")
    assert (lives.place.workspace / name).read_text() == "hallo\n"
    client = lives.start(settle="ask")
    client.squiggle(name, "uncertain-write")
    assert only(client.snapshot(session_id))["scope"] == {"paths": [name]}
    shutil.rmtree(lives.place.workspace / "ein ordner")
    looked = client.inspected(session_id, only(client.snapshot(session_id))["attemptId"])["inspection"]
    assert looked["check"] == "unchanged", "it was not there before either"


def test_params_name_what_was_seen(lives: Lives) -> None:
    """A2: the names of wire.md; nothing else is needed, and `inspectionId` only for a decision."""
    session_id, client = lived(lives, STORIES["conflict"], "checked")
    snapshot = client.snapshot(session_id)
    asked = resolution(snapshot, only(snapshot)["attemptId"], "inspect")
    assert set(asked) == {"sessionId", "runtimeEpoch", "revision", "attemptId", "action"}
    assert set(client.own("recovery/resolve", **asked)) == {"snapshot", "inspection"}
