"""The words that stand for what happened, for the model and for the user (rows C6, T2).

Denied, not run, failed, stopped and unknown are five different facts and have five wordings. A text that went out
once never changes: it is stored, and this room is asked only the first time.
"""

from __future__ import annotations

from collections.abc import Iterable

from steadyhand.core.folded import Attempt, Call
from steadyhand.core.postcondition import NEITHER, Aim, aim_of_evidence
from steadyhand.core.record import Author, Check, InspectionState, Outcome, Settled
from steadyhand.core.recovery import Reached, classify
from steadyhand.core.views import CallState

retried_reply_chars_max = 2_000
OF_NOW = "This speaks of the file now, not of what happened."

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
    """The word on the wire (wire.md, "States")."""
    return _STATE[outcome]


def outcome_of(call: Call) -> tuple[Outcome | None, str | None]:
    """(outcome, reason) of a call at its end; (None, None) while it is open."""
    attempt = call.attempt
    if attempt is not None and attempt.result is not None:
        return attempt.result.outcome, attempt.result.reason
    if call.reply is not None and (attempt is None or attempt.effect == "reads"):
        return call.reply.outcome, call.reply.reason
    return None, None


def unrecorded(call: Call) -> Outcome | None:
    """What recovery's table says of a call whose end stands nowhere, as long as no verdict is recorded [I3].

    A call without an attempt is not taken for a read here: what tool it names is not asked.
    """
    attempt = call.attempt
    reached: Reached = "proposed" if attempt is None else "started" if attempt.stage == "started" else "intent"
    reads = attempt is not None and attempt.effect == "reads"
    broken = call.broken if attempt is None else attempt.broken
    return classify(reached, reads, broken, call.reply is not None)


READ_CUT_OFF = "This read was cut off before its reply was recorded. It changed nothing. Read again if you need it."


def supplied_reply(call: Call) -> str:
    """What the model is told in place of a reply that does not stand in the journal."""
    outcome, reason = outcome_of(call)
    match outcome or unrecorded(call):
        case "unknown" | "unknown_after_restart":
            return unknown_reply(call.attempt)
        case "interrupted":
            return READ_CUT_OFF
        case "returned" | "failed" | "stopped":
            return f"This call ran ({outcome}), but its output was not kept. Look at the present state before going on."
        case "refused":
            return f"This call was refused{f' ({reason})' if reason else ''} and did not run."
        case "not_started":
            return f"This call did not run{f' ({reason})' if reason else ''}."
        case "interrupted_before_execution" | None:
            return (
                "This call did not run: the work was interrupted before it started."
                " Propose it again if it is still wanted."
            )


def unknown_reply(attempt: Attempt | None) -> str:
    name = f" Its attempt is {attempt.attempt_id}." if attempt else ""
    return (
        "The outcome of this call is unknown: it may have run, wholly or in part. Do not repeat it."
        f" Inspect the present state first.{name}"
    )


def not_started_reply(reason: str) -> str:
    """A call that this process did not start."""
    return {
        "cancelled": "This call did not run: the user stopped the turn before it started.",
        "closed": "This call did not run: the session was closed before it started.",
        "cut": "This call did not run: the answer that proposed it was cut off.",
        "length": "This call did not run: the answer that proposed it was cut at its length limit.",
        "filtered": "This call did not run: the provider filtered the answer that proposed it.",
        "bound": "This call did not run: the turn reached one of its bounds.",
        "modelFailed": "This call did not run: the model failed before its answer was whole.",
        "journal": "This call did not run: the journal cannot be written, so nothing with an effect is started.",
    }.get(reason, f"This call did not run: {reason}.")


def refused_reply(reason: str, text: str) -> str:
    return f"This call was refused ({reason}) and did not run. {text}"


def after_error_satisfied(aim: Aim, error: str) -> str:
    return f"An error came up after the start ({error}), but {PRESENT_TEXT[aim]}. {OF_NOW}"


def after_error_unchanged(title: str, error: str) -> str:
    return f"This call failed ({error}). The file is as it was before. {OF_NOW}"


def after_error_unknown(title: str, error: str) -> str:
    return (
        f"An error came up after the start ({error}), and the outcome of this call is unknown."
        " Do not repeat it; inspect the present state first."
    )


def stopped_text(what: str) -> str:
    """`what`: the check, or the output so far."""
    return f"This call was stopped after it had started; it may be half done. {what}"


PRESENT_TEXT: dict[Aim, str] = {
    "content": "the file has the intended content now",
    "gone": "the file is gone now, as intended",
    "paths": "its paths are as intended now",
}
_CHECK_TEXT: dict[Check, str] = {
    "unchanged": "the file is now as it was before",
    "conflict": "the file is now neither as it was before nor as intended",
    "unknown": "it cannot be told how the file is now",
}


def aim_of(attempt: Attempt) -> Aim:
    """What a file effect is after, by its evidence."""
    return aim_of_evidence(attempt.started.evidence if attempt.started is not None else ())


def check_sentence(check: Check | None, aim: Aim = "content") -> str:
    """One sentence on a check; it says that it speaks of now (row W7)."""
    if check is None:
        return "A command leaves nothing that can be checked, so its outcome stays unknown."
    return f"Checked: {_how_it_is(check, aim)}. {OF_NOW}"


def finding_sentence(title: str, check: Check, aim: Aim, reasons: Iterable[str]) -> str:
    """What an inspection found of a file effect, for a person: as above, by name, with what the check does not say."""
    more = "; ".join(reason for reason in reasons if reason != NEITHER)
    return f"“{title}” was checked: {_how_it_is(check, aim)}{f' ({more})' if more else ''}. {OF_NOW}"


def _how_it_is(check: Check, aim: Aim) -> str:
    return PRESENT_TEXT[aim] if check == "satisfied" else _CHECK_TEXT[check]


def ended(text: str) -> str:
    """On one line, with a full stop at its end where it has none."""
    flat = " ".join(text.split())
    return flat if flat.endswith((".", "!", "?", "…")) else f"{flat}."


VERIFIED_TEXT: dict[InspectionState, str] = {
    "present": "its own tool found that it happened",
    "absent_fenced": "its own tool found that it did not happen, and no earlier try of it can act any more",
}


def verified_sentence(state: InspectionState, summary: str) -> str:
    """What a tool's verifier found (row F4)."""
    found = VERIFIED_TEXT.get(state, "its own tool cannot say for certain whether it happened")
    return f"{found} ({' '.join(summary.split()).rstrip('.')})."


_SETTLED_TEXT: dict[Settled, str] = {
    "checked_absent": "the file is as it was before, so the change is not there",
    "user_confirmed": "the user confirmed it",
    "model_confirmed": "the model settled it with its evidence, as it was permitted to",
    "waived": "unknown, waived by the user",
    "restored": "the content before it was restored",
    "superseded": "a new attempt takes its place",
}


_BY_VERIFIER: dict[Settled, str] = {
    "checked_present": "it happened, as its own tool found, so it needs no repeat",
    "checked_absent": "it did not happen, as its own tool found",
}


def settlement_notice(attempt: Attempt, settled: Settled, by: Author = "user") -> str:
    """Told once to the model, at the tail, and to the user."""
    if attempt.verified and settled in _BY_VERIFIER:
        told = _BY_VERIFIER[settled]
    elif settled == "checked_present":
        told = f"{PRESENT_TEXT[aim_of(attempt)]}, so it needs no repeat"
    elif settled == "waived" and by == "model":
        told = "unknown, waived by the model as it was permitted to"
    else:
        told = _SETTLED_TEXT[settled]
    return f"The uncertain call “{attempt.title}” is settled: {told}."


def reject_notice(title: str) -> str:
    rejected = f"The user rejected the uncertain call “{title}”: it shall not be repeated."
    return f"{rejected} Whether it happened stays unknown."


def undone_notice(title: str) -> str:
    return f"The user undid “{title}”: the content that stood there before it is back."


def retried_notice(call: Call, outcome: Outcome) -> str:
    """How the new attempt that the user asked for ended."""
    reply = call.reply.text if call.reply is not None else supplied_reply(call)
    title = call.attempt.title if call.attempt is not None else call.tool
    return f"The user had “{title}” tried again. Its new attempt: {outcome}. {reply[:retried_reply_chars_max]}"


def verdict_notice(title: str) -> str:
    """For a call whose reply is readable but whose end is not certain (row J9)."""
    return (
        f"The record of the call “{title}” is damaged after its start, so its outcome is unknown although a reply"
        " stands above. Do not repeat it; inspect the present state first."
    )


def recovery_required(title: str, attempt_id: str, session_title: str | None) -> str:
    """A held-back call with nobody to ask; names every way out (row B4)."""
    where = f" of session “{session_title}”" if session_title else ""
    short = attempt_id[:8]
    return (
        f"This call was held back and did not run: the outcome of “{title}”{where} (attempt {attempt_id}) is unknown"
        " and may touch the same files. Ways out: the tools inspect_effect and settle_effect; the chat line"
        f" `/recovery inspect {short}` and then `/recovery confirm {short}` or `/recovery waive {short}`; the command"
        " `steadyhand.recovery.inspect` and then `.confirm` or `.waive`; the code actions at the file; and without an"
        f" editor, once none has that session open, `steadyhand recovery inspect {short}` on a command line and then"
        f" `steadyhand recovery confirm {short}` or `waive`."
    )
