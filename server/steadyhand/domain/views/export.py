"""Export a session as one text: Markdown for people, JSON for programs. Pure.

Both forms are made from the conversation as it is shown: uncertain calls are marked as such, and the reply of a command
follows its call. Only withdrawn messages are left out. Nothing is redacted unless it is asked for (`secrets`), because
the reader owns the files.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import attrs

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.records.prompt import attachment_name
from steadyhand.domain.text.fences import code_block
from steadyhand.domain.views.redacted import redact_messages, redact_text
from steadyhand.domain.views.render import LiveState, message_views
from steadyhand.domain.views.serialize import to_plain
from steadyhand.domain.views.types import CallView, MessageView, SessionView

FORMAT_VERSION = 1
_SPEAKER = {"user": "You", "assistant": "Steadyhand", "notice": "Notice"}


def as_json(session: SessionView, ledger: Ledger, root: str | None, secrets: Sequence[str] | None = None) -> str:
    """Return the session and its messages as one JSON object; `format` is `FORMAT_VERSION`."""
    session, shown = _shown(session, ledger, root, secrets)
    content = {"format": FORMAT_VERSION, "session": to_plain(session), "messages": to_plain(shown)}
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def as_markdown(session: SessionView, ledger: Ledger, root: str | None, secrets: Sequence[str] | None = None) -> str:
    """Return the session as Markdown, one heading for each message and call."""
    session, shown = _shown(session, ledger, root, secrets)
    title = session.title or f"Session {session.session_id[:8]}"
    parts = [f"# {_one_line(title)}", f"{session.created} · {session.workspace or 'no folder'}"]
    parts += [_message(message) for message in shown]
    return "\n\n".join(parts) + "\n"


def _shown(
    session: SessionView, ledger: Ledger, root: str | None, secrets: Sequence[str] | None
) -> tuple[SessionView, tuple[MessageView, ...]]:
    """Return the session and its messages; without credentials if `secrets`, the known ones, are given (case 106)."""
    shown, _ = message_views(ledger, len(ledger.said), LiveState(), root)
    if secrets is None:
        return session, shown
    return attrs.evolve(session, title=redact_text(session.title, secrets)), redact_messages(shown, secrets)


def _message(message: MessageView) -> str:
    parts = [f"## {_SPEAKER[message.role]} · {message.at}"]
    if message.text:
        parts.append(message.text)
    if message.attachments:
        parts.append("\n".join(f"- attached: {_one_line(attachment_name(one))}" for one in message.attachments))
    parts += [_call(call) for call in message.calls or ()]
    return "\n\n".join(parts)


def _call(call: CallView) -> str:
    reason = f" ({call.reason})" if call.reason else ""
    settled = f", settled: {call.settled}" if call.settled else ""
    parts = [f"### {_one_line(call.title)}: {call.state}{reason}{settled}", code_block(call.arguments, "json")]
    if call.reply is not None:
        parts.append(code_block(call.reply.text))
    return "\n\n".join(parts)


def _one_line(text: str) -> str:
    return " ".join(text.split())
