"""All tools there are, by name; the one place that lists them.

`intended_content` makes the intended bytes of an attempt again, for recovery: from the stored arguments and the kept
content before, and believed only if their digest is the recorded one.
"""

from __future__ import annotations

from collections.abc import Mapping

from steadyhand.core.identity import BadArguments, parse_arguments, sha256
from steadyhand.core.model import ToolOffer
from steadyhand.core.record import Evidence
from steadyhand.core.rules import Subject
from steadyhand.core.text_edit import FileText, decode
from steadyhand.tools import restore
from steadyhand.tools.ask_user import AskUser
from steadyhand.tools.command_output import CommandOutput
from steadyhand.tools.content import Contents
from steadyhand.tools.delete_file import DeleteFile
from steadyhand.tools.diagnostics import Diagnostics
from steadyhand.tools.edit_file import EditFile
from steadyhand.tools.find_files import FindFiles
from steadyhand.tools.inspect_effect import InspectEffect
from steadyhand.tools.list_files import ListFiles
from steadyhand.tools.move_file import MoveFile
from steadyhand.tools.read_file import ReadFile
from steadyhand.tools.run_command import RunCommand
from steadyhand.tools.search_text import SearchText
from steadyhand.tools.settle_effect import SettleEffect
from steadyhand.tools.stop_command import StopCommand
from steadyhand.tools.todo import Todo
from steadyhand.tools.tool import Ground, Refusal, Tool, checkpoint_bytes_max
from steadyhand.tools.write_file import WriteFile

_edit_file, _write_file = EditFile(), WriteFile()
TOOLS: tuple[Tool, ...] = (
    AskUser(),
    CommandOutput(),
    DeleteFile(),
    Diagnostics(),
    _edit_file,
    FindFiles(),
    InspectEffect(),
    ListFiles(),
    MoveFile(),
    ReadFile(),
    RunCommand(),
    SearchText(),
    SettleEffect(),
    StopCommand(),
    Todo(),
    _write_file,
)
BY_NAME: Mapping[str, Tool] = {tool.name: tool for tool in TOOLS}
READING_TOOLS: tuple[Tool, ...] = tuple(tool for tool in TOOLS if tool.effect == "reads")
OFFERS: tuple[ToolOffer, ...] = tuple(tool.offer for tool in TOOLS)


def _subject(name: str) -> Subject:
    if name == RunCommand.name:
        return "command"
    with_a_path = (DeleteFile, Diagnostics, EditFile, FindFiles, ListFiles, MoveFile, ReadFile, SearchText, WriteFile)
    return "path" if name in {tool.name for tool in with_a_path} else "none"


SUBJECTS: Mapping[str, Subject] = {name: _subject(name) for name in BY_NAME}
"""What the pattern of a rule is compared with, for every tool."""

_WITHOUT_RECIPE = {MoveFile.name, DeleteFile.name, restore.NAME}
_RECIPES = {tool.name: tool.recipe for tool in (_edit_file, _write_file)}


def intended_content(ground: Ground, tool: str, arguments: str, evidence: Evidence) -> bytes | None:
    """The bytes that a call of `tool` with this argument text meant for the path; None if they cannot be told."""
    store = Contents(ground.disk, ground.session_folder, "checkpoints")
    if tool in _WITHOUT_RECIPE:
        # What is moved is kept under its own digest, and where nothing is intended there is nothing to make.
        return b"" if evidence.intended is None else store.read(evidence.intended, checkpoint_bytes_max)
    parsed = parse_arguments(arguments)
    if tool not in _RECIPES or isinstance(parsed, BadArguments):
        return None
    recipe = _RECIPES[tool](parsed)
    if recipe is None:
        return None
    before: FileText | None = None
    if evidence.checkpoint is not None:
        kept = store.read(evidence.checkpoint, checkpoint_bytes_max)
        text = None if kept is None else decode(kept)
        if not isinstance(text, FileText):
            return None
        before = text
    made = recipe(before)
    if isinstance(made, Refusal) or sha256(made.content) != evidence.intended:
        return None
    return made.content
