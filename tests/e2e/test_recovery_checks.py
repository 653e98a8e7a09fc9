"""The four results of a check, each produced by a real kill, and the actions that follow (W2, B3, A4, A5, A8).

The server is killed in the middle of a write, the test changes the file where the check needs it, and asks the next
server over the protocol as any LSP client would.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from steadyhand.domain.recovery.tables import SettleSetting
from tests.support.lsp_clients import TypedClient, only, resolution
from tests.support.process_server import ABSENT, PRESENT, ServerProcesses, server_processes
from tests.support.raw_client import Json
from tests.support.systems import linux_only

pytestmark = linux_only

BEFORE = "one\ntwo\nthree\n"
WRITE = 'write a.txt with "one\\nTWÖ\\nthree\\n"'
INTENDED = "one\nTWÖ\nthree\n"
OF_NOW = "This describes the file now, not what ran."
TITLE = "write_file: a.txt"


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as found:
        found.workspace.write("a.txt", BEFORE)
        yield found


def nothing(_: Path) -> None:
    """Leave everything as the killed server left it."""


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
class Case:
    """One way to a result: where the server dies, what happens then, what the check finds, and the line of the
    diagnostic."""

    fault: Json
    then: Callable[[Path], None]
    check: str
    state: str
    says: str
    line: int
    width: int


CASES = {
    "satisfied": Case(
        PRESENT, nothing, "satisfied", "postcondition_satisfied", "the file has the intended content now", 0, 3
    ),
    "unchanged": Case(ABSENT, nothing, "unchanged", "absent_fenced", "the file is now as it was before", 1, 3),
    "conflict": Case(PRESENT, somebody_wrote, "conflict", "unknown", "neither as it was before nor as intended", 1, 3),
    "deleted": Case(PRESENT, somebody_removed, "conflict", "unknown", "neither as it was before nor as intended", 0, 0),
    "a folder": Case(
        PRESENT, folder_in_its_place, "unknown", "unknown", "the current state of the file is unknown", 0, 0
    ),
    "a link": Case(
        PRESENT, link_leads_elsewhere, "unknown", "unknown", "the current state of the file is unknown", 0, 0
    ),
    "a pipe": Case(PRESENT, pipe_in_its_place, "unknown", "unknown", "the current state of the file is unknown", 0, 0),
}


def run_case(servers: ServerProcesses, case: Case, settle: SettleSetting) -> tuple[str, TypedClient]:
    """Kill a server and let the rest happen; the session, and a client of the next server."""
    session_id = servers.kill_in_turn(WRITE, case.fault, settle=settle)
    case.then(servers.root / "a.txt")
    return session_id, servers.start(settle=settle)


@pytest.mark.parametrize("name", CASES)
def test_each_check_result_is_shown_at_the_file_and_by_inspect(servers: ServerProcesses, name: str) -> None:
    """W2, A8, B3 with `ask`: nothing is settled. The diagnostic has its code, severity, sentence, position and data.
    Only Inspect is offered. The inspection says what it found, and that it describes the present (W7) [I9]."""
    case = CASES[name]
    session_id, client = run_case(servers, case, "ask")
    found = client.wait_diagnostic("a.txt", "uncertain-write")
    snapshot = client.snapshot(session_id)
    call = only(snapshot)
    assert found == {
        "range": {
            "start": {"line": case.line, "character": 0},
            "end": {"line": case.line, "character": case.width},
        },
        "message": found["message"],
        "severity": 2,
        "code": "uncertain-write",
        "source": "steadyhand",
        "data": {"sessionId": session_id, "attemptId": call["attemptId"]},
    }
    assert case.says in found["message"]
    assert OF_NOW in found["message"]
    assert (call["state"], call["check"], call["actions"]) == ("unknown", case.check, ["inspect"])
    assert "settled" not in call
    assert "inspection" not in call
    looked = client.inspected(session_id, call["attemptId"])["inspection"]
    assert (looked["check"], looked["state"]) == (case.check, case.state)
    assert [path["check"] for path in looked["paths"]] == [case.check]
    assert case.says in looked["text"]
    if case.check == "unknown":
        assert looked["paths"][0]["reason"] in looked["text"], "the text has the reason why it cannot be told"


@pytest.mark.parametrize(("name", "settled"), [("satisfied", "checked_present"), ("unchanged", "checked_absent")])
def test_proved_effect_is_settled_and_shown_until_the_next_turn(
    servers: ServerProcesses, name: str, settled: str
) -> None:
    """B3 with `checked`: settled by proof, recorded once, shown as `checked-write` until the next turn starts."""
    session_id, client = run_case(servers, CASES[name], "checked")
    found = client.wait_diagnostic("a.txt", "checked-write")
    assert found["severity"] == 3
    assert found["range"]["start"]["line"] == CASES[name].line
    snapshot = client.snapshot(session_id)
    (call,) = snapshot["settled"]
    assert snapshot["calls"] == []
    assert (call["state"], call["settled"], call["actions"]) == ("settled", settled, ["inspect"])
    assert snapshot["statistics"]["checked"] == snapshot["statistics"]["unknown"] == 1
    (record,) = servers.having(session_id, "settlement")
    assert (record["settled"], record["by"]) == (settled, "recovery")
    (told,) = client.notifications("window/showMessage")
    assert TITLE in told["message"]
    assert "settled" in told["message"]
    assert client.say("say on", sessionId=session_id)["reason"] == "done"
    client.wait_diagnostic("a.txt", None)
    assert client.snapshot(session_id)["settled"] == []


@pytest.mark.parametrize(("name", "happened"), [("satisfied", 1), ("unchanged", 0)])
def test_settled_effect_holds_nothing_back(servers: ServerProcesses, name: str, happened: int) -> None:
    """B3, N2: the same call runs again without a question; only an effect that is known to have happened makes a new
    key."""
    session_id, client = run_case(servers, CASES[name], "checked")
    client.wait_diagnostic("a.txt", "checked-write")
    ended = client.say(WRITE, sessionId=session_id)
    assert ended["reason"] == "done"
    assert "done: 1 of 1" in ended["text"]
    assert (servers.root / "a.txt").read_text() == INTENDED
    first, second = servers.change_intents(session_id)
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
def test_confirm_settles_by_the_finding_of_the_inspection(servers: ServerProcesses, name: str) -> None:
    """A5, A4: proved present, proved absent, else the user's word. The settlement names the inspection it rests on,
    which comes before it (J2), and is no result. The diagnostic goes or becomes `checked-write`."""
    session_id, client = run_case(servers, CASES[name], "ask")
    attempt_id = only(client.snapshot(session_id))["attemptId"]
    looked = client.inspected(session_id, attempt_id)
    restore = [] if CASES[name].check == "unchanged" else ["restore"]
    assert only(looked["snapshot"])["actions"] == ["inspect", "confirm", "reject", "waive", *restore]
    results = servers.having(session_id, "result")
    done = client.resolve(looked["snapshot"], attempt_id, "confirm", looked["inspection"]["inspectionId"])
    assert done["snapshot"]["calls"] == []
    (call,) = done["snapshot"]["settled"]
    assert call["settled"] == CONFIRMED[name]
    kinds = [record["kind"] for record in servers.records(session_id)]
    assert kinds.index("inspection") < kinds.index("settlement")
    (record,) = servers.having(session_id, "settlement")
    assert record["inspectionId"] == looked["inspection"]["inspectionId"]
    assert (record["settled"], record["by"]) == (CONFIRMED[name], "user")
    assert servers.having(session_id, "result") == results
    proved = CONFIRMED[name] != "user_confirmed"
    client.wait_diagnostic("a.txt", "checked-write" if proved else None)
    counted = done["snapshot"]["statistics"]
    assert (counted["checked"], counted["confirmed"]) == ((1, 0) if proved else (0, 1))


def test_reject_is_recorded_and_settles_nothing(servers: ServerProcesses) -> None:
    """A5: the effect stays uncertain and marked; reject is not offered twice; the other actions stay."""
    session_id, client = run_case(servers, CASES["conflict"], "checked")
    attempt_id = only(client.snapshot(session_id))["attemptId"]
    looked = client.inspected(session_id, attempt_id)
    inspection_id = looked["inspection"]["inspectionId"]
    rejected = client.resolve(looked["snapshot"], attempt_id, "reject", inspection_id)
    call = only(rejected["snapshot"])
    assert (call["state"], call["actions"]) == ("rejected", ["inspect", "confirm", "waive", "restore"])
    client.wait_for(
        lambda: "You chose not to repeat it." in client.wait_diagnostic("a.txt", "uncertain-write")["message"] or None,
        10,
    )
    refused = client.refusal(lambda: client.resolve(rejected["snapshot"], attempt_id, "reject", inspection_id))
    assert refused.data["kind"] == "notOffered"
    waived = client.resolve(rejected["snapshot"], attempt_id, "waive", inspection_id)
    assert waived["snapshot"]["calls"] == []
    assert waived["snapshot"]["statistics"] == {
        "unknown": 1, "checked": 0, "confirmed": 0, "rejected": 1, "waived": 1, "retried": 0, "restored": 0,
        "heldBack": 0, "heldBackAdmitted": 0, "heldBackRefused": 0, "byProof": 0, "byPerson": 1, "byModel": 0,
        "medianDoubtMs": waived["snapshot"]["statistics"]["medianDoubtMs"],
    }  # fmt: skip


def test_waive_frees_the_scope_and_notifies_the_model(servers: ServerProcesses) -> None:
    """A5: the user continues without knowing; a later write runs, and the notice says "unknown, waived by the user"."""
    session_id, client = run_case(servers, CASES["conflict"], "checked")
    attempt_id = only(client.snapshot(session_id))["attemptId"]
    looked = client.inspected(session_id, attempt_id)
    client.resolve(looked["snapshot"], attempt_id, "waive", looked["inspection"]["inspectionId"])
    client.wait_diagnostic("a.txt", None)
    assert client.say("write a.txt with new", sessionId=session_id)["changed"] == [
        {"path": "a.txt", "change": "modified"}
    ]
    notices = [record["text"] for record in servers.having(session_id, "notice")]
    assert any("unknown, waived by the user" in text for text in notices)


def test_confirm_after_a_change_answers_inspect_first(servers: ServerProcesses) -> None:
    """A5, docs/protocol.md "inspectFirst": nothing is settled; the answer has a new inspection, whose id then works
    [I8]."""
    session_id, client = run_case(servers, CASES["satisfied"], "ask")
    attempt_id = only(client.snapshot(session_id))["attemptId"]
    looked = client.inspected(session_id, attempt_id)
    somebody_wrote(servers.root / "a.txt")
    seen = looked["inspection"]["inspectionId"]
    refused = client.refusal(lambda: client.resolve(looked["snapshot"], attempt_id, "confirm", seen))
    assert refused.data["kind"] == "inspectFirst"
    new = refused.data["inspection"]
    assert new["check"] == "conflict"
    assert new["inspectionId"] != seen
    assert servers.having(session_id, "settlement") == []
    done = client.resolve(client.snapshot(session_id), attempt_id, "confirm", new["inspectionId"])
    assert done["snapshot"]["settled"][0]["settled"] == "user_confirmed"


def test_concurrent_save_is_kept_and_stays_a_conflict(servers: ServerProcesses) -> None:
    """W9: foreign content under the attempt's temporary name is kept and named, also by an inspection, whatever is at
    the path itself."""
    session_id = servers.kill_in_turn(WRITE, ABSENT)
    (started,) = servers.having(session_id, "started")
    temporary = servers.root / started["evidence"][0]["temporary"]
    temporary.write_text("somebody's save\n")
    client = servers.start()
    call = only(client.snapshot(session_id))
    assert call["check"] == "conflict"
    looked = client.inspected(session_id, call["attemptId"])
    assert looked["inspection"]["check"] == "conflict"
    assert temporary.name in looked["inspection"]["text"]
    temporary.unlink()
    seen = looked["inspection"]["inspectionId"]
    refused = client.refusal(lambda: client.resolve(looked["snapshot"], call["attemptId"], "confirm", seen))
    assert refused.data["inspection"]["check"] == "unchanged"


def test_interrupted_command_stays_unknown(servers: ServerProcesses) -> None:
    """F4, E5, A4: nothing can be checked; there is no diagnostic; changed files are a hint; only the user's word
    settles it."""
    session_id = servers.kill_in_turn("run echo two > b.txt; sleep 0.2; echo done", PRESENT)
    client = servers.start()
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
    assert "removed the mark is not found" in looked["text"]
    done = client.resolve(client.snapshot(session_id), call["attemptId"], "confirm", looked["inspectionId"])
    assert done["snapshot"]["settled"][0]["settled"] == "user_confirmed"
    assert client.diagnostics("a.txt") is None
    assert client.diagnostics("b.txt") is None


def test_new_file_in_a_new_folder_has_the_editor_s_uri(servers: ServerProcesses) -> None:
    """W2, A8: the URI of a name with blanks, an umlaut and `#` is spelled as the editor spells it; the diagnostic is
    there."""
    name = "ein ordner/ü #1.txt"
    session_id = servers.kill_in_turn(f'write "{name}" with "hallo\\n"', PRESENT, settle="ask")
    assert (servers.root / name).read_text() == "hallo\n"
    client = servers.start(settle="ask")
    client.wait_diagnostic(name, "uncertain-write")
    assert only(client.snapshot(session_id))["scope"] == {"paths": [name]}
    shutil.rmtree(servers.root / "ein ordner")
    looked = client.inspected(session_id, only(client.snapshot(session_id))["attemptId"])["inspection"]
    assert looked["check"] == "unchanged", "it was not there before either"


def test_resolve_params_need_what_the_client_saw(servers: ServerProcesses) -> None:
    """A2: the names are those of docs/protocol.md; nothing else is needed, and `inspectionId` only for a decision."""
    session_id, client = run_case(servers, CASES["conflict"], "checked")
    snapshot = client.snapshot(session_id)
    asked = resolution(snapshot, only(snapshot)["attemptId"], "inspect")
    assert set(asked) == {"sessionId", "runtimeEpoch", "revision", "attemptId", "action"}
    assert set(client.own("recovery/resolve", **asked)) == {"snapshot", "inspection"}
