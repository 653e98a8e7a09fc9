"""The folders of one test: the workspace, and the state directory of the server beside it."""

from __future__ import annotations

import shutil
from pathlib import Path

import attrs


@attrs.define
class Workspace:
    """`root` is the workspace folder. Both paths are absolute and have no links in them."""

    root: Path
    state: Path

    @classmethod
    def under(cls, folder: Path, state: Path | None = None) -> Workspace:
        """Create the workspace inside `folder`. The server creates the state directory beside it, or uses `state`."""
        folder = folder.resolve()
        workspace = Workspace(folder / "ws", (state or folder / "state").resolve())
        workspace.root.mkdir(parents=True, exist_ok=True)
        return workspace

    @property
    def base(self) -> Path:
        """The folder that contains the workspace, and by default the state directory."""
        return self.root.parent

    @property
    def uri(self) -> str:
        return self.root.as_uri()

    def session_directory(self, session_id: str) -> Path:
        return self.state / "sessions" / session_id

    def journal(self, session_id: str) -> bytes:
        """The bytes of a session's journal; empty if there is no journal."""
        path = self.session_directory(session_id) / "journal.jsonl"
        return path.read_bytes() if path.exists() else b""

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file of the workspace and create its parent folders; a text is encoded as UTF-8."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def content(self, name: str) -> str | None:
        """The text of a file of the workspace; None if there is no file."""
        path = self.root / name
        return path.read_text() if path.exists() else None

    def files(self) -> dict[str, str]:
        """Name → content of every file of the workspace, including temporary files."""
        found = (path for path in sorted(self.root.rglob("*")) if path.is_file())
        return {path.relative_to(self.root).as_posix(): path.read_bytes().decode() for path in found}

    def keep(self, name: str) -> Path:
        """Copy `base` to a folder beside it; `put_back` takes the copy."""
        copy = self.base.with_name(f"{self.base.name}-{name}")
        shutil.copytree(self.base, copy, symlinks=True)
        return copy

    def put_back(self, copy: Path) -> None:
        """Replace `base` by a copy that `keep` made."""
        shutil.rmtree(self.base)
        shutil.copytree(copy, self.base, symlinks=True)
