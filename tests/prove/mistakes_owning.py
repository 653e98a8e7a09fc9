"""Mistakes in how an owner knows that its lock, folder and journal still stand (cases 161, 162).

Somebody could have written each of them; tests/prove/variants.py says in words what it is and which layer catches it.
"""

from __future__ import annotations

from typing import Any

import attrs

from steadyhand.journal import ownership
from steadyhand.journal.journal import Journal
from steadyhand.journal.ownership import OWNER_LOCK, Ownership
from steadyhand.ports.disk import File
from steadyhand.session.session_feed import SessionFeed
from steadyhand.session.session_log import SessionLog
from tests.prove.mistakes import Patch, replaced
from tests.support.sim_disk import SimDisk


def unchecked(before_write: bool) -> Patch:
    """One of the two checks of an append is left out. The size has grown at the second one."""

    def apply() -> None:
        require = Journal._require_ownership

        def lax(self: Any) -> None:
            is_before = self._size == self.__dict__.get("checked_size", 0)
            self.checked_size = self._size
            if is_before != before_write:
                require(self)

        replaced(Journal, "_require_ownership", lax)

    return apply


def body_unchecked() -> None:
    async def trusting(self: SessionLog) -> bool:
        return True

    replaced(SessionLog, "may_act", trusting)


def change_unchecked() -> None:
    replaced(SessionLog, "may_act_blocking", lambda self: True)


def created_without_append() -> None:
    create = SimDisk.create

    def at_a_position(self: SimDisk, folder: Any, name: str, mode: int) -> File:
        file = create(self, folder, name, mode)
        self._handles[file].appends = False
        return file

    replaced(SimDisk, "create", at_a_position)


def not_compared(name: str) -> Patch:
    """The lock (or the journal) is not compared with what was taken."""

    def apply() -> None:
        loss = ownership._file_loss

        def partly(seen: Any, identity: Any, what: str) -> Any:
            return None if what.endswith(name) else loss(seen, identity, what)

        replaced(ownership, "_file_loss", partly)

    return apply


lock_not_compared = not_compared(OWNER_LOCK)
journal_not_compared = not_compared("journal.jsonl")


def folder_not_compared() -> None:
    find_loss = Ownership.find_loss

    def by_handle(self: Any, size: int) -> Any:
        disk, held = self._disk, self._held
        self._disk = _Standing(disk, disk.look_open(held.folder))
        try:
            return find_loss(self, size)
        finally:
            self._disk = disk

    replaced(Ownership, "find_loss", by_handle)


class _Standing:
    """A disk on which the path of a folder always leads to the open one."""

    def __init__(self, disk: Any, folder: Any) -> None:
        self._disk, self._folder = disk, folder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._disk, name)

    def look_path(self, path: str) -> Any:
        return self._folder


def names_not_counted() -> None:
    loss = ownership._file_loss

    def single(seen: Any, identity: Any, what: str) -> Any:
        return loss(None if seen is None else attrs.evolve(seen, links=1), identity, what)

    replaced(ownership, "_file_loss", single)


def loss_not_told() -> None:
    tell = SessionFeed.notify_message

    def quiet(self: SessionFeed, level: Any, text: str) -> None:
        if level != "error":
            tell(self, level, text)

    replaced(SessionFeed, "notify_message", quiet)
