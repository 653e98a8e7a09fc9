"""Clients that check every message of the server against its type.

`TypedClient` checks each result that it asks for, and each notification and question when the test ends.
`CheckedClient` checks each message when it arrives; the events of a session must have consecutive numbers. The types
are those of `steadyhand_protocol` for our own methods, and those of lsprotocol for standard LSP.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lsprotocol import types
from lsprotocol.converters import get_converter

from steadyhand_protocol import methods, wire
from steadyhand_protocol.refusals import InvalidParams
from tests.support.raw_client import ErrorAnswer, Json, LimitReached, RawClient
from tests.support.workspace import Workspace

ASK_MESSAGE = types.WINDOW_SHOW_MESSAGE_REQUEST
ASK_OWN = "steadyhand/permission/ask"
INVALID_PARAMS = -32602
turn_s_max = 60.0

_lsp = get_converter()
_errors_by_code = {error.code: error for error in methods.ERROR_KINDS}
_errors_by_kind = {error.kind: error for error in methods.ERROR_KINDS}


class TypedClient(RawClient):
    """An initialized connection, which checks what it asks for."""

    workspace: Workspace

    def own(self, method: str, limit_s: float = 60, **params: Any) -> Any:
        """The result of one of our own requests; it must fit its type."""
        name = f"steadyhand/{method}"
        result = self.request(name, params, limit_s)
        shape = methods.BY_NAME[name].result
        assert shape is not None
        _round_trip(shape, result)
        return result

    def send_command(self, name: str, **argument: Any) -> int:
        """Send a command of ours and do not wait; the id of the request."""
        arguments = [argument] if argument else []
        return self.ask(types.WORKSPACE_EXECUTE_COMMAND, {"command": f"steadyhand.{name}", "arguments": arguments})

    def command(self, name: str, limit_s: float = 60, **argument: Any) -> Any:
        """The result of a command of ours; it must fit its type."""
        return self.command_result(name, self.send_command(name, **argument), limit_s)

    def command_result(self, name: str, id: int, limit_s: float = 60) -> Any:
        """The result of a command that was sent."""
        result = self.result(id, limit_s)
        _round_trip(methods.COMMANDS_BY_NAME[f"steadyhand.{name}"].result, result)
        return result

    def ask_turn(self, text: str, **more: Any) -> int:
        """Send a prompt by `steadyhand.ask`; the id of the request."""
        return self.send_command("ask", text=text, **more)

    def say(self, text: str, limit_s: float = 60, **more: Any) -> Json:
        """Run a whole turn by `steadyhand.ask`."""
        result: Json = self.command("ask", limit_s, text=text, **more)
        return result

    def opened(self, session_id: str) -> Json:
        result: Json = self.own("session/open", sessionId=session_id)
        return result

    def snapshot(self, session_id: str) -> Json:
        result: Json = self.own("recovery/snapshot", sessionId=session_id)
        return result

    def resolve(self, snapshot: Json, attempt_id: str, action: str, inspection_id: str | None = None) -> Json:
        """Send a resolution for what the snapshot shows."""
        result: Json = self.own("recovery/resolve", **resolution(snapshot, attempt_id, action, inspection_id))
        return result

    def inspected(self, session_id: str, attempt_id: str) -> Json:
        """Request a new inspection; the answer."""
        return self.resolve(self.snapshot(session_id), attempt_id, "inspect")

    def refusal(self, ask: Callable[[], Any]) -> ErrorAnswer:
        """The error that answers `ask`; its data must fit its type."""
        try:
            result = ask()
        except ErrorAnswer as error:
            fits_error(error)
            return error
        raise AssertionError(f"not refused: {result}")

    def question(self, method: str = ASK_MESSAGE, limit_s: float = 60) -> Json:
        """The next question of the server, with its id."""
        return self.server_request(method, limit_s)

    def answer_to(self, question: Json, chosen: str | None) -> None:
        """Answer with a title, or, to our own request, with the id of an option; None is null."""
        own = question["method"] == ASK_OWN
        result = None if chosen is None else {"option": chosen} if own else {"title": chosen}
        self.send({"jsonrpc": "2.0", "id": question["id"], "result": result})

    def withdrawn(self, question: Json, limit_s: float = 60) -> None:
        """Wait until the server withdraws a question."""
        self.notification(types.CANCEL_REQUEST, limit_s, lambda params: params["id"] == question["id"])

    def diagnostics(self, name: str) -> list[Json] | None:
        """The last diagnostics published for a file of the workspace; None: none were ever published."""
        uri = (self.workspace.root / name).as_uri()
        every = [told for told in self.notifications("textDocument/publishDiagnostics") if told["uri"] == uri]
        return list(every[-1]["diagnostics"]) if every else None

    def wait_diagnostic(self, name: str, code: str | None, limit_s: float = 60) -> Json:
        """Wait until the file has exactly one diagnostic, with this code; None: until it has none."""

        def look() -> Json | None:
            found = self.diagnostics(name)
            if code is None:
                return {} if found == [] else None
            return found[0] if found is not None and [one["code"] for one in found] == [code] else None

        found: Json = self.wait_for(
            look, limit_s, f"a diagnostic {code} at {name}, instead of {self.diagnostics(name)}"
        )
        return found

    def code_actions(self, name: str, **context: Any) -> list[Json]:
        """The code actions of the whole file, unless `range` is given."""
        asked_range = context.pop(
            "range", {"start": {"line": 0, "character": 0}, "end": {"line": 9999, "character": 0}}
        )
        document = {"uri": (self.workspace.root / name).as_uri()}
        given = {"textDocument": document, "range": asked_range, "context": {"diagnostics": [], **context}}
        found: list[Json] = self.request("textDocument/codeAction", given)
        _lsp.structure(found, list[types.CodeAction])
        return found

    def lenses(self, name: str) -> list[Json]:
        document = {"uri": (self.workspace.root / name).as_uri()}
        found: list[Json] = self.request("textDocument/codeLens", {"textDocument": document})
        _lsp.structure(found, list[types.CodeLens])
        return found

    def run(self, command: Json) -> Any:
        """Execute a command of a code action or lens, as an editor does."""
        asked = {"command": command["command"], "arguments": command["arguments"]}
        return self.request(types.WORKSPACE_EXECUTE_COMMAND, asked)

    def close(self) -> None:
        """End the server and fail if a message did not fit its type."""
        try:
            self.everything_fits()
        finally:
            self.kill()

    def everything_fits(self) -> None:
        """Assert that every notification and question so far fits its type."""
        for message in list(self.messages):
            method = message.get("method")
            row = methods.BY_NAME.get(method or "")
            if row is not None:
                _round_trip(row.params, message["params"])
            elif method is not None and method in types.METHOD_TO_TYPES and message.get("params") is not None:
                _lsp.structure(message, types.METHOD_TO_TYPES[method][0])


def _round_trip(shape: Any, value: Any) -> None:
    """Assert that the strict types accept the value and produce the same again."""
    assert wire.unstructure(wire.structure(shape, value)) == value


def resolution(snapshot: Json, attempt_id: str, action: str, inspection_id: str | None = None) -> Json:
    """The params of `recovery/resolve` for what a snapshot shows."""
    asked = {
        "sessionId": snapshot["sessionId"],
        "runtimeEpoch": snapshot["runtimeEpoch"],
        "revision": snapshot["revision"],
        "attemptId": attempt_id,
        "action": action,
    }
    return asked if inspection_id is None else {**asked, "inspectionId": inspection_id}


def fits_error(error: ErrorAnswer) -> None:
    """Assert that the data of an error fits the type of its code."""
    if error.code == INVALID_PARAMS:
        wire.structure(InvalidParams, {"errors": error.data["errors"]})
        return
    row = _errors_by_code[error.code]
    assert error.data["kind"] == row.kind
    _round_trip(row.data, error.data)


def only(snapshot: Json) -> Json:
    """The only uncertain call."""
    (call,) = snapshot["calls"]
    found: Json = call
    return found


def opened_calls(opened: Json) -> list[Json]:
    """All calls of an opened session, in the order they were proposed."""
    return [call for message in opened["messages"] for call in message.get("calls", ())]


def never(look: Callable[[], Any], client: TypedClient, limit_s: float = 0.5) -> None:
    """Assert that `look` returns nothing while the client listens for a while."""
    try:
        found = client.wait_for(look, limit_s)
    except LimitReached:
        return
    raise AssertionError(f"it came: {found}")


class CheckedClient(RawClient):
    """A `RawClient` that collects every message that does not fit in `misfits`."""

    def __init__(self, cmd: list[str], env: Mapping[str, str], cwd: Path) -> None:
        self.misfits: list[str] = []
        self._asked: dict[Any, tuple[str, Any]] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._names = itertools.count(1)
        super().__init__(cmd, env, cwd)

    # Checking

    def send(self, message: Any) -> None:
        if isinstance(message, dict) and "method" in message and "id" in message:
            self._asked[message["id"]] = (message["method"], message.get("params"))
        super().send(message)

    def _take_record(self, message: Json) -> None:
        try:
            self._check(message)
        except Exception as misfit:
            self.misfits.append(f"{misfit!r} in {json.dumps(message)[:2000]}")
        super()._take_record(message)

    def _check(self, message: Json) -> None:
        if "method" in message:
            self._check_told(message["method"], message.get("params"))
        elif "error" in message:
            data = message["error"].get("data")
            if isinstance(data, dict) and data.get("kind") in _errors_by_kind:
                error = _errors_by_kind[data["kind"]]
                assert message["error"]["code"] == error.code, "code and kind disagree"
                wire.structure(error.data, data)
        elif message.get("id") in self._asked:
            self._check_result(*self._asked[message["id"]], message["result"])

    def _check_told(self, method: str, params: Any) -> None:
        if method in methods.BY_NAME:
            wire.structure(methods.BY_NAME[method].params, params)
        elif method in types.METHOD_TO_TYPES:
            shape: Any = types.METHOD_TO_TYPES[method][2]
            _lsp.structure(params or {}, shape or object)
        if method == "steadyhand/turn/event":
            counted = (params["sessionId"], params["epoch"])
            before = self._numbers.get(counted)
            assert before is None or params["number"] == before + 1, f"event {params['number']} after {before}"
            self._numbers[counted] = params["number"]

    def _check_result(self, method: str, params: Any, result: Any) -> None:
        if method in methods.BY_NAME:
            shape = methods.BY_NAME[method].result
            assert shape is not None
            wire.structure(shape, result)
        elif method == types.WORKSPACE_EXECUTE_COMMAND:
            wire.structure(methods.COMMANDS_BY_NAME[params["command"]].result, result)

    def close(self) -> None:
        """End the server and fail if a message did not fit its type."""
        self.kill()
        assert self.misfits == []
        assert self.broken is None
        assert "Traceback" not in self.stderr(), self.stderr()[-3000:]

    # What a test does

    def ours(self, method: str, limit_s: float = turn_s_max, **params: Any) -> Any:
        """Send a request of ours; its result."""
        return self.request(f"steadyhand/{method}", params, limit_s)

    def command(self, name: str, *arguments: Json, limit_s: float = turn_s_max) -> Any:
        return self.request(types.WORKSPACE_EXECUTE_COMMAND, self.commanded(name, *arguments), limit_s)

    @staticmethod
    def commanded(name: str, *arguments: Json) -> Json:
        return {"command": f"steadyhand.{name}", "arguments": list(arguments)}

    def refusal(self, method: str, **params: Any) -> tuple[int, str]:
        """(code, kind) of a request of ours that is refused."""
        try:
            self.ours(method, **params)
        except ErrorAnswer as error:
            return error.code, (error.data or {}).get("kind", "")
        raise AssertionError(f"{method} was not refused")

    def send_prompt(self, session: Json, text: str, name: str | None = None) -> Json:
        """Send `turn/start`; its answer."""
        name = name or f"prompt-{next(self._names)}"
        started: Json = self.ours(
            "turn/start", sessionId=session["sessionId"], epoch=session["epoch"], clientMessageId=name, text=text
        )
        return started

    def ended(self, turn_id: str, limit_s: float = turn_s_max) -> Json:
        """Wait for the last event of a turn."""
        found: Json = self.notification(
            "steadyhand/turn/event",
            limit_s,
            lambda told: told["turnId"] == turn_id and told["event"]["kind"] == "ended",
        )["event"]
        return found

    def say(self, session: Json, text: str, name: str | None = None) -> Json:
        """Run a whole turn; its last event."""
        return self.ended(self.send_prompt(session, text, name)["turnId"])

    def asked(self, method: str, limit_s: float = turn_s_max) -> Json:
        """The server's first request of a method, whether answered or not."""

        def found() -> Json | None:
            return next((each for each in self.messages if each.get("method") == method and "id" in each), None)

        asked: Json = self.wait_for(found, limit_s, f"a request {method}")
        return asked

    def events(self, turn_id: str) -> list[Json]:
        told = self.notifications("steadyhand/turn/event")
        return [each["event"] for each in told if each["turnId"] == turn_id]

    def calls(self, turn_id: str) -> list[Json]:
        """The last view of each call of a turn, in the order in which they were proposed."""
        last: dict[str, Json] = {}
        for event in self.events(turn_id):
            if event["kind"] == "call":
                last[event["call"]["callId"]] = event["call"]
        return list(last.values())

    def shown(self) -> list[str]:
        """The messages that were shown."""
        return [each["message"] for each in self.notifications("window/showMessage")]
