"""What a prompt and a steer may be, before anything is recorded of them (rows D1, S8)."""

from __future__ import annotations

from steadyhand.domain.errors import invalid_params
from steadyhand.domain.records.prompt import Prompt

PROMPT_BYTES_MAX = 1024 * 1024
STEER_BYTES_MAX = 64 * 1024
COMMANDS_WHILE_STEERING = ("/stop", "/recovery")
"""Slash commands that may be sent in the place of a steer. They run beside the turn, as always."""


def require_valid(sent: Prompt) -> None:
    """Raise Refused if the prompt cannot become a turn."""
    if len(sent.text.encode("utf-8", "replace")) > PROMPT_BYTES_MAX:
        raise invalid_params("$.text", f"longer than {PROMPT_BYTES_MAX} bytes")
    if not sent.text.strip():
        raise invalid_params("$.text", "empty")
    if sent.aside and sent.command:
        raise invalid_params("$.aside", "a slash command asks no model")
    if sent.again is not None and (sent.aside or sent.command or sent.attachments):
        raise invalid_params("$.again", "the prompt is sent again as it was, without attachments of its own")


def require_short(text: str) -> None:
    """Raise Refused if the text is too long for a steer."""
    if len(text.encode("utf-8", "replace")) > STEER_BYTES_MAX:
        raise invalid_params("$.text", f"longer than {STEER_BYTES_MAX} bytes")


def require_can_steer(text: str) -> None:
    """Raise Refused if no model may get the text as a steer."""
    require_short(text)
    if text.startswith("/"):
        raise invalid_params("$.text", f"a turn takes no slash command but {' and '.join(COMMANDS_WHILE_STEERING)}")
