"""A client that holds the server to the wire: every answer, notification and request is checked as it comes.

Ours are structured by `steadyhand_protocol`, standard ones by lsprotocol; events of a session must count on without
gaps; `data` of an error must have the shape of its kind. What does not fit stands in `misfits`, and `close` fails for
it. `Desk` is the place of one test: folders, a state directory, and servers started on it.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
from lsprotocol import types
from lsprotocol.converters import get_converter

from steadyhand_protocol import methods, wire
from tests.support.raw_client import ErrorAnswer, Json, RawClient

ROOT = Path(__file__).resolve().parents[2]
PATHS = {"PYTHONPATH": f"{ROOT / 'server'}:{ROOT / 'protocol'}"}
turn_s_max = 15.0
Hook = Callable[[Any], Any]

_standard = get_converter()
_kinds = {error.kind: error for error in methods.ERROR_KINDS}


class CheckedClient(RawClient):
    """As RawClient; `state` and `folders` are those it was started with."""

    def __init__(self, cmd: list[str], env: Mapping[str, str], cwd: Path) -> None:
        self.misfits: list[str] = []
        self._asked: dict[Any, tuple[str, Any]] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._names = itertools.count(1)
        super().__init__(cmd, {**PATHS, **env}, cwd)

    # Checking

    def send(self, message: Any) -> None:
        if isinstance(message, dict) and "method" in message and "id" in message:
            self._asked[message["id"]] = (message["method"], message.get("params"))
        super().send(message)

    def _take(self, message: Json) -> None:
        try:
            self._check(message)
        except Exception as misfit:
            self.misfits.append(f"{misfit!r} in {json.dumps(message)[:2000]}")
        super()._take(message)

    def _check(self, message: Json) -> None:
        if "method" in message:
            self._check_told(message["method"], message.get("params"))
        elif "error" in message:
            data = message["error"].get("data")
            if isinstance(data, dict) and data.get("kind") in _kinds:
                error = _kinds[data["kind"]]
                assert message["error"]["code"] == error.code, "code and kind disagree"
                wire.structure(error.data, data)
        elif message.get("id") in self._asked:
            self._check_result(*self._asked[message["id"]], message["result"])

    def _check_told(self, method: str, params: Any) -> None:
        if method in methods.BY_NAME:
            wire.structure(methods.BY_NAME[method].params, params)
        elif method in types.METHOD_TO_TYPES:
            shape: Any = types.METHOD_TO_TYPES[method][2]
            _standard.structure(params or {}, shape or object)
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
        """End the server and fail for whatever did not fit."""
        self.kill()
        assert self.misfits == []
        assert self.broken is None
        assert "Traceback" not in self.stderr(), self.stderr()[-3000:]

    # What a test does

    def ours(self, method: str, limit_s: float = turn_s_max, **params: Any) -> Any:
        """A request of ours."""
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
        """The answer of `turn/start`."""
        name = name or f"prompt-{next(self._names)}"
        started: Json = self.ours(
            "turn/start", sessionId=session["sessionId"], epoch=session["epoch"], clientMessageId=name, text=text
        )
        return started

    def ended(self, turn_id: str, limit_s: float = turn_s_max) -> Json:
        """The turn's last event."""
        found: Json = self.notification(
            "steadyhand/turn/event",
            limit_s,
            lambda told: told["turnId"] == turn_id and told["event"]["kind"] == "ended",
        )["event"]
        return found

    def say(self, session: Json, text: str, name: str | None = None) -> Json:
        """A whole turn; its last event."""
        return self.ended(self.send_prompt(session, text, name)["turnId"])

    def asked(self, method: str, limit_s: float = turn_s_max) -> Json:
        """The server's first request of a method, answered or not."""

        def found() -> Json | None:
            return next((each for each in self.messages if each.get("method") == method and "id" in each), None)

        asked: Json = self.wait_for(found, limit_s, f"a request {method}")
        return asked

    def events(self, turn_id: str) -> list[Json]:
        told = self.notifications("steadyhand/turn/event")
        return [each["event"] for each in told if each["turnId"] == turn_id]

    def calls(self, turn_id: str) -> list[Json]:
        """The last view of each call of a turn, in the order they were proposed."""
        last: dict[str, Json] = {}
        for event in self.events(turn_id):
            if event["kind"] == "call":
                last[event["call"]["callId"]] = event["call"]
        return list(last.values())

    def shown(self) -> list[str]:
        """The messages that were shown."""
        return [each["message"] for each in self.notifications("window/showMessage")]


@attrs.define
class Desk:
    """The place of one test; `servers` are closed, and checked, at its end."""

    root: Path
    state: Path
    servers: list[CheckedClient] = attrs.field(factory=list)

    @staticmethod
    def under(folder: Path) -> Desk:
        desk = Desk(folder / "ws", folder / "state")
        desk.root.mkdir()
        return desk

    def server(
        self,
        *,
        folders: list[Path] | None = None,
        options: Any = None,
        permission: Hook | str | None = "once",
        capabilities: Json | None = None,
        env: Mapping[str, str] | None = None,
        initialize: bool = True,
    ) -> CheckedClient:
        """A server, initialized. `permission`: the option that answers each question, a hook, or None: not declared."""
        command = [sys.executable, "-m", "steadyhand", "--state-dir", str(self.state)]
        client = CheckedClient(command, env or {}, self.root)
        self.servers.append(client)
        client.answer_with("window/workDoneProgress/create", lambda _: None)
        client.answer_with("client/registerCapability", lambda _: None)
        client.answer_with("workspace/configuration", lambda asked: [None for _ in asked["items"]])
        client.answer_with("workspace/codeLens/refresh", lambda _: None)
        own = {} if permission is None else {"experimental": {"steadyhand": {"permission": True}}}
        if isinstance(permission, str):
            client.answer_with("steadyhand/permission/ask", lambda _: {"option": permission})
        elif permission is not None:
            client.answer_with("steadyhand/permission/ask", permission)
        if initialize:
            client.initialize(
                {
                    "workspaceFolders": [
                        {"uri": path.as_uri(), "name": path.name}
                        for path in (folders if folders is not None else [self.root])
                    ],
                    "capabilities": {**own, **(capabilities or {})},
                    **({} if options is None else {"initializationOptions": options}),
                }
            )
        return client

    def journal(self, session_id: str) -> list[Json]:
        """The records on disk."""
        path = self.state / "sessions" / session_id / "journal.jsonl"
        return [json.loads(line) for line in path.read_bytes().splitlines()]

    def kinds(self, session_id: str) -> list[str]:
        return [record["kind"] for record in self.journal(session_id)]

    def content(self, name: str) -> str | None:
        path = self.root / name
        return path.read_text() if path.exists() else None

    def close(self) -> None:
        for client in self.servers:
            client.close()
