"""Paths that begin with the name of a folder of the workspace: `@name/src/x` (row S11). Blocks."""

from __future__ import annotations

from steadyhand.tools.contract import ToolContext


def paths_meant(tool_context: ToolContext, asked: str) -> list[str]:
    """Return the paths that a path of a call may mean, as a rule one.

    Several: two folders have the name, or the session's folder has an entry that is called so. The session's own folder
    has a name where it is not alone: which of them is its own, the user need not know. Raises OSError."""
    first, slash, rest = asked.partition("/")
    root = tool_context.root
    if not first.startswith("@") or root is None:
        return [asked]
    named = [other.path for other in tool_context.others if other.name == first[1:]]
    if tool_context.own_name == first[1:]:
        named.insert(0, root)
    if not named:
        return [asked]
    folder = tool_context.disk.open_folder(root)
    try:
        if tool_context.disk.look(folder, first) is not None:
            named.append(f"{root.rstrip('/')}/{first}")
    finally:
        tool_context.disk.close(folder)
    return [f"{path.rstrip('/')}/{rest}" if slash else path for path in named]
