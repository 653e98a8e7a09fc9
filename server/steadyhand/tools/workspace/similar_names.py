"""Entries whose names differ from a name in case or Unicode form alone: what a reply says of them (row W12). Blocks."""

from __future__ import annotations

from steadyhand.domain.text.folding import differ_in_form_alone, fold
from steadyhand.domain.views.render import display_path
from steadyhand.tools.contract import Refusal, ToolContext
from steadyhand.tools.workspace.paths import ResolvedPath, one_line, open_folder

SUGGESTED_MAX = 5
"""Entries that a refusal or a reply names."""


def missing_note(tool_context: ToolContext, located: ResolvedPath) -> str:
    """Return the end of a sentence on a missing path: the entries that may be meant, or nothing."""
    found = [one_line(display_path(path, tool_context.root)) for path in _similar_paths(tool_context, located)]
    if not found:
        return ""
    return f" Did you mean {' or '.join(part for part in (', '.join(found[:-1]), found[-1]) if part)}?"


def refuse_other_form(tool_context: ToolContext, located: ResolvedPath, besides: str | None = None) -> Refusal | None:
    """Refuse a new name that exists in another Unicode form: nobody could tell the two apart.

    `besides`: the resolved path of an entry that does not count, because it is moved away."""
    folder, name = _first_missing(located)
    for one in _names(tool_context, folder):
        path = "/" + "/".join((*folder, one))
        if differ_in_form_alone(one, name) and path != besides:
            shown, other = (one_line(display_path(text, tool_context.root)) for text in (located.resolved, path))
            text = f"{shown} does not exist, but the same name in another Unicode form does. Did you mean {other}?"
            return Refusal("not_found", text)
    return None


def twins_note(tool_context: ToolContext, located: ResolvedPath, besides: str | None = None) -> str:
    """Return what to say once the missing path was created beside entries that differ in case; nothing without them.

    `besides`: as for `refuse_other_form`."""
    parent, name = _first_missing(located)
    wanted = fold(name)
    try:
        with open_folder(tool_context, parent) as folder:
            listed = [one for one in tool_context.disk.names(folder) if fold(one) == wanted and one != name]
            others = [one for one in listed if "/" + "/".join((*parent, one)) != besides]
            kinds = {seen.kind for one in others if (seen := tool_context.disk.look(folder, one)) is not None}
    except OSError:
        return ""
    if not others:
        return ""
    kinds.add("file" if located.missing_count == 1 else "folder")
    names = sorted([*others[:SUGGESTED_MAX], name])
    what = "files" if kinds == {"file"} else "folders" if kinds == {"folder"} else "entries"
    count = "two" if len(names) == 2 else str(len(names))
    shown = [one_line(display_path("/" + "/".join((*parent, one)), tool_context.root)) for one in names]
    return f" There are now {count} {what}: {', '.join(shown[:-1])} and {shown[-1]}."


def _similar_paths(tool_context: ToolContext, located: ResolvedPath) -> list[str]:
    """Return what exists and differs from a missing path in case or Unicode form alone, at most `SUGGESTED_MAX`."""
    depth = len(located.parts) - located.missing_count
    found = [located.parts[:depth]]
    for name in located.parts[depth:]:
        wanted = fold(name)
        found = [(*folder, one) for folder in found for one in _names(tool_context, folder) if fold(one) == wanted]
        found = found[:SUGGESTED_MAX]
    return ["/" + "/".join(parts) for parts in found]


def _first_missing(located: ResolvedPath) -> tuple[tuple[str, ...], str]:
    """Return the last folder that exists, and the first name that does not."""
    depth = len(located.parts) - located.missing_count
    return located.parts[:depth], located.parts[depth]


def _names(tool_context: ToolContext, parts: tuple[str, ...]) -> list[str]:
    """Return the names in a folder; none if it cannot be listed, or is none."""
    try:
        with open_folder(tool_context, parts) as folder:
            return tool_context.disk.names(folder)
    except OSError:
        return []
