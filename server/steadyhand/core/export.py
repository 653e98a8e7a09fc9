"""A session as one text: Markdown for reading, JSON for programs. Pure.

Both are made from the conversation as it is shown: what is uncertain says so, and a command's reply stands under it.
Nothing is left out but what was withdrawn, and nothing is redacted: the reader owns the files.
"""

from __future__ import annotations

import json

from steadyhand.core.fences import fenced
from steadyhand.core.ledger import Ledger
from steadyhand.core.plain import plain
from steadyhand.core.prompt import attachment_name
from steadyhand.core.show import Live, messages
from steadyhand.core.views import CallView, MessageView, SessionView

FORMAT_VERSION = 1
_SPEAKER = {"user": "You", "assistant": "Steadyhand", "notice": "Notice"}


def as_json(session: SessionView, ledger: Ledger, root: str | None) -> str:
    shown, _ = messages(ledger, len(ledger.said), Live(), root)
    content = {"format": FORMAT_VERSION, "session": plain(session), "messages": plain(shown)}
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def as_markdown(session: SessionView, ledger: Ledger, root: str | None) -> str:
    shown, _ = messages(ledger, len(ledger.said), Live(), root)
    title = session.title or f"Session {session.session_id[:8]}"
    parts = [f"# {_one_line(title)}", f"{session.created} · {session.workspace or 'no folder'}"]
    parts += [_message(message) for message in shown]
    return "\n\n".join(parts) + "\n"


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
    parts = [f"### {_one_line(call.title)}: {call.state}{reason}{settled}", fenced(call.arguments, "json")]
    if call.reply is not None:
        parts.append(fenced(call.reply.text))
    return "\n\n".join(parts)


def _one_line(text: str) -> str:
    return " ".join(text.split())
