"""The finish reasons of all dialects, in one table (rows P1, T6; case 113).

Servers copy the dialects and keep their own words, so one table serves every dialect; case, `-` and `_` do not count. A
word that is not in it is `unknown`: such an answer came to its end, but nobody knows why.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from steadyhand.domain.model.messages import Finish, FinishReason

WORD_CHARS_MAX = 60  # of an unfamiliar word that is shown

FINISHES: Mapping[str, FinishReason] = {
    **dict.fromkeys(("stop", "endturn", "stopsequence", "completed", "complete", "finished", "finish"), "stop"),
    **dict.fromkeys(("eos", "eostoken", "end", "endofturn", "endoftext", "done", "normal"), "stop"),
    **dict.fromkeys(("toolcalls", "toolcall", "tooluse", "functioncall", "functioncalls", "tools"), "calls"),
    **dict.fromkeys(("length", "maxtokens", "maxoutputtokens", "maxlength", "modellength", "tokenlimit"), "length"),
    **dict.fromkeys(("modelcontextwindowexceeded", "maxcompletiontokens", "contextlength"), "length"),
    **dict.fromkeys(("contentfilter", "contentfiltered", "refusal", "safety", "sensitive", "recitation"), "filtered"),
    **dict.fromkeys(("blocklist", "prohibitedcontent", "guardrailintervened", "flagged"), "filtered"),
}

FAILURES = frozenset(
    [
        *("error", "networkerror", "servererror", "internalerror", "timeout", "failed", "failure"),
        *("abort", "aborted", "cancelled", "canceled", "malformedfunctioncall", "malformedtoolcall"),
    ]
)
"""Words that say that the provider failed in the middle of its answer."""


def finish_of(word: str) -> FinishReason:
    """Return our word for a provider's finish reason."""
    return FINISHES.get(_plain(word), "unknown")


def is_failure(word: str) -> bool:
    """Return whether a finish reason says that the answer failed."""
    return _plain(word) in FAILURES


def make_finish(word: str, has_calls: bool) -> Finish:
    """Return the end of an answer. Calls decide between `stop` and `calls`, because servers mix the two up."""
    finish = finish_of(word)
    if has_calls and finish == "stop":
        finish = "calls"
    if not has_calls and finish == "calls":
        finish = "unknown"
    return Finish(finish, word[:WORD_CHARS_MAX])


def closed_arguments(text: str, word: str) -> str:
    """Return a call's arguments: empty ones, closed by a familiar end, are an empty object (case 108).

    After another end the empty text may be the beginning of a cut one, so it stays, and is refused later.
    """
    is_closed = finish_of(word) in ("stop", "calls")
    return "{}" if is_closed and text.strip() in ("", "null", '""') else text


def input_text(payload: object) -> str:
    """Return arguments that a server parsed before it sent them; null and an empty list are none."""
    if payload is None or payload == []:
        return ""
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":"))


def _plain(word: str) -> str:
    return "".join(c for c in word.casefold() if c.isalnum())
