"""The client's description of itself: capabilities, folders, encoding. It is frozen, and replaced when folders change.

A client declares abilities of our protocol in `capabilities.experimental.steadyhand`; only the value true counts.
Folders come from `workspaceFolders`, else from `rootUri`, else from `rootPath`.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from steadyhand.domain.text.positions import PositionEncoding
from steadyhand.lsp import lsp_types as types
from steadyhand.session.uris import path_of, uri_of
from steadyhand_values import frozen


@frozen
class WorkspaceFolder:
    """One folder of the workspace."""

    uri: str  # as the client spells it
    name: str
    path: str | None  # absolute; None where it is no file: URI


@frozen
class Client:
    """The editor. Before `initialize` everything is empty."""

    capabilities: types.ClientCapabilities = attrs.field(factory=types.ClientCapabilities)
    name: str | None = None  # clientInfo
    version: str | None = None
    process: int | None = None  # its pid, as it says
    options: object = None  # initializationOptions, JSON
    folders: tuple[WorkspaceFolder, ...] = ()
    encoding: PositionEncoding = "utf-16"
    permission: bool = False  # takes steadyhand/permission/ask
    user_ask: bool = False  # takes steadyhand/user/ask
    save: bool = False  # takes steadyhand/document/save
    document_encoding: bool = False  # takes steadyhand/document/encoding
    secret: bool = False  # takes steadyhand/secret/get
    applies: bool = False  # takes workspace/applyEdit with versions

    def with_folders(self, event: types.WorkspaceFoldersChangeEvent) -> Client:
        """Return the client after a change of folders; a folder that is added again keeps its place."""
        removed = {folder.uri for folder in event.removed}
        kept = [folder for folder in self.folders if folder.uri not in removed]
        known = {folder.uri for folder in kept}
        added = [folder for folder in _folders(event.added) if folder.uri not in known]
        return attrs.evolve(self, folders=(*kept, *added))


def client_of(params: types.InitializeParams, encoding: str) -> Client:
    """Return the client that sent these params. `encoding`: the one that the server chose for it."""
    own = _own_abilities(params.capabilities.experimental)
    about = params.client_info if isinstance(params.client_info, dict) else {}
    return Client(
        capabilities=params.capabilities,
        name=about.get("name"),
        version=about.get("version"),
        process=params.process_id,
        options=params.initialization_options,
        folders=_first_folders(params),
        encoding=_encoding(encoding),
        permission=own.get("permission") is True,
        user_ask=own.get("userAsk") is True,
        save=own.get("save") is True,
        document_encoding=own.get("encoding") is True,
        secret=own.get("secret") is True,
        applies=_applies(params.capabilities.workspace),
    )


def _own_abilities(experimental: object) -> dict[str, object]:
    own = experimental.get("steadyhand") if isinstance(experimental, dict) else None
    return own if isinstance(own, dict) else {}


def _applies(workspace: types.WorkspaceClientCapabilities | None) -> bool:
    """Whether the client takes edits with a version. One that creates and renames files takes them too: both have the
    same place in an edit."""
    if workspace is None or workspace.apply_edit is not True or not isinstance(workspace.workspace_edit, dict):
        return False
    return workspace.workspace_edit.get("documentChanges") is True or bool(
        workspace.workspace_edit.get("resourceOperations")
    )


def _encoding(name: str) -> PositionEncoding:
    match name:
        case "utf-8":
            return "utf-8"
        case "utf-32":
            return "utf-32"
        case _:
            return "utf-16"


def _first_folders(params: types.InitializeParams) -> tuple[WorkspaceFolder, ...]:
    if params.workspace_folders is not None:
        return _folders(params.workspace_folders)
    uri = params.root_uri
    if uri is None and params.root_path is not None and params.root_path.startswith("/"):
        uri = uri_of(params.root_path)
    if uri is None:
        return ()
    return (WorkspaceFolder(uri, uri.rstrip("/").rpartition("/")[2], path_of(uri)),)


def _folders(folders: Iterable[types.WorkspaceFolder]) -> tuple[WorkspaceFolder, ...]:
    unique = {folder.uri: WorkspaceFolder(folder.uri, folder.name, path_of(folder.uri)) for folder in folders}
    return tuple(unique.values())
