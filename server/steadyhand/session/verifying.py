"""One look for one attempt: at the files, at what still lives, and by the tool's own verifier where it offers one (F4).

Every inspection and every decision that rests on one looks through here, so that all see the same. A verifier is asked
only because a person or the model wants to know, never by opening a session [I4]; it is bounded, and what it does not
say for certain is *unknown*.
"""

from __future__ import annotations

from collections.abc import Mapping

import anyio
import attrs

from steadyhand.core.folded import Attempt
from steadyhand.core.identity import BadArguments, parse_arguments
from steadyhand.session.inspecting import Found, look_at
from steadyhand.session.owner import Owner
from steadyhand.tools.tool import Tool, Verified, Verifier

verify_s_max = 30.0


def verifier_of(tools: Mapping[str, Tool], attempt: Attempt) -> Verifier | None:
    """The verifier of the attempt's tool, if it offers one."""
    tool: object = tools.get(attempt.tool)
    return tool if isinstance(tool, Verifier) else None


async def find(owner: Owner, attempt: Attempt) -> Found:
    """What is so now."""
    verifier = verifier_of(owner.world.tools, attempt)
    verified = None if verifier is None else await _ask(owner, attempt, verifier)
    # Afterwards: what the verifier shut out cannot have come back to life since.
    found = await owner.world.in_thread(look_at, owner.ground, attempt)
    return attrs.evolve(found, verified=verified)


async def _ask(owner: Owner, attempt: Attempt, verifier: Verifier) -> Verified:
    call = owner.ledger.calls.get(attempt.call_id)
    arguments = parse_arguments(call.arguments if call is not None else "")
    if isinstance(arguments, BadArguments) or arguments.digest != attempt.arguments_digest:
        return _unknown("its stored arguments are damaged")
    if attempt.started is None:
        return _unknown("its start cannot be read, so its key is not certain")
    try:
        with anyio.fail_after(verify_s_max):
            return await verifier.verify(attempt.started.evidence, attempt.key, arguments)
    except TimeoutError:
        return _unknown("it did not answer in time")
    except Exception as error:  # whatever it throws, it has not said that it is there or not
        return _unknown(f"it failed: {type(error).__name__}")


def _unknown(why: str) -> Verified:
    return Verified("unknown", False, why)
