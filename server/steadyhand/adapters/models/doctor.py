"""Check a provider by asking it: one finding for each aspect, in order.

Key, reachable, model known, window, streaming, tool calls. It stops if the next check cannot work. It makes two small
real requests, which the provider bills; nothing of them reaches a session, and no tool runs. Each request takes at most
`STEP_S_MAX`; the other checks have the provider's own limits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, cast

import anyio
import attrs

from steadyhand.adapters.models.remote import RemoteModel
from steadyhand.adapters.models.remote_models import ModelListing, list_models
from steadyhand.domain.model.messages import (
    CallProposed,
    Finding,
    Finish,
    ModelRequest,
    ProviderAspect,
    ProviderError,
    StreamPart,
    ToolOffer,
    UsagePart,
    UserMessage,
)
from steadyhand.domain.records.identity import BadArguments, parse_arguments
from steadyhand_values import define

STEP_S_MAX = 120.0
ANSWER_TOKENS_MAX = 1024  # enough for a model that thinks first
NAMES_SHOWN_MAX = 5

_TOOL = ToolOffer(
    "report_word",
    "Reports one word.",
    '{"additionalProperties":false,"properties":{"word":{"type":"string"}},"required":["word"],"type":"object"}',
)
_SYSTEM = "You are being tested. Do exactly what is asked, in as few words as possible."


async def diagnose(model: RemoteModel) -> list[Finding]:
    """Return the findings in order; a bad one says what to do. Raises nothing but a cancel."""
    found: list[Finding] = []
    try:
        await model.make_headers()
    except ProviderError as trouble:
        return [Finding("key", False, str(trouble))]
    needed = model.profile.key_needed or model.access.key_variable
    found.append(Finding("key", True, f"Found in {model.key_place()}." if needed else "No key is needed."))
    try:
        found += await _check_provider(model)
    except ProviderError as trouble:
        return [*found, Finding("reachable", False, str(trouble))]
    streaming = await _check(model, "streaming", _check_streaming)
    if not streaming.fine:
        return [*found, streaming]
    return [*found, streaming, await _check(model, "calls", _check_calls)]


async def _check_provider(model: RemoteModel) -> list[Finding]:
    """Check whether it can be reached, knows the model, and how large the window is."""
    label, host, name = model.profile.label, model.address, model.access.name
    try:
        listed = await list_models(model)
    except ProviderError as trouble:
        if trouble.status not in (404, 405, 501):
            raise
        answers = Finding("reachable", True, f"{label} answers at {host}, but does not list its models.")
        return [answers, _report_window(model)]
    answers = Finding("reachable", True, f"{label} answers at {host}.")
    return [answers, _check_name(listed, name, model), _report_window(model)]


def _check_name(listed: tuple[ModelListing, ...], name: str, model: RemoteModel) -> Finding:
    names = [entry.name for entry in listed]
    if name in names or name == "default":
        return Finding("model", True, f"“{name}” is known.")
    today = model.profile.renamed.get(name)
    if today:
        return Finding("model", False, f"“{name}” is no longer offered. Set steadyhand.model.name to “{today}”.")
    near = [known for known in names if name.lower() in known.lower() or known.lower() in name.lower()] or names
    shown = ", ".join(f"“{known}”" for known in near[:NAMES_SHOWN_MAX])
    advice = f"Set steadyhand.model.name, for instance to {shown}." if shown else "The list is empty."
    text = f"“{name}” is not one of the {len(names)} listed models. {advice}"
    return Finding("model", False, text)


def _report_window(model: RemoteModel) -> Finding:
    if model.window is None:
        return Finding("window", True, "Unknown, so the provider limits the length of answers.")
    return Finding("window", True, f"{model.window:,} tokens.")


@define
class AnswerParts:
    """The response to a small request."""

    parts: list[StreamPart] = attrs.field(factory=list)

    def of_type(self, kind: type[StreamPart]) -> list[StreamPart]:
        return [part for part in self.parts if isinstance(part, kind)]

    @property
    def finish(self) -> str | None:
        last = self.parts[-1] if self.parts else None
        return last.reason if isinstance(last, Finish) else None


_Look = Callable[[RemoteModel], Awaitable["tuple[bool, str]"]]


async def _check(model: RemoteModel, what: ProviderAspect, look: _Look) -> Finding:
    """Make one small request. An error of the provider becomes the finding."""
    try:
        with anyio.fail_after(STEP_S_MAX):
            return Finding(what, *await look(model))
    except ProviderError as trouble:
        return Finding(what, False, str(trouble))
    except TimeoutError:
        text = f"No complete answer within {STEP_S_MAX:.0f} s. The model may be too slow for this machine."
        return Finding(what, False, text)


async def ask_briefly(model: RemoteModel, text: str, tools: tuple[ToolOffer, ...] = ()) -> AnswerParts:
    """Make one small request and return the parts of its answer. Raises ProviderError."""
    seen = AnswerParts()
    request = ModelRequest(_SYSTEM, tools, (UserMessage(text),), output_tokens_max=ANSWER_TOKENS_MAX)
    async with aclosing(cast(Any, model.ask(request))) as parts:
        async for part in parts:
            seen.parts.append(part)
    return seen


async def _check_streaming(model: RemoteModel) -> tuple[bool, str]:
    seen = await ask_briefly(model, "Say: ready")
    if seen.finish is None:
        return False, "The answer broke off. A proxy may hold it back, or the server may be overloaded."
    pieces = len(seen.parts) - len(seen.of_type(Finish)) - len(seen.of_type(UsagePart))
    counted = "with" if seen.of_type(UsagePart) else "without"
    return True, f"Works, {pieces} pieces, {counted} a count of tokens."


async def _check_calls(model: RemoteModel) -> tuple[bool, str]:
    seen = await ask_briefly(model, "Call the tool report_word with the word: ready", (_TOOL,))
    calls = [part for part in seen.of_type(CallProposed) if isinstance(part, CallProposed)]
    if not calls:
        return False, (
            "The model made none. It may not support tools: choose one that does (with llama.cpp, start it with tools)."
        )
    parsed = parse_arguments(calls[0].arguments)
    if isinstance(parsed, BadArguments) or calls[0].tool != _TOOL.name or seen.finish != "calls":
        return False, "The model made one, but it was incomplete or wrong. Choose a model that is better at tools."
    return True, "They work."
