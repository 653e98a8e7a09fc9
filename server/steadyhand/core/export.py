"""A session as one text: Markdown for reading, JSON for programs. Pure.

Both are made from the conversation as it is shown: what is uncertain says so, and a command's reply stands under it.
Nothing is left out but what was withdrawn, and nothing is redacted: the reader owns the files.
"""

from __future__ import annotations

import json

from steadyhand.core.ledger import Ledger
from steadyhand.core.plain import plain
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
    parts += [_call(call) for call in message.calls or ()]
    return "\n\n".join(parts)


def _call(call: CallView) -> str:
    reason = f" ({call.reason})" if call.reason else ""
    settled = f", settled: {call.settled}" if call.settled else ""
    parts = [f"### {_one_line(call.title)}: {call.state}{reason}{settled}", _fenced(call.arguments, "json")]
    if call.reply is not None:
        parts.append(_fenced(call.reply.text, ""))
    return "\n\n".join(parts)


def _fenced(text: str, language: str) -> str:
    """A code block whose fence is longer than any run of backticks inside."""
    fence = "`" * max(3, _longest_run(text) + 1)
    end = "" if text.endswith("\n") else "\n"
    return f"{fence}{language}\n{text}{end}{fence}"


def _longest_run(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest


def _one_line(text: str) -> str:
    return " ".join(text.split())
