"""An outside service that knows idempotency keys, and a tool that sends to it and offers a verifier (row F4).

The service is a folder: `arrived` has one line for each message that arrived, including duplicates, so that a second
effect would be visible; `shut` has the keys that are fenced. A test says what the next try does (`fails`), what the
verifier answers (`unreachable`, `fences`), and what a call may touch (`paths`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import anyio
import attrs

from steadyhand.domain.model.messages import ToolOffer
from steadyhand.domain.records.identity import Arguments, canonical_json
from steadyhand.domain.records.record import EffectClass, Evidence, Scope
from steadyhand.domain.records.scope import EVERYTHING
from steadyhand.tools.contract import CallContext, EvidenceResult, Preview, Refusal, ToolContext, ToolOutcome, Verified

Failure = Literal["before", "after"]


class Lost(Exception):
    """The connection broke; it is unknown whether the message arrived."""


@attrs.define
class Sink:
    """The service. `folder` exists."""

    folder: Path

    def arrived(self) -> list[str]:
        """The keys of all messages, in order."""
        return self._lines("arrived")

    def accept(self, key: str) -> None:
        """A message arrives, unless its key is fenced."""
        if key in self._lines("shut"):
            raise Lost
        self._add("arrived", key)

    def shut_out(self, key: str) -> None:
        self._add("shut", key)

    def let_in(self, key: str) -> None:
        """A new try begins, which may arrive again."""
        kept = [line for line in self._lines("shut") if line != key]
        (self.folder / "shut").write_text("".join(f"{line}\n" for line in kept))

    def _lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def _add(self, name: str, key: str) -> None:
        with (self.folder / name).open("a") as file:
            file.write(f"{key}\n")


@attrs.define
class SendTool:
    """`tools.Tool` and `tools.Verifier`: `send {"text": …}`."""

    sink: Sink
    fails: Failure | None = None
    unreachable: bool = False
    fences: bool = True
    hangs: bool = False
    paths: tuple[str, ...] | None = None  # None: it may touch everything
    asked: list[tuple[tuple[Evidence, ...], str, str]] = attrs.field(factory=list)
    name: str = "send"
    effect: EffectClass = "opaque"

    @property
    def offer(self) -> ToolOffer:
        return ToolOffer(self.name, "Sends a text.", canonical_json({"type": "object"}))

    def prepare(self, arguments: Arguments, tool_context: ToolContext) -> Sending | Refusal:
        scope = EVERYTHING if self.paths is None else Scope(self.paths)
        return Sending(self.name, scope, self.deliver)

    def deliver(self, key: str) -> None:
        if self.fails == "before":
            raise Lost
        self.sink.let_in(key)
        self.sink.accept(key)
        if self.fails == "after":
            raise Lost

    async def verify(self, evidence: tuple[Evidence, ...], key: str, arguments: Arguments) -> Verified:
        self.asked.append((evidence, key, arguments.canonical))
        if self.hangs:
            await anyio.sleep_forever()
        if self.unreachable:
            raise Lost
        if key in self.sink.arrived():
            return Verified("present", True, "The service has this message.")
        if self.fences:
            self.sink.shut_out(key)
            return Verified("absent", True, "The service does not have it and takes it no more.")
        return Verified("absent", False, "The service does not have it yet.")


@attrs.frozen
class Sending:
    """One call of it."""

    title: str
    scope: Scope
    deliver: Callable[[str], None]
    effect: EffectClass = "opaque"
    outside: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    command: tuple[str, str] | None = None

    def preview(self) -> Preview | Refusal:
        return Preview("It sends a text.")

    def gather(self, attempt_id: str, preview: Preview | None) -> EvidenceResult | Refusal:
        return EvidenceResult()

    async def run(self, running: CallContext) -> ToolOutcome:
        self.deliver(running.key)
        return ToolOutcome("returned", "The service took it.")
