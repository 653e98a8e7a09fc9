"""An editor with buffers: documents with versions, that it changes and saves as it is told."""

from __future__ import annotations

from pathlib import Path

import attrs

from steadyhand.ports.editor import EditAnswer, OpenDocument
from tests.support.editor import ScriptedEditor


def write(path: Path, text: str) -> None:
    path.write_text(text)


class Buffers:
    """The open documents of a `ScriptedEditor`. `applies`, `saves`: what the editor can do.

    `habit` says what it does with an edit: `applies`, `refuses`, says `lies` that it applied, `loses` the answer after
    it applied, is `dead`: loses the answer and does nothing."""

    def __init__(self, editor: ScriptedEditor, applies: bool = True, saves: bool = True) -> None:
        self.editor = editor
        self.habit = "applies"
        self.format = ""  # what it adds to a text while it saves
        self.saves = "saves"  # or "refuses", "lies"
        self.applied: list[tuple[int, str]] = []
        self.saved: list[int] = []
        editor.on_apply = self.apply if applies else None
        editor.on_save = self.save if saves else None

    def open(self, path: Path) -> None:
        """Open a file of the disk."""
        text = path.read_text()
        self.editor.documents[str(path)] = OpenDocument(text, 1, False, saved_text=text)

    def type(self, path: Path, text: str) -> None:
        """The person types: the document has this text."""
        document = self.editor.documents[str(path)]
        unsaved = text != document.saved_text
        self.editor.documents[str(path)] = attrs.evolve(
            document, text=text, version=document.version + 1, unsaved=unsaved
        )

    def close(self, path: Path) -> None:
        del self.editor.documents[str(path)]

    def text(self, path: Path) -> str:
        return self.editor.documents[str(path)].text

    async def apply(self, path: str, version: int, text: str) -> EditAnswer:
        document = self.editor.documents.get(path)
        if document is None or document.version != version or self.habit == "refuses":
            return EditAnswer("refused", "the version is another one")
        self.applied.append((version, text))
        if self.habit in ("lies", "dead"):
            return EditAnswer("lost", "its text does not show it")
        self.type(Path(path), text)
        return EditAnswer("applied") if self.habit == "applies" else EditAnswer("lost", "no answer")

    async def save(self, path: str, version: int) -> bool:
        document = self.editor.documents.get(path)
        if document is None or document.version != version or self.saves == "refuses":
            return False
        self.saved.append(version)
        if self.saves == "lies":
            return True
        text = document.text + self.format
        write(Path(path), text)
        document = attrs.evolve(document, text=text, unsaved=False, saved_text=text, first_text=None)
        self.editor.documents[path] = document
        return True
