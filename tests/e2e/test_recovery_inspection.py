"""What an inspection shows, what a snapshot does not show, and what is on disk before an answer (A1, A4, B3)."""

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
from tests.support.lsp_clients import TypedClient, never, only, resolution
from tests.support.process_server import PRESENT, ServerProcesses, server_processes
from tests.support.raw_client import ErrorAnswer, Json
from tests.support.systems import linux_only

pytestmark = linux_only

SECRET = "correct horse battery staple"
WRITE = f'write a.txt with "{SECRET}\\n"'
CONTENT = "workspace/textDocumentContent"


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as found:
        found.workspace.write("a.txt", "old\n")
        yield found


def make_uncertain(
    servers: ServerProcesses, text: str = WRITE, settle: str = "ask", **more: Json
) -> tuple[str, TypedClient, str]:
    """Session, client, attempt."""
    session_id = servers.kill_in_turn(text, PRESENT, settle="ask")
    client = servers.start(*more.values(), settle="ask")
    return session_id, client, only(client.snapshot(session_id))["attemptId"]


# --- the snapshot ---------------------------------------------------------------------------------------------------


def test_snapshot_contains_no_arguments(servers: ServerProcesses) -> None:
    """A1: the arguments are neither in the answer nor in notifications nor in a diagnostic; the inspection has them
    (A4)."""
    session_id, client, attempt_id = make_uncertain(servers)
    looked = client.inspected(session_id, attempt_id)
    assert SECRET in looked["inspection"]["arguments"]
    client.wait_diagnostic("a.txt", "uncertain-write")
    shown = [client.snapshot(session_id), looked["snapshot"], client.command("recovery.list")]
    shown += client.notifications("steadyhand/recovery/changed")
    shown += client.notifications("textDocument/publishDiagnostics") + client.notifications("window/showMessage")
    shown += client.code_actions("a.txt")
    assert SECRET not in json.dumps(shown)


def test_inspection_content_reaches_no_prompt(servers: ServerProcesses) -> None:
    """A4: after an inspection and a confirm, nothing that was shown goes to the model: only the inspection's record
    refers to it, and that has digests."""
    session_id, client, attempt_id = make_uncertain(servers)
    before = json.dumps(servers.records(session_id)).count(SECRET)
    looked = client.inspected(session_id, attempt_id)
    client.resolve(looked["snapshot"], attempt_id, "confirm", looked["inspection"]["inspectionId"])
    assert json.dumps(servers.records(session_id)).count(SECRET) == before


def test_recovery_changed_comes_with_each_new_revision(servers: ServerProcesses) -> None:
    """A1, docs/protocol.md: `recovery/changed` comes with each new revision and only then; lenses are refreshed where
    supported."""
    session_id = servers.kill_in_turn(WRITE, PRESENT, settle="ask")
    client = servers.start(settle="ask", capabilities={"workspace": {"codeLens": {"refreshSupport": True}}})
    client.answer_with("workspace/codeLens/refresh", lambda _: None)
    client.wait_diagnostic("a.txt", "uncertain-write")
    attempt_id = only(client.snapshot(session_id))["attemptId"]
    looked = client.inspected(session_id, attempt_id)
    done = client.resolve(looked["snapshot"], attempt_id, "waive", looked["inspection"]["inspectionId"])
    client.wait_diagnostic("a.txt", None)
    revisions = [told["revision"] for told in client.notifications("steadyhand/recovery/changed")]
    assert len(revisions) == len(set(revisions)) == 3
    assert revisions[1:] == [looked["snapshot"]["revision"], done["snapshot"]["revision"]]
    assert client.snapshot(session_id) == done["snapshot"]
    refreshed = [one for one in client.messages if one.get("method") == "workspace/codeLens/refresh"]
    assert len(refreshed) >= 2


def test_lens_refresh_is_sent_only_if_supported(servers: ServerProcesses) -> None:
    """docs/protocol.md."""
    session_id, client, attempt_id = make_uncertain(servers)
    client.inspected(session_id, attempt_id)
    client.wait_diagnostic("a.txt", "uncertain-write")
    assert not [one for one in client.messages if one.get("method") == "workspace/codeLens/refresh"]


# --- stored before it is answered -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "when", "stored"),
    [("write", "before", False), ("write", "half", False), ("write", "after", True), ("sync", "after", True)],
)
def test_inspection_is_on_disk_before_its_answer(servers: ServerProcesses, verb: str, when: str, stored: bool) -> None:
    """A4, J2: the server is killed while it records the inspection: no answer came, and only what is on disk counts
    afterwards."""
    session_id = servers.kill_in_turn(WRITE, PRESENT, settle="ask")
    first = servers.start(settle="ask")
    attempt_id = only(first.snapshot(session_id))["attemptId"]
    assert first.shut_down() == 0
    fault: Json = {"verb": verb, "target": "journal.jsonl", "when": when}
    if verb == "write":
        fault["carries"] = "inspection"
    client = servers.start(fault, settle="ask")
    snapshot = client.snapshot(session_id)
    asked = client.ask("steadyhand/recovery/resolve", resolution(snapshot, attempt_id, "inspect"))
    assert client.wait_exit() == -signal.SIGKILL
    assert client.answers(asked) == []
    assert bool(servers.having(session_id, "inspection")) is stored
    later = servers.start(settle="ask")
    call = only(later.snapshot(session_id))
    assert call["actions"] == ["inspect"], "an inspection of an earlier epoch is no basis for a decision"


# --- durability -----------------------------------------------------------------------------------------------------


def test_effect_that_cannot_be_synced_is_not_settled(servers: ServerProcesses) -> None:
    """B3: the sync comes before the verdict; if it fails, the check is `unknown` and the effect stays unresolved."""
    session_id = servers.kill_in_turn(WRITE, PRESENT)
    client = servers.start({"verb": "sync", "target": "a.txt", "then": "EIO"})
    client.wait_diagnostic("a.txt", "uncertain-write")
    call = only(client.snapshot(session_id))
    assert (call["check"], call["state"]) == ("unknown", "unknown")
    assert servers.having(session_id, "settlement") == []
    assert client.shut_down() == 0
    assert servers.start().wait_diagnostic("a.txt", "checked-write"), "once it can be synced it is settled"


def test_confirm_without_a_sync_needs_the_user_s_word(servers: ServerProcesses) -> None:
    """B3, A5: the finding proves nothing then; the user may still confirm, on the new inspection."""
    session_id, client, attempt_id = make_uncertain(
        servers, fault={"verb": "sync", "target": "a.txt", "turn": 2, "then": "EIO", "forGood": False}
    )
    looked = client.inspected(session_id, attempt_id)
    seen = looked["inspection"]["inspectionId"]
    refused = client.refusal(lambda: client.resolve(looked["snapshot"], attempt_id, "confirm", seen))
    assert refused.data["kind"] == "inspectFirst"
    assert refused.data["inspection"]["check"] == "unknown"
    assert servers.having(session_id, "settlement") == []
    new = refused.data["inspection"]["inspectionId"]
    done = client.resolve(client.snapshot(session_id), attempt_id, "confirm", new)
    assert done["snapshot"]["settled"][0]["settled"] == "user_confirmed"


# --- commands -------------------------------------------------------------------------------------------------------


def survivors_after_a_kill(servers: ServerProcesses) -> tuple[str, TypedClient, Json]:
    """Run a command whose child leaves its session, kill the server meanwhile, and inspect afterwards."""
    client = servers.start()
    session_id = client.own("session/create")["sessionId"]
    client.ask_turn("run setsid sleep 300 & echo up > up.txt; sleep 300", sessionId=session_id)
    client.wait_for(lambda: True if (servers.root / "up.txt").exists() else None, 20)
    client.process.kill()
    client.wait_exit()
    client = servers.start()
    snapshot = client.snapshot(session_id)
    asked = resolution(snapshot, only(snapshot)["attemptId"], "inspect")
    result = client.request("steadyhand/recovery/resolve", asked)
    return session_id, client, result


def end(result: Json) -> None:
    for one in result["inspection"]["survivors"]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one["pid"], signal.SIGKILL)


def test_inspection_names_surviving_processes_of_a_command(servers: ServerProcesses) -> None:
    """A4, E5: the inspection names every process with the attempt's mark by pid, start and command; changed files are a
    hint; the effect is and stays unknown."""
    session_id, client, result = survivors_after_a_kill(servers)
    try:
        wire.structure(ResolveResult, result)
        looked = result["inspection"]
        commands = [one["command"] for one in looked["survivors"]]
        assert any(command.startswith("sleep 300") for command in commands)
        assert looked["state"] == "unknown"
        assert looked["changed"] == ["up.txt"]
        assert "still run" in looked["text"]
        (record,) = servers.having(session_id, "inspection")
        assert [one["pid"] for one in record["survivors"]] == [one["pid"] for one in looked["survivors"]]
        assert only(client.snapshot(session_id))["actions"] == ["inspect", "confirm", "reject", "waive"]
    finally:
        end(result)


def test_changed_files_hint_has_a_limit(servers: ServerProcesses) -> None:
    """A4, I13: at most 200 names and a count."""
    made = "for n in $(seq 205); do : > f$n.txt; done; echo done"
    session_id = servers.kill_in_turn(f"run {made}", PRESENT)
    client = servers.start()
    attempt_id = only(client.snapshot(session_id))["attemptId"]
    looked = client.inspected(session_id, attempt_id)["inspection"]
    assert len(looked["changed"]) == 200
    assert looked["changedMore"] == 5


# --- texts ----------------------------------------------------------------------------------------------------------


NAME = "ein ordner/ü #1 100%.txt"


def text_of(client: TypedClient, uri: str) -> str:
    result: Json = client.request(CONTENT, {"uri": uri})
    return str(result["text"])


def test_virtual_documents_have_before_intended_and_now(servers: ServerProcesses) -> None:
    """A4, docs/protocol.md: before, intended and now as virtual documents; the path is percent-encoded, `/` is kept."""
    servers.workspace.write(NAME, "vorher\n")
    session_id, client, attempt_id = make_uncertain(servers, f'write "{NAME}" with "gemeint\\n"')
    servers.workspace.write(NAME, "jetzt\n")
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
def test_unknown_virtual_document_is_refused(servers: ServerProcesses, uri: str) -> None:
    """docs/protocol.md: an address that is no document of an attempt is refused as such; it gives access to no other
    file."""
    _, client, attempt_id = make_uncertain(servers)
    servers.workspace.write("b.txt", "not shown\n")
    with pytest.raises(ErrorAnswer) as refused:
        client.request(CONTENT, {"uri": uri.replace("{id}", attempt_id)})
    assert refused.value.code == -32602


def test_unprovable_intended_text_is_not_shown(servers: ServerProcesses) -> None:
    """A4: without the content before, the intended text of an edit cannot be proved: there is no address, no diff, no
    text."""
    servers.workspace.write("a.txt", "one\ntwo\n")
    session_id, client, attempt_id = make_uncertain(servers, "replace one with three in a.txt")
    for kept in (servers.workspace.session_directory(session_id) / "checkpoints").iterdir():
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
def test_virtual_documents_are_registered_only_if_supported(servers: ServerProcesses, able: Json, asked: bool) -> None:
    """docs/protocol.md: dynamically, for the scheme `steadyhand`."""
    client = servers.start(capabilities={"workspace": able})
    if not asked:
        never(lambda: client.server_requests or None, client)
        return
    (registration,) = client.question("client/registerCapability")["params"]["registrations"]
    assert registration["method"] == CONTENT
    assert registration["registerOptions"] == {"schemes": ["steadyhand"]}
