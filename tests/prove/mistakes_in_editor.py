"""Mistakes in changes through the editor: patches of the product's own functions; see tests/prove/variants.py."""

from __future__ import annotations

from typing import Any

from steadyhand.domain.recovery.postcondition import CLOSED, PathCheck, check_buffer
from steadyhand.session.inspection import file_state
from steadyhand.tools.writes import buffer_write, postcondition_check
from tests.prove.mistakes import replaced


def closed_is_unchanged() -> None:
    def hopeful(*known: Any) -> PathCheck:
        found = check_buffer(*known)
        return PathCheck("unchanged") if found.reason == CLOSED else found

    replaced(postcondition_check, "check_buffer", hopeful)


def fenced_while_it_lives() -> None:
    replaced(file_state, "is_editor_living", lambda processes, attempt: False)


def save_not_synced() -> None:
    replaced(buffer_write, "make_durable", lambda tool_context, evidence: True)


def text_is_durable() -> None:
    replaced(file_state, "is_durable_on_disk", lambda tool_context, evidence: True)
