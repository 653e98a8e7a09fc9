"""Names in a git directory that choose programs, or where git reads from (row O1).

A confined command must not change them: git runs hooks, filters and other programs that they name, later and outside
the sandbox. The daily commands of git (commit, check out, merge, rebase, stash) write none of them.
"""

from __future__ import annotations

GIT_ENTRIES = ("config", "config.worktree", "hooks", "info/attributes", "commondir", "objects/info/alternates")
"""Paths below a git directory; `hooks` with all that is in it."""
GIT_DIRECTORY_PARENTS = ("modules", "worktrees")
"""Folders of a git directory that hold others: those of submodules, at any depth, and of linked worktrees."""
