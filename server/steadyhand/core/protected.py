"""Names that ask in every mode, wherever they stand in a path: `.git`, `.vscode`, `.env*`, shell start files (row G2).

A change there can make something run later that nobody allowed. Deliberately absent: what the names lead to; links are
`tools.place`'s.
"""

from __future__ import annotations

_names = {
    *(".bash_aliases", ".bash_login", ".bash_logout", ".bash_profile", ".bashrc", ".cshrc"),
    *(".kshrc", ".login", ".mkshrc", ".profile", ".tcshrc", ".zlogin"),
    *(".zlogout", ".zprofile", ".zshenv", ".zshrc", "config.fish"),
}
_folders = {".git", ".vscode"}


def asks_always(name: str) -> bool:
    """Whether a path with this component asks."""
    # Where case does not count, `.GIT` is `.git`; asking once too often elsewhere costs nothing.
    folded = name.lower()
    return folded in _folders or folded in _names or folded.startswith(".env")
