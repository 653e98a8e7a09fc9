"""The shipped server as child processes on one workspace, one after the other or at the same time.

`ServerProcesses.start` gives a `TypedClient`, `start_checked` a `CheckedClient`. A server that is started with faults
is tests/support/faulty_server.py, else it is the plain `python -m steadyhand`. `kill_in_turn` runs a server until its
disk kills it: with `ABSENT` right after *started* is written, so that the effect did not happen, with `PRESENT` right
before *result* is written, so that it did.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs

from steadyhand.domain.recovery.tables import SettleSetting
from tests.support import calling_server, faulty_server
from tests.support.journals import whole_records
from tests.support.lsp_clients import CheckedClient, TypedClient
from tests.support.raw_client import Json
from tests.support.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
SANDBOX = "STEADYHAND_SANDBOX"
"""The variable of the setting `sandbox.mode`; it is off unless a test is about the sandbox."""
PYTHON_PATH: dict[str, str] = {
    "PYTHONPATH": os.pathsep.join(str(path) for path in (ROOT / "server", ROOT / "protocol", ROOT)),
    SANDBOX: "off",
}
ABSENT: Json = {"verb": "write", "carries": "started", "when": "after"}
PRESENT: Json = {"verb": "write", "carries": "result"}
exit_s_max = 60.0

Hook = Callable[[Any], Any]


def server_command(state: Path, faults: Sequence[Mapping[str, object]] = ()) -> tuple[list[str], dict[str, str]]:
    """The command that starts a server, and additions to its environment. With faults it is the faulty server."""
    program = [str(Path(faulty_server.__file__))] if faults else ["-m", "steadyhand"]
    environment = {**PYTHON_PATH, faulty_server.FAULTS_VARIABLE: json.dumps(list(faults))}
    return [sys.executable, *program, "--state-dir", str(state)], environment


def calling_server_command(state: Path) -> tuple[list[str], dict[str, str]]:
    """The same for the server with a model that calls the tools that a prompt names."""
    return [sys.executable, str(Path(calling_server.__file__)), "--state-dir", str(state)], PYTHON_PATH


@attrs.define
class ServerProcesses:
    """Servers on one workspace, and their clients."""

    workspace: Workspace
    clients: list[TypedClient | CheckedClient] = attrs.field(factory=list)

    @property
    def root(self) -> Path:
        return self.workspace.root

    @property
    def state(self) -> Path:
        return self.workspace.state

    # Starting and ending.

    def start(
        self, *faults: Json, settle: SettleSetting = "checked", mode: str = "auto", retry: bool = False,
        permission: bool = False, capabilities: Mapping[str, Any] | None = None, folders: Sequence[str] | None = None,
    ) -> TypedClient:  # fmt: skip
        """A server, initialized. `permission`: the client takes our own questions. `folders`: URIs instead of the
        workspace."""
        command, environment = server_command(self.state, faults)
        able = dict(capabilities or {})
        if permission:
            able["experimental"] = {"steadyhand": {"permission": True}}
        options = {"mode": mode, "recovery": {"settle": settle, "retry": retry}}
        return self.start_command(command, environment, options, able, folders)

    def start_command(
        self, command: Sequence[str], environment: Mapping[str, str], options: Json,
        capabilities: Json | None = None, folders: Sequence[str] | None = None,
    ) -> TypedClient:  # fmt: skip
        """A server that this command starts, initialized with these options."""
        client = TypedClient(command, environment)
        client.workspace = self.workspace
        self.clients.append(client)
        uris = [self.workspace.uri] if folders is None else folders
        client.initialize(
            {
                "capabilities": capabilities or {},
                "workspaceFolders": [{"uri": uri, "name": "work"} for uri in uris],
                "initializationOptions": options,
            }
        )
        return client

    def start_checked(
        self,
        *,
        folders: list[Path] | None = None,
        options: Any = None,
        permission: Hook | str | None = "once",
        capabilities: Json | None = None,
        env: Mapping[str, str] | None = None,
        initialize: bool = True,
    ) -> CheckedClient:
        """A server whose client checks each message when it arrives.

        `permission` is the option that answers each question, or a hook; None: the client does not declare our own
        questions.
        """
        command = [sys.executable, "-m", "steadyhand", "--state-dir", str(self.state)]
        client = CheckedClient(command, {**PYTHON_PATH, **(env or {})}, self.root)
        self.clients.append(client)
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

    def kill_in_turn(
        self, text: str, fault: Json, *, settle: SettleSetting = "checked", session_id: str | None = None
    ) -> str:
        """Run a server until the fault kills it, in a turn with the prompt `text`; the id of its session."""
        before = set(self.sessions())
        client = self.start(fault, settle=settle)
        with suppress(BrokenPipeError):
            client.ask_turn(text, **({} if session_id is None else {"sessionId": session_id}))
        assert client.wait_exit(exit_s_max) == -signal.SIGKILL, client.stderr()
        if session_id is not None:
            return session_id
        (new,) = set(self.sessions()) - before
        return new

    def kill(self) -> None:
        """End every server that still runs."""
        for client in self.clients:
            client.kill()

    # What there is on disk.

    def sessions(self) -> list[str]:
        folder = self.state / "sessions"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def records(self, session_id: str) -> list[Json]:
        """The records of a session's journal, read by the test itself."""
        return whole_records(self.workspace.journal(session_id))

    def having(self, session_id: str, kind: str) -> list[Json]:
        """The records of this kind."""
        return [record for record in self.records(session_id) if record["kind"] == kind]

    def change_intents(self, session_id: str) -> list[Json]:
        """The *intent* records but those of readings: the practice model reads a file before it writes it (V3)."""
        return [record for record in self.having(session_id, "intent") if record["tool"] != "read_file"]

    def kinds(self, session_id: str) -> list[str]:
        return [record["kind"] for record in self.records(session_id)]

    def content(self, name: str) -> str | None:
        """The text of a file of the workspace; None if there is no file."""
        return self.workspace.content(name)


@contextmanager
def server_processes(folder: Path) -> Iterator[ServerProcesses]:
    """Servers on a workspace in `folder`; at the end every message must fit its type, and every server is ended."""
    servers = ServerProcesses(Workspace.under(folder))
    try:
        yield servers
        for client in servers.clients:
            client.close()
    finally:
        servers.kill()
