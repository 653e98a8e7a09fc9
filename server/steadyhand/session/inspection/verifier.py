"""Inspect one attempt now: its files, its processes, and its tool's own verifier where the tool offers one (row F4).

Every inspection, and every decision that rests on one, calls `inspect_now`, so that all see the same. A verifier is
asked only because the user or the model wants to know, never by opening a session [I4]. It is bounded, and what it
does not say for certain is *unknown*.
"""

from __future__ import annotations

from collections.abc import Mapping

import anyio
import attrs

from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.identity import BadArguments, parse_arguments
from steadyhand.session.inspection.inspect import InspectionResult, inspect_files
from steadyhand.session.session import Session
from steadyhand.tools.contract import Tool, Verified, Verifier

VERIFY_S_MAX = 30.0


def verifier_of(tools: Mapping[str, Tool], attempt: Attempt) -> Verifier | None:
    """Return the verifier of the attempt's tool, if it offers one."""
    tool: object = tools.get(attempt.tool)
    return tool if isinstance(tool, Verifier) else None


async def inspect_now(session: Session, attempt: Attempt) -> InspectionResult:
    """Return how the effect is now."""
    verifier = verifier_of(session.context.tools, attempt)
    verified = None if verifier is None else await _ask(session, attempt, verifier)
    # After the verifier: a process that it fenced off cannot act again.
    found = await session.context.in_thread(inspect_files, session.tool_context, session.ledger, attempt)
    return attrs.evolve(found, verified=verified)


async def _ask(session: Session, attempt: Attempt, verifier: Verifier) -> Verified:
    call = session.ledger.calls.get(attempt.call_id)
    arguments = parse_arguments(call.arguments if call is not None else "")
    if isinstance(arguments, BadArguments) or arguments.digest != attempt.arguments_digest:
        return _unknown("its stored arguments are damaged")
    if attempt.started is None or attempt.is_start_torn:
        return _unknown("its start cannot be read, so its key is not certain")
    try:
        with anyio.fail_after(VERIFY_S_MAX):
            return await verifier.verify(attempt.started.evidence, attempt.key, arguments)
    except TimeoutError:
        return _unknown("it did not answer in time")
    except Exception as error:  # after an exception it has said neither that the effect is there nor that it is not
        return _unknown(f"it failed: {type(error).__name__}")


def _unknown(why: str) -> Verified:
    return Verified("unknown", False, why)
