"""Resolutions that are refused: each reason with its code and data, in wire.md's order, without any effect (row A3).

For every refusal the journal and the workspace are compared byte for byte with what they were. The order is proved by
asking for what is wrong in several ways at once: the answer names the first reason of the list.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from steadyhand.edge.calls import recovery_bytes_max
from steadyhand_protocol.recovery import ResolveParams
from steadyhand_protocol.wire import WireError, structure
from tests.support.raw_client import ErrorAnswer, framed
from tests.support.recovered import ABSENT, ASK_MESSAGE, PRESENT, Client, Json, Lives, lives_in, only, resolution
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
def lives(tmp_path: Path) -> Iterator[Lives]:
    with lives_in(tmp_path) as found:
        found.place.write("a.txt", "old\n")
        yield found


@attrs.frozen
class Desk:
    """A session with one uncertain write, inspected, and the client that decides on it."""

    lives: Lives
    client: Client
    session_id: str
    attempt_id: str
    inspection_id: str

    def snapshot(self) -> Json:
        return self.client.snapshot(self.session_id)

    def params(self, action: str, /, **other: Any) -> Json:
        """What would be right, with something else in it; None leaves a field out."""
        right = resolution(self.snapshot(), self.attempt_id, action, self.inspection_id)
        return {name: value for name, value in {**right, **other}.items() if value is not None}

    def refused(self, kind: str, params: Json, client: Client | None = None) -> ErrorAnswer:
        """`recovery/resolve` is refused so, and nothing on disk has changed."""
        asking = client or self.client
        return self.refused_by(kind, lambda: asking.request("steadyhand/recovery/resolve", params))

    def refused_by(self, kind: str, ask: Callable[[], Any]) -> ErrorAnswer:
        before = self.disk()
        error = self.client.refusal(ask)
        assert (error.code, error.data["kind"]) == (CODES[kind], kind)
        assert self.disk() == before
        return error

    def disk(self) -> tuple[bytes, dict[str, str]]:
        return self.lives.place.journal(self.session_id), self.lives.place.files()


def desk_of(lives: Lives, client: Client, session_id: str) -> Desk:
    attempt_id = only(client.snapshot(session_id))["attemptId"]
    looked = client.inspected(session_id, attempt_id)["inspection"]
    return Desk(lives, client, session_id, attempt_id, looked["inspectionId"])


@pytest.fixture
def desk(lives: Lives) -> Desk:
    session_id = lives.die(WRITE, PRESENT, settle="ask")
    return desk_of(lives, lives.start(settle="ask"), session_id)


# --- one after the other --------------------------------------------------------------------------------------------


def test_params_that_do_not_fit(desk: Desk) -> None:
    """A3, wire.md: an unknown field, a wrong type, null, a missing one; each place is named."""
    for other, path in [
        ({"force": True}, "$.force"),
        ({"action": "undo"}, "$.action"),
        ({"attemptId": desk.attempt_id.upper()}, "$.attemptId"),
        ({"revision": 7}, "$.revision"),
        ({"runtimeEpoch": None}, "$.runtimeEpoch"),
    ]:
        error = desk.refused("invalidParams", desk.params("confirm", **other))
        assert [each["path"] for each in error.data["errors"]] == [path]
    null = {**desk.params("confirm"), "inspectionId": None}
    assert desk.refused("invalidParams", null).data["errors"][0]["path"] == "$.inspectionId"


def test_a_body_over_16_kib(desk: Desk) -> None:
    """A3: params larger than 16 KiB are refused as that, before any field of them is looked at."""
    large = "x" * recovery_bytes_max
    for other in ({"note": large}, {"attemptId": desk.attempt_id + large}, {"action": large}, {large: 1}):
        (error,) = desk.refused("invalidParams", desk.params("confirm", **other)).data["errors"]
        assert error == {"path": "$", "message": "larger than 16384 bytes"}
    almost = desk.params("confirm", note="x")
    rest = recovery_bytes_max - len(json.dumps(almost, separators=(",", ":")))
    (error,) = desk.refused("invalidParams", {**almost, "note": "x" * (rest + 1)}).data["errors"]
    assert error["path"] == "$.note"
    assert len(json.dumps(desk.params("confirm"))) < 1024
    with pytest.raises(WireError):
        structure(ResolveParams, {**desk.params("confirm"), "inspectionId": "0" * 16384})


def test_an_unknown_session(desk: Desk) -> None:
    """A3."""
    desk.refused("unknownSession", desk.params("confirm", sessionId=WRONG_ID))


def test_a_wrong_epoch_revision_attempt_or_inspection(desk: Desk) -> None:
    """A3, A9, [I8]: each with the data that lets the client catch up."""
    stale = desk.refused("staleEpoch", desk.params("confirm", runtimeEpoch=WRONG_ID))
    assert stale.data["epoch"] == desk.snapshot()["runtimeEpoch"]
    revision = desk.snapshot()["revision"]
    assert desk.refused("staleSnapshot", desk.params("confirm", revision=WRONG_REVISION)).data["revision"] == revision
    assert desk.refused("staleSnapshot", desk.params("confirm", attemptId=WRONG_ID)).data["revision"] == revision
    for inspection_id in (WRONG_ID, None):
        for action in ("confirm", "reject", "waive"):
            desk.refused("inspectFirst", desk.params(action, inspectionId=inspection_id))
    desk.refused("inspectFirst", desk.params("inspect", inspectionId=WRONG_ID))


def test_an_older_inspection(desk: Desk) -> None:
    """A3, A9, wire.md: only the attempt's latest inspection counts."""
    client, first = desk.client, desk.inspection_id
    second = client.inspected(desk.session_id, desk.attempt_id)["inspection"]["inspectionId"]
    desk.refused("inspectFirst", desk.params("confirm", inspectionId=first))
    assert client.resolve(desk.snapshot(), desk.attempt_id, "confirm", second)["snapshot"]["calls"] == []


def test_an_inspection_of_an_earlier_epoch(desk: Desk) -> None:
    """A9, S1, [I7]: after a restart the same ids decide nothing: neither the old epoch nor the old inspection."""
    old = desk.params("confirm")
    assert desk.client.shut_down() == 0
    later = desk.lives.start(settle="ask")
    call = only(later.snapshot(desk.session_id))
    assert call["actions"] == ["inspect"]
    assert "inspection" not in call
    desk.refused("staleEpoch", old, later)
    now = resolution(later.snapshot(desk.session_id), desk.attempt_id, "confirm", desk.inspection_id)
    desk.refused("inspectFirst", now, later)


def test_a_second_decision(desk: Desk) -> None:
    """A3, J14: what is settled by a check is not confirmed, rejected or waived again; looking is still allowed."""
    client = desk.client
    client.resolve(desk.snapshot(), desk.attempt_id, "confirm", desk.inspection_id)
    for action in ("confirm", "reject", "waive"):
        assert desk.refused("alreadyResolved", desk.params(action)).data["settled"] == "checked_present"
    looked = client.resolve(desk.snapshot(), desk.attempt_id, "inspect")
    assert looked["inspection"]["check"] == "satisfied"
    assert looked["snapshot"]["settled"][0]["settled"] == "checked_present"


def test_a_closed_attempt(desk: Desk) -> None:
    """wire.md: waived is final: even an inspection, a retry and a restore are told that it is resolved."""
    desk.client.resolve(desk.snapshot(), desk.attempt_id, "waive", desk.inspection_id)
    for action in ("inspect", "confirm", "reject", "waive", "retry", "restore"):
        assert desk.refused("alreadyResolved", desk.params(action)).data["settled"] == "waived"


def test_retry_while_it_is_off(desk: Desk) -> None:
    """F1, wire.md: its own code; not shown in the actions."""
    desk.refused("retryDisabled", desk.params("retry"))
    desk.refused("retryDisabled", desk.params("retry", inspectionId=None))
    assert "retry" not in only(desk.snapshot())["actions"]
    assert desk.snapshot()["retryEnabled"] is False


def test_what_an_attempt_cannot_have(lives: Lives) -> None:
    """wire.md, `notOffered`: with a reason in words: nothing to restore, rejected already."""
    session_id = lives.die(WRITE, ABSENT, settle="ask")
    desk = desk_of(lives, lives.start(settle="ask"), session_id)
    assert "there already" in desk.refused("notOffered", desk.params("restore")).data["why"]
    desk.client.resolve(desk.snapshot(), desk.attempt_id, "reject", desk.inspection_id)
    assert "rejected already" in desk.refused("notOffered", desk.params("reject")).data["why"]


def test_two_at_once(desk: Desk) -> None:
    """A6: two resolutions sent in one piece: one wins, the other is told; one settlement is recorded (J14)."""
    client = desk.client
    bodies = []
    for id, action in (("first", "confirm"), ("second", "waive")):
        message = {"jsonrpc": "2.0", "id": id, "method": "steadyhand/recovery/resolve", "params": desk.params(action)}
        bodies.append(framed(json.dumps(message).encode()))
    client.send_raw(b"".join(bodies))
    assert client.answer("first")["result"]["snapshot"]["calls"] == []
    refused = client.refusal(lambda: client.result("second"))
    assert refused.data == {"kind": "alreadyResolved", "settled": "checked_present"}
    assert [record["settled"] for record in desk.lives.having(desk.session_id, "settlement")] == ["checked_present"]


def test_while_a_turn_runs(lives: Lives) -> None:
    """A3, wire.md (turnRunning → staleEpoch): while a turn runs and is not parked every action is refused with the
    turn's id, before the epoch is compared; when it has ended the same params are taken."""
    session_id = lives.die(WRITE, PRESENT, settle="ask")
    go, reached = lives.place.base / "go", lives.place.base / "reached"
    wait = ["/bin/sh", "-c", f"touch '{reached}'; until [ -e '{go}' ]; do sleep 0.02; done"]
    client = lives.start({"verb": "create", "target": "b.txt", "run": wait, "then": "go on"}, settle="ask")
    desk = desk_of(lives, client, session_id)
    params = desk.params("waive")
    turn = client.ask_turn("write b.txt with b", sessionId=session_id)
    client.wait_for(lambda: True if reached.exists() else None, 20)
    for action in ("inspect", "confirm", "reject", "waive", "retry", "restore"):
        error = desk.refused("turnRunning", desk.params(action, runtimeEpoch=WRONG_ID))
        assert error.data["turnId"] == client.notifications("steadyhand/turn/event")[0]["turnId"]
    go.touch()
    assert client.command_result("ask", turn)["reason"] == "done", "a scope that does not overlap is not held back (B1)"
    assert client.own("recovery/resolve", **params)["snapshot"]["calls"] == []


def test_another_process_owns_it(desk: Desk) -> None:
    """A3, J11: a second window is told who owns it; the journal's owner is not disturbed."""
    second = desk.lives.start(folders=[], settle="ask")
    opened = second.opened(desk.session_id)
    assert opened["session"]["readOnly"]["reason"] == "owned"
    error = desk.refused("notOwner", desk.params("confirm"), second)
    assert error.data["owner"]["pid"] == desk.client.process.pid
    assert desk.client.resolve(desk.snapshot(), desk.attempt_id, "confirm", desk.inspection_id)["snapshot"]["settled"]


def test_a_journal_that_cannot_be_written(lives: Lives) -> None:
    """A3, J6: what cannot be recorded is refused, and so is all that follows."""
    session_id = lives.die(WRITE, PRESENT, settle="ask")
    full = {"verb": "write", "target": "journal.jsonl", "carries": "settlement", "then": "ENOSPC", "forGood": True}
    client = lives.start(full, settle="ask")
    desk = desk_of(lives, client, session_id)
    desk.refused("journalBroken", desk.params("confirm"))
    assert only(client.snapshot(session_id))["state"] == "unknown"
    for action in ("inspect", "waive", "retry"):
        desk.refused("journalBroken", desk.params(action))


# --- which one comes first ------------------------------------------------------------------------------------------


WRONG: dict[str, Json] = {
    "invalidParams": {"extra": 1},
    "unknownSession": {"sessionId": WRONG_ID},
    "staleEpoch": {"runtimeEpoch": WRONG_ID},
    "staleSnapshot": {"revision": WRONG_REVISION},
    "inspectFirst": {"inspectionId": WRONG_ID},
}


def test_the_order_of_refusal(desk: Desk) -> None:
    """wire.md, "Order of refusal for resolve": of two faults the earlier is named, for each neighbouring pair that a
    client can bring about alone."""
    kinds = list(WRONG)
    for place, kind in enumerate(kinds):
        faults: Json = {}
        for later in kinds[place:]:
            faults |= WRONG[later]
        desk.refused(kind, desk.params("confirm", **faults))
    # attempt unknown → alreadyResolved → notOffered → staleSnapshot → retryDisabled → inspectFirst
    desk.client.resolve(desk.snapshot(), desk.attempt_id, "reject", desk.inspection_id)
    desk.refused("staleEpoch", desk.params("reject", runtimeEpoch=WRONG_ID, attemptId=WRONG_ID))
    desk.refused("staleSnapshot", desk.params("reject", attemptId=WRONG_ID))
    desk.refused("notOffered", desk.params("reject", revision=WRONG_REVISION, inspectionId=WRONG_ID))
    desk.refused("staleSnapshot", desk.params("retry", revision=WRONG_REVISION, inspectionId=WRONG_ID))
    desk.refused("retryDisabled", desk.params("retry", inspectionId=WRONG_ID))
    desk.client.resolve(desk.snapshot(), desk.attempt_id, "confirm", desk.inspection_id)
    desk.refused("alreadyResolved", desk.params("confirm", revision=WRONG_REVISION, inspectionId=WRONG_ID))
    desk.refused("staleEpoch", desk.params("confirm", runtimeEpoch=WRONG_ID))


def test_the_commands_are_refused_alike(desk: Desk) -> None:
    """wire.md: all given fields of a command are compared, with the same codes; unknown fields are refused."""
    right = {"sessionId": desk.session_id, "attemptId": desk.attempt_id}

    def refused(kind: str, command: str, **more: Any) -> None:
        desk.refused_by(kind, lambda: desk.client.command(f"recovery.{command}", **{**right, **more}))

    refused("invalidParams", "confirm", force=True)
    refused("unknownSession", "confirm", sessionId=WRONG_ID)
    refused("staleEpoch", "confirm", runtimeEpoch=WRONG_ID, revision=WRONG_REVISION)
    refused("staleSnapshot", "inspect", revision=WRONG_REVISION)
    refused("staleSnapshot", "waive", attemptId=WRONG_ID)
    refused("retryDisabled", "retry")
    refused("inspectFirst", "confirm", inspectionId=WRONG_ID)
    assert not [each for each in desk.client.messages if each.get("method") == ASK_MESSAGE], "nobody was asked"
