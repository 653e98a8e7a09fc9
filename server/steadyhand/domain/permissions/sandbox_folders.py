"""Compare folders by their spelling, for what a confined command may write to (row O1).

Paths are absolute, with `/` between names. Links are not followed: the caller passes resolved paths where that matters.
"""

from __future__ import annotations

import posixpath

CACHES = (".cache", ".npm", ".cargo", "go/pkg", ".gradle", ".m2", ".local/share/pnpm", ".yarn", ".nuget", ".rustup")
"""Folders of the home folder in which package managers and build tools keep what they fetched."""


def is_at_or_above(folder: str, path: str) -> bool:
    """Return whether `path` is this folder or is in it."""
    upper, lower = _names(folder), _names(path)
    return lower[: len(upper)] == upper


def _names(path: str) -> list[str]:
    return [name for name in posixpath.normpath(path).split("/") if name]
