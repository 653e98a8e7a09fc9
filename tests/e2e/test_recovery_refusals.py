"""Refused resolutions: each reason with its code and data, in the order of docs/protocol.md, without any effect (row
A3).

For every refusal the test compares the journal and the workspace byte for byte with their state before. It proves the
order with requests that are wrong in several ways at once: the answer names the first reason of the list.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from steadyhand.lsp.rpc.router import RECOVERY_BYTES_MAX
from steadyhand_protocol.recovery import ResolveParams
from steadyhand_protocol.wire import WireError, structure
from tests.support.lsp_clients import ASK_MESSAGE, TypedClient, only, resolution
from tests.support.process_server import ABSENT, PRESENT, ServerProcesses, server_processes
from tests.support.raw_client import ErrorAnswer, Json, framed
from tests.support.systems import linux_only

pytestmark = linux_only

WRONG_ID = "f" * 32
WRONG_REVISION = "f" * 64
WRITE = 'write a.txt with "new\\n"'
CODES = {
    "invalidParams": -32602, "unknownSession": -32050, "staleEpoch": -32051, "turnRunning": -32052,
    "staleSnapshot": -32053, "inspectFirst": -32054, "alreadyResolved": -32055, "retryDisabled": -32056,
    "notOwner": -32058, "journalBroken": -32059, "notOffered": -32061,
}  # fmt: skip


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as found:
        found.workspace.write("a.txt", "old\n")
        yield found


@attrs.frozen
class UncertainWrite:
    """A session with one uncertain write, inspected, and the client that decides on it."""

    servers: ServerProcesses
    client: TypedClient
    session_id: str
    attempt_id: str
    inspection_id: str

    def snapshot(self) -> Json:
        return self.client.snapshot(self.session_id)

    def params(self, action: str, /, **other: Any) -> Json:
        """Valid params, with these fields replaced; None omits a field."""
        right = resolution(self.snapshot(), self.attempt_id, action, self.inspection_id)
        return {name: value for name, value in {**right, **other}.items() if value is not None}

    def refused(self, kind: str, params: Json, client: TypedClient | None = None) -> ErrorAnswer:
        """Assert that `recovery/resolve` is refused with this kind, and that nothing on disk changed."""
        asking = client or self.client
        return self.refused_by(kind, lambda: asking.request("steadyhand/recovery/resolve", params))

    def refused_by(self, kind: str, ask: Callable[[], Any]) -> ErrorAnswer:
        before = self.disk()
        error = self.client.refusal(ask)
        assert (error.code, error.data["kind"]) == (CODES[kind], kind)
        assert self.disk() == before
        return error

    def disk(self) -> tuple[bytes, dict[str, str]]:
        return self.servers.workspace.journal(self.session_id), self.servers.workspace.files()


def uncertain_write(servers: ServerProcesses, client: TypedClient, session_id: str) -> UncertainWrite:
    attempt_id = only(client.snapshot(session_id))["attemptId"]
    looked = client.inspected(session_id, attempt_id)["inspection"]
    return UncertainWrite(servers, client, session_id, attempt_id, looked["inspectionId"])


@pytest.fixture
def uncertain(servers: ServerProcesses) -> UncertainWrite:
    session_id = servers.kill_in_turn(WRITE, PRESENT, settle="ask")
    return uncertain_write(servers, servers.start(settle="ask"), session_id)


# --- one after the other --------------------------------------------------------------------------------------------


def test_resolve_with_invalid_params_names_each_position(uncertain: UncertainWrite) -> None:
    """A3, docs/protocol.md: an unknown field, a wrong type, null, a missing field; the error names each position."""
    wrong: list[tuple[dict[str, object], str]] = [
        ({"force": True}, "$.force"),
        ({"action": "undo"}, "$.action"),
        ({"attemptId": uncertain.attempt_id.upper()}, "$.attemptId"),
        ({"revision": 7}, "$.revision"),
        ({"runtimeEpoch": None}, "$.runtimeEpoch"),
    ]
    for other, path in wrong:
        error = uncertain.refused("invalidParams", uncertain.params("confirm", **other))
        assert [each["path"] for each in error.data["errors"]] == [path]
    null = {**uncertain.params("confirm"), "inspectionId": None}
    assert uncertain.refused("invalidParams", null).data["errors"][0]["path"] == "$.inspectionId"


def test_resolve_over_16_kib_is_refused_before_its_fields(uncertain: UncertainWrite) -> None:
    """A3: params larger than 16 KiB are refused as too large, before any of their fields is checked."""
    large = "x" * RECOVERY_BYTES_MAX
    for other in ({"note": large}, {"attemptId": uncertain.attempt_id + large}, {"action": large}, {large: 1}):
        (error,) = uncertain.refused("invalidParams", uncertain.params("confirm", **other)).data["errors"]
        assert error == {"path": "$", "message": "larger than 16384 bytes"}
    almost = uncertain.params("confirm", note="x")
    rest = RECOVERY_BYTES_MAX - len(json.dumps(almost, separators=(",", ":")))
    (error,) = uncertain.refused("invalidParams", {**almost, "note": "x" * (rest + 1)}).data["errors"]
    assert error["path"] == "$.note"
    assert len(json.dumps(uncertain.params("confirm"))) < 1024
    with pytest.raises(WireError):
        structure(ResolveParams, {**uncertain.params("confirm"), "inspectionId": "0" * 16384})


def test_resolve_in_an_unknown_session_is_refused(uncertain: UncertainWrite) -> None:
    """A3."""
    uncertain.refused("unknownSession", uncertain.params("confirm", sessionId=WRONG_ID))


def test_resolve_with_a_stale_id_returns_the_current_data(uncertain: UncertainWrite) -> None:
    """A3, A9, [I8]: wrong epoch, revision, attempt or inspection: each refusal has the data that lets the client catch
    up."""
    stale = uncertain.refused("staleEpoch", uncertain.params("confirm", runtimeEpoch=WRONG_ID))
    assert stale.data["epoch"] == uncertain.snapshot()["runtimeEpoch"]
    revision = uncertain.snapshot()["revision"]
    assert (
        uncertain.refused("staleSnapshot", uncertain.params("confirm", revision=WRONG_REVISION)).data["revision"]
        == revision
    )
    assert (
        uncertain.refused("staleSnapshot", uncertain.params("confirm", attemptId=WRONG_ID)).data["revision"] == revision
    )
    for inspection_id in (WRONG_ID, None):
        for action in ("confirm", "reject", "waive"):
            uncertain.refused("inspectFirst", uncertain.params(action, inspectionId=inspection_id))
    uncertain.refused("inspectFirst", uncertain.params("inspect", inspectionId=WRONG_ID))


def test_resolve_with_an_older_inspection_is_refused(uncertain: UncertainWrite) -> None:
    """A3, A9, docs/protocol.md: only the attempt's latest inspection counts."""
    client, first = uncertain.client, uncertain.inspection_id
    second = client.inspected(uncertain.session_id, uncertain.attempt_id)["inspection"]["inspectionId"]
    uncertain.refused("inspectFirst", uncertain.params("confirm", inspectionId=first))
    assert client.resolve(uncertain.snapshot(), uncertain.attempt_id, "confirm", second)["snapshot"]["calls"] == []


def test_resolve_with_ids_of_an_earlier_epoch_is_refused(uncertain: UncertainWrite) -> None:
    """A9, S1, [I7]: after a restart the same ids decide nothing, neither the old epoch nor the old inspection."""
    old = uncertain.params("confirm")
    assert uncertain.client.shut_down() == 0
    later = uncertain.servers.start(settle="ask")
    call = only(later.snapshot(uncertain.session_id))
    assert call["actions"] == ["inspect"]
    assert "inspection" not in call
    uncertain.refused("staleEpoch", old, later)
    now = resolution(later.snapshot(uncertain.session_id), uncertain.attempt_id, "confirm", uncertain.inspection_id)
    uncertain.refused("inspectFirst", now, later)


def test_second_decision_is_refused_but_inspect_is_allowed(uncertain: UncertainWrite) -> None:
    """A3, J14: an effect settled by a check is not confirmed, rejected or waived again; inspect is still allowed."""
    client = uncertain.client
    client.resolve(uncertain.snapshot(), uncertain.attempt_id, "confirm", uncertain.inspection_id)
    for action in ("confirm", "reject", "waive"):
        assert uncertain.refused("alreadyResolved", uncertain.params(action)).data["settled"] == "checked_present"
    looked = client.resolve(uncertain.snapshot(), uncertain.attempt_id, "inspect")
    assert looked["inspection"]["check"] == "satisfied"
    assert looked["snapshot"]["settled"][0]["settled"] == "checked_present"


def test_every_action_on_a_waived_attempt_is_refused(uncertain: UncertainWrite) -> None:
    """docs/protocol.md: waive is final: also inspect, retry and restore answer that the attempt is resolved."""
    uncertain.client.resolve(uncertain.snapshot(), uncertain.attempt_id, "waive", uncertain.inspection_id)
    for action in ("inspect", "confirm", "reject", "waive", "retry", "restore"):
        assert uncertain.refused("alreadyResolved", uncertain.params(action)).data["settled"] == "waived"


def test_retry_while_disabled_has_its_own_code(uncertain: UncertainWrite) -> None:
    """F1, docs/protocol.md: retry is refused with its own code, and is not in the actions."""
    uncertain.refused("retryDisabled", uncertain.params("retry"))
    uncertain.refused("retryDisabled", uncertain.params("retry", inspectionId=None))
    assert "retry" not in only(uncertain.snapshot())["actions"]
    assert uncertain.snapshot()["retryEnabled"] is False


def test_action_that_is_not_offered_is_refused_with_the_reason(servers: ServerProcesses) -> None:
    """docs/protocol.md, `notOffered`: a sentence has the reason: nothing to restore, already rejected."""
    session_id = servers.kill_in_turn(WRITE, ABSENT, settle="ask")
    uncertain = uncertain_write(servers, servers.start(settle="ask"), session_id)
    assert "already there" in uncertain.refused("notOffered", uncertain.params("restore")).data["why"]
    uncertain.client.resolve(uncertain.snapshot(), uncertain.attempt_id, "reject", uncertain.inspection_id)
    assert "already rejected" in uncertain.refused("notOffered", uncertain.params("reject")).data["why"]


def test_two_concurrent_resolutions_settle_once(uncertain: UncertainWrite) -> None:
    """A6: two resolutions arrive in one packet: one succeeds, the other is refused; one settlement is recorded
    (J14)."""
    client = uncertain.client
    bodies = []
    for id, action in (("first", "confirm"), ("second", "waive")):
        message = {
            "jsonrpc": "2.0",
            "id": id,
            "method": "steadyhand/recovery/resolve",
            "params": uncertain.params(action),
        }
        bodies.append(framed(json.dumps(message).encode()))
    client.send_raw(b"".join(bodies))
    assert client.answer("first")["result"]["snapshot"]["calls"] == []
    refused = client.refusal(lambda: client.result("second"))
    assert refused.data == {"kind": "alreadyResolved", "settled": "checked_present"}
    assert [record["settled"] for record in uncertain.servers.having(uncertain.session_id, "settlement")] == [
        "checked_present"
    ]


def test_resolve_during_a_running_turn_is_refused_before_the_epoch(servers: ServerProcesses) -> None:
    """A3, docs/protocol.md (turnRunning → staleEpoch): while a turn runs and is not parked, every action is refused
    with the turn's id, before the epoch is compared. When the turn has ended the same params are accepted."""
    session_id = servers.kill_in_turn(WRITE, PRESENT, settle="ask")
    go, reached = servers.workspace.base / "go", servers.workspace.base / "reached"
    wait = ["/bin/sh", "-c", f"touch '{reached}'; until [ -e '{go}' ]; do sleep 0.02; done"]
    client = servers.start({"verb": "create", "target": "b.txt", "run": wait, "then": "go on"}, settle="ask")
    uncertain = uncertain_write(servers, client, session_id)
    params = uncertain.params("waive")
    turn = client.ask_turn("write b.txt with b", sessionId=session_id)
    client.wait_for(lambda: True if reached.exists() else None, 20)
    for action in ("inspect", "confirm", "reject", "waive", "retry", "restore"):
        error = uncertain.refused("turnRunning", uncertain.params(action, runtimeEpoch=WRONG_ID))
        assert error.data["turnId"] == client.notifications("steadyhand/turn/event")[0]["turnId"]
    go.touch()
    assert client.command_result("ask", turn)["reason"] == "done", "a scope that does not overlap is not held back (B1)"
    assert client.own("recovery/resolve", **params)["snapshot"]["calls"] == []


def test_resolve_in_a_second_window_names_the_lock_holder(uncertain: UncertainWrite) -> None:
    """A3, J11: a second window gets the lock holder in the refusal; the holder's journal is not disturbed."""
    second = uncertain.servers.start(folders=[], settle="ask")
    opened = second.opened(uncertain.session_id)
    assert opened["session"]["readOnly"]["reason"] == "owned"
    error = uncertain.refused("notOwner", uncertain.params("confirm"), second)
    assert error.data["owner"]["pid"] == uncertain.client.process.pid
    assert uncertain.client.resolve(uncertain.snapshot(), uncertain.attempt_id, "confirm", uncertain.inspection_id)[
        "snapshot"
    ]["settled"]


def test_resolve_is_refused_when_the_journal_cannot_be_written(servers: ServerProcesses) -> None:
    """A3, J6: what cannot be recorded is refused, and so is everything that follows."""
    session_id = servers.kill_in_turn(WRITE, PRESENT, settle="ask")
    full = {"verb": "write", "target": "journal.jsonl", "carries": "settlement", "then": "ENOSPC", "forGood": True}
    client = servers.start(full, settle="ask")
    uncertain = uncertain_write(servers, client, session_id)
    uncertain.refused("journalBroken", uncertain.params("confirm"))
    assert only(client.snapshot(session_id))["state"] == "unknown"
    for action in ("inspect", "waive", "retry"):
        uncertain.refused("journalBroken", uncertain.params(action))


# --- which one comes first ------------------------------------------------------------------------------------------


WRONG: dict[str, Json] = {
    "invalidParams": {"extra": 1},
    "unknownSession": {"sessionId": WRONG_ID},
    "staleEpoch": {"runtimeEpoch": WRONG_ID},
    "staleSnapshot": {"revision": WRONG_REVISION},
    "inspectFirst": {"inspectionId": WRONG_ID},
}


def test_refusal_names_the_earlier_of_two_faults(uncertain: UncertainWrite) -> None:
    """docs/protocol.md: of two faults the answer names the earlier one, for each neighbouring pair that a client can
    produce alone."""
    kinds = list(WRONG)
    for place, kind in enumerate(kinds):
        faults: Json = {}
        for later in kinds[place:]:
            faults |= WRONG[later]
        uncertain.refused(kind, uncertain.params("confirm", **faults))
    # attempt unknown → alreadyResolved → notOffered → staleSnapshot → retryDisabled → inspectFirst
    uncertain.client.resolve(uncertain.snapshot(), uncertain.attempt_id, "reject", uncertain.inspection_id)
    uncertain.refused("staleEpoch", uncertain.params("reject", runtimeEpoch=WRONG_ID, attemptId=WRONG_ID))
    uncertain.refused("staleSnapshot", uncertain.params("reject", attemptId=WRONG_ID))
    uncertain.refused("notOffered", uncertain.params("reject", revision=WRONG_REVISION, inspectionId=WRONG_ID))
    uncertain.refused("staleSnapshot", uncertain.params("retry", revision=WRONG_REVISION, inspectionId=WRONG_ID))
    uncertain.refused("retryDisabled", uncertain.params("retry", inspectionId=WRONG_ID))
    uncertain.client.resolve(uncertain.snapshot(), uncertain.attempt_id, "confirm", uncertain.inspection_id)
    uncertain.refused("alreadyResolved", uncertain.params("confirm", revision=WRONG_REVISION, inspectionId=WRONG_ID))
    uncertain.refused("staleEpoch", uncertain.params("confirm", runtimeEpoch=WRONG_ID))


def test_commands_are_refused_with_the_same_codes(uncertain: UncertainWrite) -> None:
    """docs/protocol.md: all given fields of a command are compared, with the same codes; unknown fields are refused."""
    right = {"sessionId": uncertain.session_id, "attemptId": uncertain.attempt_id}

    def refused(kind: str, command: str, **more: Any) -> None:
        uncertain.refused_by(kind, lambda: uncertain.client.command(f"recovery.{command}", **{**right, **more}))

    refused("invalidParams", "confirm", force=True)
    refused("unknownSession", "confirm", sessionId=WRONG_ID)
    refused("staleEpoch", "confirm", runtimeEpoch=WRONG_ID, revision=WRONG_REVISION)
    refused("staleSnapshot", "inspect", revision=WRONG_REVISION)
    refused("staleSnapshot", "waive", attemptId=WRONG_ID)
    refused("retryDisabled", "retry")
    refused("inspectFirst", "confirm", inspectionId=WRONG_ID)
    assert not [each for each in uncertain.client.messages if each.get("method") == ASK_MESSAGE], "nobody was asked"
