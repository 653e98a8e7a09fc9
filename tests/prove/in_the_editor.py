"""A scenario in which files are open in the editor: edits go through it, and it saves without a sync (row V2).

The log says what text the editor has: `("buffer", path, text)`. A kill leaves the editor with its text; a power loss
ends both.
"""

from __future__ import annotations

import attrs

from steadyhand.ports.editor import EditAnswer, OpenDocument
from tests.prove.simulated_server import FIRST, Scenario, SimulatedServer, many
from tests.prove.truth import WORK, Truth
from tests.support.editor import ScriptedEditor
from tests.support.sim_disk import SimDisk

EDITOR_PID = 77
OPEN = (f"{WORK}/old.txt", f"{WORK}/edited.txt", f"{WORK}/notes.txt")
TYPED = "a note\ntyped\n"


@attrs.frozen
class Buffers:
    """The documents of one editor over a simulated disk."""

    editor: ScriptedEditor
    disk: SimDisk

    def open_all(self) -> None:
        self.editor.editor_pid = EDITOR_PID
        self.editor.on_apply, self.editor.on_save = self.apply, self.save
        for path in OPEN:
            text = FIRST[path].decode()
            self._put(path, OpenDocument(text, 1, False, saved_text=text))

    def _put(self, path: str, document: OpenDocument) -> None:
        self.editor.documents[path] = document
        self.disk.mark(("buffer", path, document.text))

    def type(self, path: str, text: str) -> None:
        document = self.editor.documents[path]
        unsaved = text != document.saved_text
        self._put(path, attrs.evolve(document, text=text, version=document.version + 1, unsaved=unsaved))

    async def apply(self, path: str, version: int, text: str) -> EditAnswer:
        if self.editor.documents[path].version != version:
            return EditAnswer("refused", "it has another version")
        self.type(path, text)
        return EditAnswer("applied")

    async def save(self, path: str, version: int) -> bool:
        document = self.editor.documents[path]
        self.disk.save_unsynced(path, document.text.encode())
        self.editor.documents[path] = attrs.evolve(document, unsaved=False, saved_text=document.text)
        return document.version == version


async def _edited(server: SimulatedServer) -> None:
    """Two files are changed and saved through the editor, and unsaved text is edited where it is."""
    buffers = Buffers(server.editor, server.disk)
    buffers.open_all()
    buffers.type(f"{WORK}/notes.txt", TYPED)
    await server.turn(
        "replace one with two in edited.txt\n"
        f'write old.txt with "{many("changed")}"\n'
        "replace typed with edited in notes.txt"
    )


def editor_after(truth: Truth) -> ScriptedEditor:
    """The editor after a kill of the server: it has its text."""
    editor = ScriptedEditor()
    for path, text in truth.buffers.items():
        editor.documents[path] = OpenDocument(text, 1, None)
    return editor


IN_THE_EDITOR = Scenario("in the editor", _edited)
