"""The sentences about what happened, for the model and for the user (rows C6, T2).

Denied, not run, failed, stopped and unknown are five different facts with five wordings. A text that was sent to a
model once never changes: it is stored, and this module is called only the first time.
"""

from __future__ import annotations

from collections.abc import Iterable

from steadyhand.domain.ledger.state import Attempt, ToolCall
from steadyhand.domain.records.record import Author, Check, InspectionState, Outcome, Settled
from steadyhand.domain.recovery.postcondition import NEITHER, Aim, aim_of_evidence
from steadyhand.domain.recovery.tables import Reached, classify
from steadyhand.domain.views.types import CallState

RETRIED_REPLY_CHARS_MAX = 2_000
"""Characters of a retry's reply that its notice repeats."""
TOOL_CHARS_MAX = 64  # of a tool's name that does not exist
TOOLS_NAMED_MAX = 40
OF_NOW = "This describes the file now, not what ran."

_STATE: dict[Outcome, CallState] = {
    "returned": "returned",
    "failed": "failed",
    "stopped": "stopped",
    "refused": "refused",
    "not_started": "notRun",
    "interrupted_before_execution": "notRun",
    "interrupted": "notRun",
    "unknown_after_restart": "unknown",
    "unknown": "unknown",
}


def state_of(outcome: Outcome) -> CallState:
    """Return the state of a call on the wire (docs/recovery.md, "The words for an end")."""
    return _STATE[outcome]


def outcome_of(call: ToolCall) -> tuple[Outcome | None, str | None]:
    """Return outcome and reason of a call that has ended; (None, None) while it is open."""
    attempt = call.attempt
    if attempt is not None and attempt.result is not None:
        return attempt.result.outcome, attempt.result.reason
    if call.reply is not None and (attempt is None or attempt.effect == "reads"):
        return call.reply.outcome, call.reply.reason
    return None, None


def unrecorded_verdict(call: ToolCall) -> Outcome | None:
    """Return the verdict of recovery's table on a call without a recorded end, as long as no verdict is recorded [I3].

    A call without an attempt does not count as a read here, whatever tool it names.
    """
    attempt = call.attempt
    reached: Reached = "proposed" if attempt is None else "started" if attempt.stage == "started" else "intent"
    reads = attempt is not None and attempt.effect == "reads"
    broken = call.broken if attempt is None else attempt.broken
    return classify(reached, reads, broken, call.reply is not None)


READ_CUT_OFF = "This read was cut off before its reply was recorded. It changed nothing. Read again if you need it."


def supplied_reply(call: ToolCall) -> str:
    """Return what the model is told in place of a reply that is not in the journal."""
    outcome, reason = outcome_of(call)
    match outcome or unrecorded_verdict(call):
        case "unknown" | "unknown_after_restart":
            return unknown_reply(call.attempt)
        case "interrupted":
            return READ_CUT_OFF
        case "returned" | "failed" | "stopped":
            return (
                f"This call ran ({outcome}), but its output was not stored."
                " Check the current state before you continue."
            )
        case "refused":
            return f"This call was refused{f' ({reason})' if reason else ''} and did not run."
        case "not_started":
            return f"This call did not run{f' ({reason})' if reason else ''}."
        case "interrupted_before_execution" | None:
            return (
                "This call did not run: the work was interrupted before it started."
                " Propose it again if you still need it."
            )


def unknown_reply(attempt: Attempt | None) -> str:
    """Return the reply to a call whose outcome is unknown."""
    name = f" Its attempt is {attempt.attempt_id}." if attempt else ""
    return (
        "The outcome of this call is unknown: it may have run, wholly or in part. Do not repeat it."
        f" Inspect the present state first.{name}"
    )


def not_started_reply(reason: str) -> str:
    """Return the reply to a call that this process did not start.

    `reason` is a word of the result or of the turn's end.
    """
    return {
        "cancelled": "This call did not run: the user stopped the turn before it started.",
        "closed": "This call did not run: the session was closed before it started.",
        "cut": "This call did not run: the answer that proposed it was cut off.",
        "length": "This call did not run: the answer that proposed it was cut at its length limit.",
        "filtered": "This call did not run: the provider filtered the answer that proposed it.",
        "bound": "This call did not run: the turn reached one of its limits.",
        "modelFailed": "This call did not run: the model failed before its answer was complete.",
        "journal": "This call did not run: Steadyhand cannot write the journal, so it starts no changes.",
    }.get(reason, f"This call did not run: {reason}.")


def refused_reply(reason: str, text: str) -> str:
    """Return the reply to a refused call. `text` is one or more sentences."""
    return f"This call was refused ({reason}) and did not run. {text}"


def unknown_tool_text(name: str, tools: Iterable[str]) -> str:
    """Return the reply to a call of a tool that is not there: it names the tools there are, the nearest first."""
    from difflib import SequenceMatcher  # takes long to import, and such a call is rare

    wanted = name.casefold()[:TOOL_CHARS_MAX]
    nearest = sorted(tools, key=lambda tool: (-SequenceMatcher(None, wanted, tool).ratio(), tool))
    more = f", and {len(nearest) - TOOLS_NAMED_MAX} more" if len(nearest) > TOOLS_NAMED_MAX else ""
    missing = f"There is no tool “{name[:TOOL_CHARS_MAX]}” here." if name.strip() else "The call names no tool."
    return f"{missing} The tools are: {', '.join(nearest[:TOOLS_NAMED_MAX])}{more}."


def after_error_satisfied(aim: Aim, error: str) -> str:
    """Return the reply if an error came after the start and the check finds the intended content (row W6)."""
    return f"An error occurred after the start ({error}), but {PRESENT_TEXT[aim]}. {OF_NOW}"


def after_error_unchanged(error: str) -> str:
    """Return the reply if an error came after the start and the check finds the content before (row W6)."""
    return f"This call failed ({error}). The file is as it was before. {OF_NOW}"


def after_error_unknown(error: str) -> str:
    """Return the reply if an error came after the start and the check cannot tell what happened (row C6)."""
    return (
        f"An error occurred after the start ({error}), and the outcome of this call is unknown."
        " Do not repeat it; inspect the present state first."
    )


def stopped_text(what: str) -> str:
    """Return the reply to a stopped call. `what`: the sentence of the check, or the output so far."""
    return f"This call was stopped after it had started; it may be half done. {what}"


PRESENT_TEXT: dict[Aim, str] = {
    "content": "the file has the intended content now",
    "gone": "the file is gone now, as intended",
    "paths": "its paths are as intended now",
}
_CHECK_TEXT: dict[Check, str] = {
    "unchanged": "the file is now as it was before",
    "conflict": "the file is now neither as it was before nor as intended",
    "unknown": "the current state of the file is unknown",
}


def aim_of(attempt: Attempt) -> Aim:
    """Return what a file effect is meant to leave, by its evidence."""
    return aim_of_evidence(attempt.started.evidence if attempt.started is not None else ())


def check_sentence(check: Check | None, aim: Aim = "content") -> str:
    """Return one sentence about a check; it says that it speaks of the present (row W7)."""
    if check is None:
        return "Steadyhand cannot check what a command did, so its outcome stays unknown."
    return f"Checked: {_check_clause(check, aim)}. {OF_NOW}"


def finding_sentence(title: str, check: Check, aim: Aim, reasons: Iterable[str]) -> str:
    """Return what an inspection found of a file effect, for people: the check, and reasons it does not tell."""
    more = "; ".join(reason for reason in reasons if reason != NEITHER)
    return f"“{title}” was checked: {_check_clause(check, aim)}{f' ({more})' if more else ''}. {OF_NOW}"


def _check_clause(check: Check, aim: Aim) -> str:
    return PRESENT_TEXT[aim] if check == "satisfied" else _CHECK_TEXT[check]


def as_sentence(text: str) -> str:
    """Return the text on one line, ended by a full stop if it has no end."""
    flat = " ".join(text.split())
    return flat if flat.endswith((".", "!", "?", "…")) else f"{flat}."


VERIFIED_TEXT: dict[InspectionState, str] = {
    "present": "its own tool found that it happened",
    "absent_fenced": "its own tool found that it did not happen, and no earlier attempt can still act",
}


def verified_sentence(state: InspectionState, summary: str) -> str:
    """Return what the verifier of a tool found (row F4)."""
    found = VERIFIED_TEXT.get(state, "its own tool cannot say for certain whether it happened")
    return f"{found} ({' '.join(summary.split()).rstrip('.')})."


_SETTLED_TEXT: dict[Settled, str] = {
    "checked_absent": "the file is as it was before, so the change is not there",
    "user_confirmed": "the user confirmed it",
    "model_confirmed": "the model settled it with its evidence and had permission",
    "waived": "unknown, waived by the user",
    "restored": "the earlier content was restored",
    "superseded": "a new attempt replaces it",
}


_BY_VERIFIER: dict[Settled, str] = {
    "checked_present": "it happened, as its own tool found, so it needs no repeat",
    "checked_absent": "it did not happen, as its own tool found",
}


def settlement_notice(attempt: Attempt, settled: Settled, by: Author = "user") -> str:
    """Return the notice of a settlement: the model gets it once, at the tail, and the user too."""
    if attempt.verified and settled in _BY_VERIFIER:
        told = _BY_VERIFIER[settled]
    elif settled == "checked_present":
        told = f"{PRESENT_TEXT[aim_of(attempt)]}, so it needs no repeat"
    elif settled == "waived" and by == "model":
        told = "unknown, waived by the model, which had permission"
    else:
        told = _SETTLED_TEXT[settled]
    return f"The uncertain call “{attempt.title}” is settled: {told}."


def own_leftover_clause(own: Iterable[str]) -> str:
    """Return what is said of temporary files of ours that cannot be removed, as in a read-only folder (case 168)."""
    return f"its temporary file {', '.join(own)} could not be removed; remove it when its folder can be written"


def reject_notice(title: str) -> str:
    """Return the notice of a rejected attempt."""
    rejected = f"The user rejected the uncertain call “{title}”: it shall not be repeated."
    return f"{rejected} Whether it happened stays unknown."


def undone_notice(title: str) -> str:
    """Return the notice of a restored attempt."""
    return f"The user undid “{title}”: the earlier content is back."


def retried_notice(call: ToolCall, outcome: Outcome) -> str:
    """Return the notice that tells how the user's retry ended."""
    reply = call.reply.text if call.reply is not None else supplied_reply(call)
    title = call.attempt.title if call.attempt is not None else call.tool
    return f"The user retried “{title}”. The new attempt: {outcome}. {reply[:RETRIED_REPLY_CHARS_MAX]}"


def verdict_notice(title: str) -> str:
    """Return the notice about a call whose reply is readable and whose end is not certain (row J9)."""
    return (
        f"The record of the call “{title}” is damaged after its start, so its outcome is unknown, although there is"
        " a reply above. Do not repeat it; inspect the present state first."
    )


def recovery_required(title: str, attempt_id: str, session_title: str | None) -> str:
    """Return the reply to a held-back call if nobody can be asked; it names every way to settle the effect (row B4)."""
    where = f" of session “{session_title}”" if session_title else ""
    short = attempt_id[:8]
    return (
        f"This call was held back and did not run: the outcome of “{title}”{where} (attempt {attempt_id}) is unknown"
        " and may touch the same files. To settle it, use the tools inspect_effect and settle_effect; the chat line"
        f" `/recovery inspect {short}` and then `/recovery confirm {short}` or `/recovery waive {short}`; the command"
        " `steadyhand.recovery.inspect` and then `.confirm` or `.waive`; the code actions at the file; or, when no"
        f" editor has that session open, `steadyhand recovery inspect {short}` on a command line and then"
        f" `steadyhand recovery confirm {short}` or `waive`."
    )


def taken_back_text(path: str, partial: bool = False) -> str:
    """Return what the model is told when the user undid its change of a file, or a part of it (row V4)."""
    return f"The user took back {'a part of ' if partial else ''}your change of {path}."
