"""Calls of one tool without a session: prepare, preview, gather and run, on a workspace of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import anyio
import attrs

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.records.identity import Arguments, parse_arguments
from steadyhand.domain.records.record import Evidence
from steadyhand.ports.disk import Disk
from steadyhand.ports.editor import OpenDocument
from steadyhand.ports.processes import Processes
from steadyhand.tools.contract import (
    CallContext,
    EvidenceResult,
    Planned,
    Preview,
    Refusal,
    Tool,
    ToolContext,
    ToolOutcome,
)
from tests.support.fakes import FakeProcesses, run_mark
from tests.support.workspace import Workspace

ATTEMPT = run_mark + "a" * 24


@attrs.define
class ToolWorkspace(Workspace):
    """A workspace, the directory of one session, and a folder outside the workspace.

    `documents` are open in the editor: absolute path → document. `given` is the environment of child processes.
    """

    session: Path
    outside: Path
    documents: dict[str, OpenDocument] = attrs.field(factory=dict)
    given: dict[str, str] = attrs.field(factory=lambda: {"PATH": "/usr/bin:/bin"})

    @classmethod
    def under(cls, folder: Path, state: Path | None = None) -> ToolWorkspace:
        made = Workspace.under(folder, state)
        workspace = ToolWorkspace(made.root, made.state, made.session_directory("s"), made.base / "out")
        for path in (workspace.session, workspace.outside):
            path.mkdir(parents=True)
        return workspace

    def tool_context(self, disk: Disk | None = None, processes: Processes | None = None) -> ToolContext:
        """What the tool gets to work with."""

        def environment(own: Mapping[str, str]) -> Mapping[str, str]:
            return {**self.given, **own}

        return ToolContext(
            disk or system_disk(),
            processes or FakeProcesses(),
            str(self.root),
            str(self.state),
            str(self.session),
            self.documents.get,
            lambda: [path for path, document in self.documents.items() if document.unsaved is not False],
            environment,
            lambda: list(self.documents),
        )

    def beside(self) -> list[str]:
        """The names of temporary files that are left anywhere in the workspace."""
        return sorted(path.name for path in self.root.rglob(".*.steadyhand"))


def arguments(**fields: object) -> Arguments:
    parsed = parse_arguments(json.dumps(fields))
    assert isinstance(parsed, Arguments)
    return parsed


def planned(tool: Tool, tool_context: ToolContext, **fields: object) -> Planned:
    found = tool.prepare(arguments(**fields), tool_context)
    assert not isinstance(found, Refusal), found
    return found


def refusal(tool: Tool, tool_context: ToolContext, **fields: object) -> Refusal:
    """The refusal of a call, at whatever step before its start it comes."""
    found: object = tool.prepare(arguments(**fields), tool_context)
    if not isinstance(found, Refusal):
        call = cast(Planned, found)
        found = call.preview()
        if isinstance(found, Preview):
            found = call.gather(ATTEMPT, found)
    assert isinstance(found, Refusal), found
    return found


def gathered(call: Planned) -> tuple[Evidence, ...]:
    preview = call.preview()
    assert isinstance(preview, Preview), preview
    found = call.gather(ATTEMPT, preview)
    assert isinstance(found, EvidenceResult), found
    return found.evidence


def running(evidence: tuple[Evidence, ...] = (), cancelled: Callable[[], bool] = lambda: False) -> CallContext:
    return CallContext(ATTEMPT, "k" * 64, "5" * 32, evidence, cancelled)


def run_call(
    call: Planned, evidence: tuple[Evidence, ...] = (), cancelled: Callable[[], bool] = lambda: False
) -> ToolOutcome:
    """Run a gathered call to its end, outside an event loop."""

    async def body() -> ToolOutcome:
        return await call.run(running(evidence, cancelled))

    return anyio.run(body)


async def carried_out(tool: Tool, tool_context: ToolContext, **fields: object) -> ToolOutcome:
    """Prepare, preview, gather and run one call."""
    call = planned(tool, tool_context, **fields)
    return await call.run(running(gathered(call)))
