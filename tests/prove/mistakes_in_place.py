"""Mistakes in writing in place: patches of the product's own functions; see tests/prove/variants.py."""

from __future__ import annotations

from typing import Any

from steadyhand.domain.permissions import policy
from steadyhand.domain.recovery.postcondition import PathCheck, check_path
from steadyhand.session.calls import permission
from steadyhand.tools.writes import postcondition_check
from steadyhand.tools.writes.replace_file import NotReplaced
from steadyhand.tools.writes.write_in_place import _InPlaceWrite
from tests.prove.mistakes import replaced
from tests.support.sim_disk import SimDisk


def not_synced() -> None:
    def write(self: Any, content: bytes) -> None:
        self._disk.move_to(self._file, 0)
        self._disk.write(self._file, content)
        self._disk.truncate(self._file, len(content))

    replaced(_InPlaceWrite, "_write", write)


def mix_is_unchanged() -> None:
    check = check_path

    def hopeful(evidence: Any, now: Any) -> PathCheck:
        found = check(evidence, now)
        return PathCheck("unchanged") if evidence.in_place and found.check == "conflict" else found

    replaced(postcondition_check, "check_path", hopeful)


def not_put_back() -> None:
    replaced(_InPlaceWrite, "_put_back", lambda self, old, error: NotReplaced("not_written", "It failed."))


def failed_sync_forgotten() -> None:
    replaced(SimDisk, "reread", lambda self, file: None)


def not_asked() -> None:
    replaced(permission, "admission_of", lambda session, facts: policy.Admit())
