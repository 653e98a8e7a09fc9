"""Folders and files that are exchanged while a tool works on them (rows E3, W1; case 144).

A process exchanges a folder of the workspace for a link that leads out, again and again. A call may give what is
inside, be asked about, or fail. It never shows what is outside, and never changes it without a question.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.adapters.processes.system import SystemProcesses
from steadyhand.domain.model.messages import CallProposed
from steadyhand.domain.records.identity import Arguments, parse_arguments
from steadyhand.domain.records.prompt import FileAttachment
from steadyhand.tools.contract import Refusal, Tool, ToolContext
from steadyhand.tools.registry import BY_NAME
from steadyhand.tools.workspace.attached_file import read_attachment
from tests.hostile.attempts import rows
from tests.support.forks import repeating
from tests.support.model import call, read, run, write
from tests.support.systems import linux_only
from tests.support.tool_calls import ATTEMPT, ToolWorkspace, running
from tests.support.workspace import Workspace

pytestmark = [pytest.mark.anyio, linux_only]
CLASS = "races"
CALLS = 40
COMMANDS = 12
PAUSE_S = 0.0005
"""Between two exchanges: a call has several steps, and each exchange should fall between two others."""
SECRET = "SECRET-OF-OUTSIDE"
SOUGHT = f"'{SECRET}'"
"""How a reply of a search repeats what was sought."""
ASKED = "The user would be asked."


@attrs.frozen
class Race:
    """A call that is made again and again during the exchanges."""

    call: CallProposed
    pending: str | None = None

    @property
    def name(self) -> str:
        return f"{self.call.tool} {self.call.arguments}"


def move(start: str, goal: str) -> CallProposed:
    return call("move_file", **{"from": start, "to": goal})


TABLE = [
    Race(read("d/f")),
    Race(read("d/../d/f")),
    Race(read("d/sub/f")),
    Race(call("list_files", path="d")),
    Race(call("list_files", path=".", depth=3)),
    Race(call("find_files", pattern="**/*secret*")),
    Race(call("find_files", pattern="**/*secret*", path="d")),
    Race(call("search_text", pattern=SECRET)),
    Race(call("search_text", pattern=SECRET, path="d")),
    Race(call("search_text", pattern="OF.OUTSIDE", path="d/sub")),
    Race(write("d/f", "written\n")),
    Race(write("d/new", "written\n")),
    Race(write("d/sub/deep/new", "written\n")),
    Race(call("edit_file", path="d/f", edits=[{"old": "inside", "new": "edited"}])),
    Race(call("edit_file", path="d/f", edits=[{"old": SECRET, "new": "edited"}])),
    Race(move("d/f", "d/g")),
    Race(move("d/f", "moved")),
    Race(move("a.txt", "d/a.txt")),
    Race(call("delete_file", path="d/f")),
    Race(call("delete_file", path="d/sub/f")),
    Race(run("cat d/f")),
    Race(run("cat d/sub/f")),
    Race(run("ls d")),
]


def fill(folder: Path, text: str, marked: bool) -> None:
    (folder / "sub").mkdir(parents=True)
    for name in ("f", "sub/f"):
        (folder / name).write_text(text)
    if marked:
        (folder / f"{SECRET}-secret").write_text(text)


def arrange(workspace: Workspace) -> tuple[Path, Path]:
    """The two things that are exchanged: a folder of the workspace, and a link to a folder outside."""
    fill(workspace.root / "d", "inside\n", marked=False)
    workspace.write("a.txt", "a\n")
    fill(workspace.base / "outside", f"{SECRET}\n", marked=True)
    (workspace.base / "link").symlink_to(workspace.base / "outside")
    return workspace.root / "d", workspace.base / "link"


@contextmanager
def exchanging(first: Path, second: Path) -> Iterator[None]:
    """A process that exchanges two names, in one step each time, until the end of the context."""
    disk = system_disk()
    here, there = disk.open_folder(str(first.parent)), disk.open_folder(str(second.parent))
    disk.rename_to(there, second.name, here, ".link", exclusive=True)

    def exchange() -> None:
        disk.exchange(here, first.name, ".link")
        time.sleep(PAUSE_S)

    try:
        with repeating(exchange):
            yield
    finally:
        disk.close(here)
        disk.close(there)


def snapshot(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


async def carry_out(tool: Tool, context: ToolContext, given: Arguments) -> str:
    """Prepare and carry out one call as a session does, but without one; return the reply. What would be asked about,
    because it leads out or is protected, is not carried out. An OSError refuses or fails the one call."""
    try:
        planned = tool.prepare(given, context)
        if isinstance(planned, Refusal):
            return planned.text
        if planned.outside or planned.protected or planned.effect == "opaque":
            return ASKED
        preview = planned.preview()
        if isinstance(preview, Refusal):
            return preview.text
        gathered = planned.gather(ATTEMPT, preview)
        if isinstance(gathered, Refusal):
            return gathered.text
        return (await planned.run(running(gathered.evidence))).text
    except OSError as error:
        return str(error)


@pytest.mark.parametrize("attempt", rows(TABLE))
async def test_call_during_an_exchange_stays_inside(tmp_path: Path, attempt: Race) -> None:
    """Rows E3, W1, case 144: over many calls nothing from outside is shown, and nothing outside changes."""
    workspace = ToolWorkspace.under(tmp_path)
    context = workspace.tool_context(processes=SystemProcesses())
    inside, link = arrange(workspace)
    before = snapshot(tmp_path / "outside")
    given = parse_arguments(attempt.call.arguments)
    assert isinstance(given, Arguments)
    with exchanging(inside, link):
        count = COMMANDS if attempt.call.tool == "run_command" else CALLS
        told = [await carry_out(BY_NAME[attempt.call.tool], context, given) for _ in range(count)]
    assert [text for text in told if SECRET in text.replace(SOUGHT, "")] == []
    assert snapshot(tmp_path / "outside") == before


@pytest.mark.parametrize("attempt", rows([Race(read("d/f"))]))
async def test_attachment_during_an_exchange_stays_inside(tmp_path: Path, attempt: Race) -> None:
    """Rows G5, E3: an attached file is read as a tool reads it."""
    workspace = ToolWorkspace.under(tmp_path)
    inside, link = arrange(workspace)
    context = workspace.tool_context()
    with exchanging(inside, link):
        given = [
            read_attachment(context, FileAttachment("d/f"), "utf-16", lambda path: None, 10_000) for _ in range(CALLS)
        ]
    assert all(SECRET not in str(each) for each in given)
