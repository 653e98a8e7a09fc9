"""The parts of the demo: a small project on disk, a server started as an editor starts it, and printed lines.

`Shop` is the project; `ServerRun` is one process run of the server, which the demo talks to in LSP over stdio. Every
quotation in the demo comes from the protocol; every statement about files is read from the disk.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from tests.support.process_server import SANDBOX, server_command
from tests.support.raw_client import RawClient

Json = dict[str, Any]

line_chars = 110
margin = 24
answer_s_max = 15.0
turn_s_max = 20.0

FILES = {
    "shop/prices.py": "TEA = 3\nCAKE = 4\n",
    "shop/basket.py": "from shop.prices import CAKE, TEA\n\n\ndef total(teas: int, cakes: int) -> int:\n"
    "    return teas * TEA + cakes * CAKE\n",
    "CHANGES.md": "# Changes\n\n- The shop sells tea.\n",
    "TODO.md": "# To do\n\n- Sell cake.\n",
    "NOTES.md": "# Notes\n\n- Tea is 3.\n",
}


def say(label: str, text: str) -> None:
    """Print a line of the demo: a short label, then text, wrapped."""
    for number, line in enumerate(textwrap.wrap(text, line_chars - margin) or [""]):
        print(f"   {label if number == 0 else '':<{margin - 3}}{line}", flush=True)


def title(text: str) -> None:
    """Print the heading of a scene."""
    print(f"\n{text}\n{'─' * len(text)}", flush=True)


@attrs.frozen
class Shop:
    """The project, and the state directory of the server beside it."""

    base: Path

    @staticmethod
    def laid_out(base: Path) -> Shop:
        shop = Shop(base.resolve())
        for name, content in FILES.items():
            path = shop.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        return shop

    @property
    def folder(self) -> Path:
        return self.base / "tea-shop"

    @property
    def state(self) -> Path:
        return self.base / "state"

    def lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def count(self, name: str, line: str) -> int:
        """How many times a file has this line."""
        return self.lines(name).count(line)


class ServerRun:
    """One process run of the server. `faults`: see tests/support/faulty_server.py; without them it is the plain
    server."""

    def __init__(self, shop: Shop, *faults: Mapping[str, object], retry: bool = False) -> None:
        """`retry`: switch retry on, which is off by default."""
        command, environment = server_command(shop.state, faults)
        environment = {**environment, SANDBOX: "auto"}
        if retry:
            environment = {**environment, "STEADYHAND_RECOVERY_RETRY": "1"}
        self.client = RawClient(command, environment)
        self.client.initialize(
            {
                "workspaceFolders": [{"uri": shop.folder.as_uri(), "name": "tea-shop"}],
                "initializationOptions": {"mode": "auto"},
            }
        )
        self._shown = 0

    def __enter__(self) -> ServerRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.kill()

    def command(self, name: str, **argument: object) -> Json:
        """The answer of one of the server's commands."""
        given: Json = {"command": f"steadyhand.{name}", "arguments": [argument]}
        answer: Json = self.client.request("workspace/executeCommand", given, turn_s_max)
        return answer

    def ask(self, session: str, text: str) -> Json:
        """Run a whole turn."""
        return self.command("ask", sessionId=session, text=text)

    def begin(self, session: str | None, text: str) -> None:
        """Start a turn and do not wait for it."""
        argument = {"text": text, **({"sessionId": session} if session else {})}
        self.client.ask("workspace/executeCommand", {"command": "steadyhand.ask", "arguments": [argument]})

    def create(self) -> str:
        session: Json = self.client.request("steadyhand/session/create", {"title": "The tea shop"}, answer_s_max)
        return str(session["sessionId"])

    def open(self, session: str) -> Json:
        opened: Json = self.client.request("steadyhand/session/open", {"sessionId": session}, answer_s_max)
        return opened

    def died(self) -> int:
        """Wait for the end; the signal that ended it, 0 if no signal did."""
        return max(0, -self.client.wait_exit(turn_s_max))

    def told(self, part: str) -> str:
        """The last message to the user that contains this text."""

        def found() -> str | None:
            shown = [str(each["message"]) for each in self.client.notifications("window/showMessage")]
            return next((text for text in reversed(shown) if part in text), None)

        sentence: str = self.client.wait_for(found, answer_s_max, f"a message with “{part}”")
        return sentence

    def hints(self) -> dict[str, Json]:
        """File name → the last hint that the server put there (an LSP diagnostic)."""
        told = self.client.notifications("textDocument/publishDiagnostics")
        last = {str(each["uri"]).rpartition("/")[2]: each["diagnostics"] for each in told}
        return {name: hints[0] for name, hints in last.items() if hints}

    def hint(self, name: str, code: str) -> str:
        """Wait for the sentence at a file."""

        def found() -> str | None:
            hint = self.hints().get(name)
            return str(hint["message"]) if hint is not None and hint["code"] == code else None

        sentence: str = self.client.wait_for(found, answer_s_max, f"a hint {code} at {name}")
        return sentence

    def offers(self, shop: Shop, name: str) -> list[str]:
        """The titles that the editor offers as code actions at the hint of a file."""
        hint = self.hints()[name]
        given = {
            "textDocument": {"uri": (shop.folder / name).as_uri()},
            "range": hint["range"],
            "context": {"diagnostics": [hint]},
        }
        actions = self.client.request("textDocument/codeAction", given, answer_s_max)
        return [str(action["title"]).removeprefix("Steadyhand: ") for action in actions or ()]

    def answering(self, choose: Callable[[str, list[str]], str]) -> None:
        """Answer every question of the server, given its text and titles, with one of its titles."""

        def hook(params: Json) -> Json:
            return {"title": choose(params["message"], [action["title"] for action in params["actions"]])}

        self.client.answer_with("window/showMessageRequest", hook)


def calls_of(opened: Json) -> list[Json]:
    """All calls of an opened session, oldest first."""
    return [call for message in opened["messages"] for call in message.get("calls", ())]


def confinement_of(call: Json) -> str:
    """How a command was confined, for a reader."""
    sandbox = call.get("sandbox")
    if sandbox is None:
        return "this system has no sandbox that works here, so the command ran without one."
    return f"the command ran in a sandbox ({sandbox['kind']}), which ended with the server."


def notices_of(opened: Json) -> list[str]:
    return [str(message["text"]) for message in opened["messages"] if message["role"] == "notice"]
