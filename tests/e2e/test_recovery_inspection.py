"""What an inspection shows, what a snapshot does not, and what is on disk before anything is answered (A1, A4, B3)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from steadyhand_protocol import wire
from steadyhand_protocol.recovery import ResolveResult
from tests.support.raw_client import ErrorAnswer
from tests.support.recovered import PRESENT, Client, Json, Lives, lives_in, never, only, resolution
from tests.support.systems import linux_only

pytestmark = linux_only

SECRET = "correct horse battery staple"
WRITE = f'write a.txt with "{SECRET}\\n"'
CONTENT = "workspace/textDocumentContent"


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    with lives_in(tmp_path) as found:
        found.place.write("a.txt", "old\n")
        yield found


def doubtful(lives: Lives, text: str = WRITE, settle: str = "ask", **more: Json) -> tuple[str, Client, str]:
    """Session, client, attempt."""
    session_id = lives.die(text, PRESENT, settle="ask")
    client = lives.start(*more.values(), settle="ask")
    return session_id, client, only(client.snapshot(session_id))["attemptId"]


# --- the snapshot ---------------------------------------------------------------------------------------------------


def test_no_arguments_in_snapshots(lives: Lives) -> None:
    """A1: neither in the answer nor in what is told nor in a diagnostic; the inspection has them (A4)."""
    session_id, client, attempt_id = doubtful(lives)
    looked = client.inspected(session_id, attempt_id)
    assert SECRET in looked["inspection"]["arguments"]
    client.squiggle("a.txt", "uncertain-write")
    shown = [client.snapshot(session_id), looked["snapshot"], client.command("recovery.list")]
    shown += client.notifications("steadyhand/recovery/changed")
    shown += client.notifications("textDocument/publishDiagnostics") + client.notifications("window/showMessage")
    shown += client.code_actions("a.txt")
    assert SECRET not in json.dumps(shown)


def test_arguments_of_an_inspection_reach_no_prompt(lives: Lives) -> None:
    """A4: after an inspection and a confirm, nothing of what was shown stands in what goes to the model: no record
    but the inspection knows of it, and that holds digests."""
    session_id, client, attempt_id = doubtful(lives)
    before = json.dumps(lives.records(session_id)).count(SECRET)
    looked = client.inspected(session_id, attempt_id)
    client.resolve(looked["snapshot"], attempt_id, "confirm", looked["inspection"]["inspectionId"])
    assert json.dumps(lives.records(session_id)).count(SECRET) == before


def test_changes_are_told(lives: Lives) -> None:
    """A1, wire.md: `recovery/changed` with each new revision and only then; lenses are refreshed where supported."""
    session_id = lives.die(WRITE, PRESENT, settle="ask")
    client = lives.start(settle="ask", capabilities={"workspace": {"codeLens": {"refreshSupport": True}}})
    client.answer_with("workspace/codeLens/refresh", lambda _: None)
    client.squiggle("a.txt", "uncertain-write")
    attempt_id = only(client.snapshot(session_id))["attemptId"]
    looked = client.inspected(session_id, attempt_id)
    done = client.resolve(looked["snapshot"], attempt_id, "waive", looked["inspection"]["inspectionId"])
    client.squiggle("a.txt", None)
    revisions = [told["revision"] for told in client.notifications("steadyhand/recovery/changed")]
    assert len(revisions) == len(set(revisions)) == 3
    assert revisions[1:] == [looked["snapshot"]["revision"], done["snapshot"]["revision"]]
    assert client.snapshot(session_id) == done["snapshot"]
    refreshed = [one for one in client.messages if one.get("method") == "workspace/codeLens/refresh"]
    assert len(refreshed) >= 2


def test_lenses_are_refreshed_only_where_supported(lives: Lives) -> None:
    """wire.md."""
    session_id, client, attempt_id = doubtful(lives)
    client.inspected(session_id, attempt_id)
    client.squiggle("a.txt", "uncertain-write")
    assert not [one for one in client.messages if one.get("method") == "workspace/codeLens/refresh"]


# --- stored before it is answered -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "when", "stored"),
    [("write", "before", False), ("write", "half", False), ("write", "after", True), ("sync", "after", True)],
)
def test_an_inspection_is_stored_before_it_is_answered(lives: Lives, verb: str, when: str, stored: bool) -> None:
    """A4, J2: killed while it is recorded: no answer ever came, and only what is on disk counts afterwards."""
    session_id = lives.die(WRITE, PRESENT, settle="ask")
    first = lives.start(settle="ask")
    attempt_id = only(first.snapshot(session_id))["attemptId"]
    assert first.shut_down() == 0
    fault: Json = {"verb": verb, "target": "journal.jsonl", "when": when}
    if verb == "write":
        fault["carries"] = "inspection"
    client = lives.start(fault, settle="ask")
    snapshot = client.snapshot(session_id)
    asked = client.ask("steadyhand/recovery/resolve", resolution(snapshot, attempt_id, "inspect"))
    assert client.wait_exit(20) == -signal.SIGKILL
    assert client.answers(asked) == []
    assert bool(lives.having(session_id, "inspection")) is stored
    later = lives.start(settle="ask")
    call = only(later.snapshot(session_id))
    assert call["actions"] == ["inspect"], "an inspection of an earlier epoch is no basis for a decision"


# --- what lasts -----------------------------------------------------------------------------------------------------


def test_what_cannot_be_synced_is_not_settled(lives: Lives) -> None:
    """B3: the sync comes before the verdict; if it fails the check is `unknown` and the effect stays unresolved."""
    session_id = lives.die(WRITE, PRESENT)
    client = lives.start({"verb": "sync", "target": "a.txt", "then": "EIO"})
    client.squiggle("a.txt", "uncertain-write")
    call = only(client.snapshot(session_id))
    assert (call["check"], call["state"]) == ("unknown", "unknown")
    assert lives.having(session_id, "settlement") == []
    assert client.shut_down() == 0
    assert lives.start().squiggle("a.txt", "checked-write"), "once it can be synced it is settled"


def test_a_confirm_that_cannot_be_synced(lives: Lives) -> None:
    """B3, A5: what was found proves nothing then; the person may still give their word, on the new inspection."""
    session_id, client, attempt_id = doubtful(
        lives, fault={"verb": "sync", "target": "a.txt", "turn": 2, "then": "EIO", "forGood": False}
    )
    looked = client.inspected(session_id, attempt_id)
    seen = looked["inspection"]["inspectionId"]
    refused = client.refusal(lambda: client.resolve(looked["snapshot"], attempt_id, "confirm", seen))
    assert refused.data["kind"] == "inspectFirst"
    assert refused.data["inspection"]["check"] == "unknown"
    assert lives.having(session_id, "settlement") == []
    new = refused.data["inspection"]["inspectionId"]
    done = client.resolve(client.snapshot(session_id), attempt_id, "confirm", new)
    assert done["snapshot"]["settled"][0]["settled"] == "user_confirmed"


# --- commands -------------------------------------------------------------------------------------------------------


def survivors_after_a_kill(lives: Lives) -> tuple[str, Client, Json]:
    """A command whose child left its session, a server that is killed meanwhile, and the inspection afterwards."""
    client = lives.start()
    session_id = client.own("session/create")["sessionId"]
    client.ask_turn("run setsid sleep 300 & echo up > up.txt; sleep 300", sessionId=session_id)
    client.wait_for(lambda: True if (lives.place.workspace / "up.txt").exists() else None, 20)
    client.process.kill()
    client.wait_exit()
    client = lives.start()
    snapshot = client.snapshot(session_id)
    asked = resolution(snapshot, only(snapshot)["attemptId"], "inspect")
    result = client.request("steadyhand/recovery/resolve", asked)
    return session_id, client, result


def end(result: Json) -> None:
    for one in result["inspection"]["survivors"]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one["pid"], signal.SIGKILL)


def test_survivors_of_a_command_are_found(lives: Lives) -> None:
    """A4, E5: what carries the attempt's mark is named by pid, start and command; the changed files are a hint; the
    effect is unknown, and stays so."""
    session_id, client, result = survivors_after_a_kill(lives)
    try:
        wire.structure(ResolveResult, result)
        looked = result["inspection"]
        commands = [one["command"] for one in looked["survivors"]]
        assert any(command.startswith("sleep 300") for command in commands)
        assert looked["state"] == "unknown"
        assert looked["changed"] == ["up.txt"]
        assert "still live" in looked["text"]
        (record,) = lives.having(session_id, "inspection")
        assert [one["pid"] for one in record["survivors"]] == [one["pid"] for one in looked["survivors"]]
        assert only(client.snapshot(session_id))["actions"] == ["inspect", "confirm", "reject", "waive"]
    finally:
        end(result)


def test_many_changed_files_are_a_bounded_hint(lives: Lives) -> None:
    """A4, I13: at most 200 names and a count."""
    made = "for n in $(seq 205); do : > f$n.txt; done; echo done"
    session_id = lives.die(f"run {made}", PRESENT)
    client = lives.start()
    attempt_id = only(client.snapshot(session_id))["attemptId"]
    looked = client.inspected(session_id, attempt_id)["inspection"]
    assert len(looked["changed"]) == 200
    assert looked["changedMore"] == 5


# --- texts ----------------------------------------------------------------------------------------------------------


NAME = "ein ordner/ü #1 100%.txt"


def text_of(client: Client, uri: str) -> str:
    result: Json = client.request(CONTENT, {"uri": uri})
    return str(result["text"])


def test_three_texts_by_address(lives: Lives) -> None:
    """A4, wire.md: before, intended and now as virtual documents; the path percent-encoded, `/` kept."""
    lives.place.write(NAME, "vorher\n")
    session_id, client, attempt_id = doubtful(lives, f'write "{NAME}" with "gemeint\\n"')
    lives.place.write(NAME, "jetzt\n")
    (path,) = client.inspected(session_id, attempt_id)["inspection"]["paths"]
    for side, text in (("before", "vorher\n"), ("intended", "gemeint\n"), ("now", "jetzt\n")):
        uri = f"steadyhand:/attempt/{attempt_id}/{side}/{quote(NAME)}"
        assert path[side]["uri"] == uri
        assert text_of(client, uri) == text
        assert path[side]["exists"]
        assert path[side]["bytes"] == len(text)


@pytest.mark.parametrize(
    "uri",
    [
        "steadyhand:/attempt/{id}/later/a.txt",
        "steadyhand:/attempt/{id}/now/b.txt",
        "steadyhand:/attempt/{id}/now/../a.txt",
        "steadyhand:/attempt/{id}/now",
        "steadyhand:/attempt/ffffffffffffffffffffffffffffffff/now/a.txt",
        "file:/attempt/{id}/now/a.txt",
        "steadyhand://[/now/a.txt",
        "",
    ],
)
def test_no_such_text(lives: Lives, uri: str) -> None:
    """wire.md: what is no document of an attempt is refused as such; no other file is read by it."""
    _, client, attempt_id = doubtful(lives)
    lives.place.write("b.txt", "not shown\n")
    with pytest.raises(ErrorAnswer) as refused:
        client.request(CONTENT, {"uri": uri.replace("{id}", attempt_id)})
    assert refused.value.code == -32602


def test_a_text_that_cannot_be_made_again_is_not_shown(lives: Lives) -> None:
    """A4: without the content before, the intended text of an edit cannot be proved: no address, no diff, no text."""
    lives.place.write("a.txt", "one\ntwo\n")
    session_id, client, attempt_id = doubtful(lives, "replace one with three in a.txt")
    for kept in (lives.place.session(session_id) / "checkpoints").iterdir():
        kept.write_bytes(b"something else\n")
    looked = client.inspected(session_id, attempt_id)["inspection"]
    (path,) = looked["paths"]
    assert "uri" not in path["before"]
    assert "uri" not in path["intended"]
    assert path["now"]["uri"]
    assert path["intended"]["exists"]
    assert "diff" not in looked
    with pytest.raises(ErrorAnswer):
        text_of(client, path["now"]["uri"].replace("/now/", "/intended/"))
    assert looked["check"] == "satisfied", "digests decide, not texts (W2)"


@pytest.mark.parametrize(
    ("able", "asked"),
    [({"textDocumentContent": {"dynamicRegistration": True}}, True), ({"textDocumentContent": {}}, False), ({}, False)],
)
def test_registered_only_where_the_client_can(lives: Lives, able: Json, asked: bool) -> None:
    """wire.md: dynamically, for the scheme `steadyhand`."""
    client = lives.start(capabilities={"workspace": able})
    if not asked:
        never(lambda: client.server_requests or None, client)
        return
    (registration,) = client.question("client/registerCapability")["params"]["registrations"]
    assert registration["method"] == CONTENT
    assert registration["registerOptions"] == {"schemes": ["steadyhand"]}
