"""All tools by name; the only place that lists them.

`intended_content` makes the intended bytes of an attempt again, for recovery: from the stored arguments and the stored
content before. They are used only if their digest is the recorded one.
"""

from __future__ import annotations

from collections.abc import Mapping

from steadyhand.domain.model.messages import ToolOffer
from steadyhand.domain.permissions.rules import Subject
from steadyhand.domain.records.identity import BadArguments, parse_arguments, sha256
from steadyhand.domain.records.record import Evidence
from steadyhand.domain.text.decoding import FileText, NewText, decode_as, new_text
from steadyhand.tools.builtin.ask_user import AskUser
from steadyhand.tools.builtin.command_output import CommandOutput
from steadyhand.tools.builtin.crash import Crash
from steadyhand.tools.builtin.delete_file import DeleteFile
from steadyhand.tools.builtin.diagnostics import Diagnostics
from steadyhand.tools.builtin.edit_file import EditFile
from steadyhand.tools.builtin.find_files import FindFiles
from steadyhand.tools.builtin.inspect_effect import InspectEffect
from steadyhand.tools.builtin.list_files import ListFiles
from steadyhand.tools.builtin.move_file import MoveFile
from steadyhand.tools.builtin.read_file import ReadFile
from steadyhand.tools.builtin.run_command import RunCommand
from steadyhand.tools.builtin.search_text import SearchText
from steadyhand.tools.builtin.settle_effect import SettleEffect
from steadyhand.tools.builtin.stop_command import StopCommand
from steadyhand.tools.builtin.todo import Todo
from steadyhand.tools.builtin.write_file import WriteFile
from steadyhand.tools.contract import CHECKPOINT_BYTES_MAX, Refusal, Tool, ToolContext
from steadyhand.tools.writes import restore
from steadyhand.tools.writes.blob_store import BlobStore

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
PROVIDER_TOOLS: Mapping[str, Mapping[str, Tool]] = {"practice": {Crash.name: Crash()}}
"""Provider → the tools that its models have besides `TOOLS`; no other model is offered them or can call them."""


def _subject_of(name: str) -> Subject:
    if name == RunCommand.name:
        return "command"
    with_a_path = (DeleteFile, Diagnostics, EditFile, FindFiles, ListFiles, MoveFile, ReadFile, SearchText, WriteFile)
    return "path" if name in {tool.name for tool in with_a_path} else "none"


SUBJECTS: Mapping[str, Subject] = {name: _subject_of(name) for name in (*BY_NAME, Crash.name)}
"""Tool name → what the pattern of a permission rule is compared with."""

_WITHOUT_TRANSFORM = {MoveFile.name, DeleteFile.name, *restore.TAKE_BACKS}
_TRANSFORMS = {tool.name: tool.content_transform for tool in (_edit_file, _write_file)}


def intended_content(tool_context: ToolContext, tool: str, arguments: str, evidence: Evidence) -> bytes | None:
    """Return the bytes that a call of `tool` with this argument text intended for the path; None if they cannot be
    made.
    """
    store = BlobStore(tool_context.disk, tool_context.session_folder, "checkpoints")
    if tool in _WITHOUT_TRANSFORM:
        # Moved content is stored under its own digest; a deletion intends no content.
        return b"" if evidence.intended is None else store.read(evidence.intended, CHECKPOINT_BYTES_MAX)
    parsed = parse_arguments(arguments)
    if tool not in _TRANSFORMS or isinstance(parsed, BadArguments):
        return None
    transform = _TRANSFORMS[tool](parsed)
    if transform is None:
        return None
    before: FileText | NewText = new_text(evidence.encoding)
    if evidence.checkpoint is not None:
        stored = store.read(evidence.checkpoint, CHECKPOINT_BYTES_MAX)
        text = None if stored is None else decode_as(stored, evidence.encoding)
        if not isinstance(text, FileText):
            return None
        before = text
    made = transform(before)
    if isinstance(made, Refusal) or sha256(made.content) != evidence.intended:
        return None
    return made.content
