"""Lives of the shipped server around an uncertain effect, and a client that holds every answer against its type.

`Lives.die` lets a server do what a text says until its disk kills it; the next life is the plain `python -m
steadyhand`. `ABSENT` kills right after *started*, `PRESENT` right before *result*, so that the effect is not there, or
is. A `Client` structures each result, each error's data, each notification and each question of the server by the
strict types, and what is standard LSP by lsprotocol's.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
from lsprotocol import types
from lsprotocol.converters import get_converter

from steadyhand.core.recovery import SettleSetting
from steadyhand_protocol import methods, wire
from steadyhand_protocol.refusals import InvalidParams
from tests.crash.promises import whole_records
from tests.support.killed_server import shipped
from tests.support.raw_client import ErrorAnswer, LimitReached, RawClient
from tests.support.turns import Place

Json = dict[str, Any]

ABSENT: Json = {"verb": "write", "carries": "started", "when": "after"}
PRESENT: Json = {"verb": "write", "carries": "result"}
ASK_MESSAGE = types.WINDOW_SHOW_MESSAGE_REQUEST
ASK_OWN = "steadyhand/permission/ask"
INVALID_PARAMS = -32602
exit_s_max = 20.0

_errors_by_code = {error.code: error for error in methods.ERROR_KINDS}
_lsp = get_converter()


class Client(RawClient):
    """A greeted connection."""

    place: Place

    def own(self, method: str, limit_s: float = 20, **params: Any) -> Any:
        """The result of one of our own requests, which fits its type."""
        name = f"steadyhand/{method}"
        result = self.request(name, params, limit_s)
        shape = methods.BY_NAME[name].result
        assert shape is not None
        _round_trip(shape, result)
        return result

    def send_command(self, name: str, **argument: Any) -> int:
        """Ask for a command of ours and do not wait; the request's id."""
        arguments = [argument] if argument else []
        return self.ask(types.WORKSPACE_EXECUTE_COMMAND, {"command": f"steadyhand.{name}", "arguments": arguments})

    def command(self, name: str, limit_s: float = 20, **argument: Any) -> Any:
        """The result of a command of ours, which fits its type."""
        return self.command_result(name, self.send_command(name, **argument), limit_s)

    def command_result(self, name: str, id: int, limit_s: float = 20) -> Any:
        """The result of a command that was sent."""
        result = self.result(id, limit_s)
        _round_trip(methods.COMMANDS_BY_NAME[f"steadyhand.{name}"].result, result)
        return result

    def ask_turn(self, text: str, **more: Any) -> int:
        """Send a prompt by `steadyhand.ask`; the request's id."""
        return self.send_command("ask", text=text, **more)

    def say(self, text: str, limit_s: float = 20, **more: Any) -> Json:
        """A whole turn by `steadyhand.ask`."""
        result: Json = self.command("ask", limit_s, text=text, **more)
        return result

    def opened(self, session_id: str) -> Json:
        result: Json = self.own("session/open", sessionId=session_id)
        return result

    def snapshot(self, session_id: str) -> Json:
        result: Json = self.own("recovery/snapshot", sessionId=session_id)
        return result

    def resolve(self, snapshot: Json, attempt_id: str, action: str, inspection_id: str | None = None) -> Json:
        """A resolution of what the snapshot shows."""
        result: Json = self.own("recovery/resolve", **resolution(snapshot, attempt_id, action, inspection_id))
        return result

    def inspected(self, session_id: str, attempt_id: str) -> Json:
        """A new inspection; the answer."""
        return self.resolve(self.snapshot(session_id), attempt_id, "inspect")

    def refusal(self, ask: Callable[[], Any]) -> ErrorAnswer:
        """The error with which `ask` is answered; its data fits its type."""
        try:
            result = ask()
        except ErrorAnswer as error:
            fits_error(error)
            return error
        raise AssertionError(f"not refused: {result}")

    def question(self, method: str = ASK_MESSAGE, limit_s: float = 20) -> Json:
        """The next question of the server, with its id."""
        return self.server_request(method, limit_s)

    def answer_to(self, question: Json, chosen: str | None) -> None:
        """Answer with a title, or, to our own request, with the id of an option; None is null."""
        own = question["method"] == ASK_OWN
        result = None if chosen is None else {"option": chosen} if own else {"title": chosen}
        self.send({"jsonrpc": "2.0", "id": question["id"], "result": result})

    def withdrawn(self, question: Json, limit_s: float = 20) -> None:
        """Wait until the server takes a question back."""
        self.notification(types.CANCEL_REQUEST, limit_s, lambda params: params["id"] == question["id"])

    def diagnostics(self, name: str) -> list[Json] | None:
        """The last published ones of a file of the workspace; None: none were ever published."""
        uri = (self.place.workspace / name).as_uri()
        every = [told for told in self.notifications("textDocument/publishDiagnostics") if told["uri"] == uri]
        return list(every[-1]["diagnostics"]) if every else None

    def squiggle(self, name: str, code: str | None, limit_s: float = 20) -> Json:
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
        """For the whole file, unless `range` is given."""
        asked_range = context.pop(
            "range", {"start": {"line": 0, "character": 0}, "end": {"line": 9999, "character": 0}}
        )
        document = {"uri": (self.place.workspace / name).as_uri()}
        given = {"textDocument": document, "range": asked_range, "context": {"diagnostics": [], **context}}
        found: list[Json] = self.request("textDocument/codeAction", given)
        _lsp.structure(found, list[types.CodeAction])
        return found

    def lenses(self, name: str) -> list[Json]:
        document = {"uri": (self.place.workspace / name).as_uri()}
        found: list[Json] = self.request("textDocument/codeLens", {"textDocument": document})
        _lsp.structure(found, list[types.CodeLens])
        return found

    def run(self, command: Json) -> Any:
        """Carry out a command of a code action or lens, as an editor does."""
        asked = {"command": command["command"], "arguments": command["arguments"]}
        return self.request(types.WORKSPACE_EXECUTE_COMMAND, asked)

    def everything_fits(self) -> None:
        """Every notification and question so far has its type."""
        for message in list(self.messages):
            method = message.get("method")
            row = methods.BY_NAME.get(method or "")
            if row is not None:
                _round_trip(row.params, message["params"])
            elif method is not None and method in types.METHOD_TO_TYPES and message.get("params") is not None:
                _lsp.structure(message, types.METHOD_TO_TYPES[method][0])


def _round_trip(shape: Any, value: Any) -> None:
    """It is taken by the strict types, and they say the same again."""
    assert wire.unstructure(wire.structure(shape, value)) == value


def resolution(snapshot: Json, attempt_id: str, action: str, inspection_id: str | None = None) -> Json:
    """Params of `recovery/resolve` for what a snapshot shows."""
    asked = {
        "sessionId": snapshot["sessionId"],
        "runtimeEpoch": snapshot["runtimeEpoch"],
        "revision": snapshot["revision"],
        "attemptId": attempt_id,
        "action": action,
    }
    return asked if inspection_id is None else {**asked, "inspectionId": inspection_id}


def fits_error(error: ErrorAnswer) -> None:
    """The data of an error fits the type of its code."""
    if error.code == INVALID_PARAMS:
        wire.structure(InvalidParams, {"errors": error.data["errors"]})
        return
    row = _errors_by_code[error.code]
    assert error.data["kind"] == row.kind
    _round_trip(row.data, error.data)


@attrs.define
class Lives:
    """Servers on one place, one after the other or side by side."""

    place: Place
    started: list[Client] = attrs.field(factory=list)

    def start(
        self, *faults: Json, settle: SettleSetting = "checked", mode: str = "auto", retry: bool = False,
        permission: bool = False, capabilities: Mapping[str, Any] | None = None, folders: Sequence[str] | None = None,
    ) -> Client:  # fmt: skip
        """A greeted server. `permission`: the client takes our own questions; `folders`: URIs, else the workspace."""
        command, environment = shipped(self.place.state, faults)
        client = Client(command, environment)
        client.place = self.place
        self.started.append(client)
        able = dict(capabilities or {})
        if permission:
            able["experimental"] = {"steadyhand": {"permission": True}}
        uris = [self.place.uri] if folders is None else folders
        client.initialize(
            {
                "capabilities": able,
                "workspaceFolders": [{"uri": uri, "name": "work"} for uri in uris],
                "initializationOptions": {"mode": mode, "recovery": {"settle": settle, "retry": retry}},
            }
        )
        return client

    def die(self, text: str, fault: Json, *, settle: SettleSetting = "checked", session_id: str | None = None) -> str:
        """A life that ends by SIGKILL at the fault, in a turn that does what `text` says; its session."""
        before = set(self.sessions())
        client = self.start(fault, settle=settle)
        with suppress(BrokenPipeError):
            client.ask_turn(text, **({} if session_id is None else {"sessionId": session_id}))
        assert client.wait_exit(exit_s_max) == -signal.SIGKILL, client.stderr()
        if session_id is not None:
            return session_id
        (new,) = set(self.sessions()) - before
        return new

    def sessions(self) -> list[str]:
        folder = self.place.state / "sessions"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def records(self, session_id: str) -> list[Json]:
        """The journal as it stands on disk, read here anew."""
        return whole_records(self.place.journal(session_id))

    def having(self, session_id: str, kind: str) -> list[Json]:
        return [record for record in self.records(session_id) if record["kind"] == kind]


@contextmanager
def lives_in(folder: Path) -> Iterator[Lives]:
    """Lives in a folder of their own; what they told is held against its types, and every server is ended."""
    lives = Lives(Place.under(folder / "place"))
    try:
        yield lives
        for client in lives.started:
            client.everything_fits()
    finally:
        for client in lives.started:
            client.kill()


def only(snapshot: Json) -> Json:
    """The one uncertain call."""
    (call,) = snapshot["calls"]
    found: Json = call
    return found


def never(look: Callable[[], Any], client: Client, limit_s: float = 0.5) -> None:
    """What `look` looks for does not come while the client listens for a while."""
    try:
        found = client.wait_for(look, limit_s)
    except LimitReached:
        return
    raise AssertionError(f"it came: {found}")
