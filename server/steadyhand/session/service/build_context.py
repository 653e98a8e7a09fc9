"""Build the context that all sessions of a process share, with its threads and its store of permissions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import anyio

from steadyhand.domain.settings import Settings
from steadyhand.ports.disk import Disk
from steadyhand.ports.editor import Editor
from steadyhand.ports.encodings import DetectEncodings, no_detection
from steadyhand.ports.model import Models
from steadyhand.ports.processes import Processes
from steadyhand.ports.system import Clock, Ids, TextFilter
from steadyhand.session.context import OpenFolder, SessionContext
from steadyhand.session.known_folders import KnownFolders
from steadyhand.session.private_state import PrivateState
from steadyhand.session.storage.grants import Grants
from steadyhand.session.threads import DiskThreads
from steadyhand.tools.contract import Tool


def build_context(
    *,
    disk: Disk,
    processes: Processes,
    clock: Clock,
    ids: Ids,
    models: Models,
    editor: Editor,
    tools: dict[str, Tool],
    version: str,
    state_directory: str,
    spawn: Callable[[Callable[[], Awaitable[None]], str], None],
    settings: Settings | None = None,
    text_filter: TextFilter | None = None,
    detect: DetectEncodings = no_detection,
    window_folders: Callable[[], Sequence[str]] = tuple,
    open_folders: Callable[[], Sequence[OpenFolder]] = tuple,
    requests_again_max: int = 4,
    pause: Callable[[float], Awaitable[None]] = anyio.sleep,
) -> SessionContext:
    """Return the context for these ports. `state_directory`: absolute, links resolved."""
    threads = DiskThreads()
    private_state = PrivateState(disk, state_directory)
    return SessionContext(
        disk=disk,
        processes=processes,
        clock=clock,
        ids=ids,
        models=models,
        editor=editor,
        tools=tools,
        version=version,
        state_directory=state_directory,
        private_state=private_state,
        folders=KnownFolders(disk),
        spawn=spawn,
        threads=threads,
        grants=Grants(disk, ids, editor, private_state, state_directory, threads.run),
        settings=settings or Settings(),
        text_filter=text_filter,
        detect=detect,
        window_folders=window_folders,
        open_folders=open_folders,
        requests_again_max=requests_again_max,
        pause=pause,
    )
