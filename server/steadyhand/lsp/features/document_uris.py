"""The URIs under which this client may have a file open: the folder's spelling is the client's (case 164). Blocks.

Another client, or another path of the same folder, may have created the session. A folder that the client has open
under two paths gives two URIs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steadyhand.domain.records.place import Place, names_below
from steadyhand.lsp.state.client_capabilities import WorkspaceFolder
from steadyhand.ports.disk import Disk
from steadyhand.session.inspection.effect_places import EffectPlace
from steadyhand.session.uris import path_of, quote_path, uri_of
from steadyhand.tools.workspace.places import find_place


def document_uris(
    disk: Disk, places: Iterable[EffectPlace], workspace: str | None, folders: Sequence[WorkspaceFolder]
) -> dict[str, tuple[str, ...]]:
    """Return path → its URIs, at least one. `workspace`: the URI that the session was created with."""
    opened = [(folder.uri, find_place(disk, folder.path)) for folder in folders if folder.path is not None]
    found: dict[str, tuple[str, ...]] = {}
    for place in places:
        if place.path not in found:
            here = _uris_in(find_place(disk, place.path), opened)
            found[place.path] = here or (_uri_in_workspace(workspace, place),)
    return found


def _uris_in(place: Place, folders: Iterable[tuple[str, Place]]) -> tuple[str, ...]:
    uris: dict[str | None, str] = {}
    for uri, folder in folders:
        below = names_below(place, folder)
        if below is not None:
            whole = "/".join((uri.rstrip("/"), *(quote_path(name) for name in below)))
            uris.setdefault(path_of(whole), whole)
    return tuple(uris.values())


def _uri_in_workspace(workspace: str | None, place: EffectPlace) -> str:
    if workspace is None or place.shown_path.startswith("/"):
        return uri_of(place.path)
    return f"{workspace.rstrip('/')}/{quote_path(place.shown_path)}"
