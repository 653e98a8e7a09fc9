"""What is the matter with a provider, found out by asking it: one finding for each thing looked at, in order.

Key, reachable, model known, window, streaming, tool calls. It stops where the next thing cannot work. Two small
requests are really made, and billed; nothing of them reaches a session, and no tool is run. Each request is bounded
by `step_s_max`, each look by the provider's own limits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, cast

import anyio
import attrs

from steadyhand.adapters.model_providers import Listed, list_models
from steadyhand.adapters.model_remote import RemoteModel
from steadyhand.core.identity import BadArguments, parse_arguments
from steadyhand.core.model import (
    CallProposed,
    Finding,
    Finish,
    Looked,
    ModelRequest,
    ModelTrouble,
    StreamPart,
    ToolOffer,
    UsagePart,
    UserMessage,
)

step_s_max = 120.0
answer_tokens_max = 1024  # a model that thinks first needs room for it
names_shown_max = 5

_TOOL = ToolOffer(
    "report_word",
    "Reports one word.",
    '{"additionalProperties":false,"properties":{"word":{"type":"string"}},"required":["word"],"type":"object"}',
)
_SYSTEM = "You are being tested. Do exactly what is asked, in as few words as possible."


async def diagnose(model: RemoteModel) -> list[Finding]:
    """In order; the last one says what to do if something is wrong. Never raises but for a cancel."""
    found: list[Finding] = []
    try:
        await model.headers()
    except ModelTrouble as trouble:
        return [Finding("key", False, str(trouble))]
    needed = model.profile.key_needed or model.access.key_variable
    found.append(Finding("key", True, f"Found in {model.key_place()}." if needed else "None is needed."))
    try:
        found += await _look_around(model)
    except ModelTrouble as trouble:
        return [*found, Finding("reachable", False, str(trouble))]
    streaming = await _try(model, "streaming", _streams)
    if not streaming.fine:
        return [*found, streaming]
    return [*found, streaming, await _try(model, "calls", _calls)]


async def _look_around(model: RemoteModel) -> list[Finding]:
    """Whether it is there, knows the model, and how large its window is."""
    label, host, name = model.profile.label, model.address, model.access.name
    try:
        listed = await list_models(model)
    except ModelTrouble as trouble:
        if trouble.status not in (404, 405, 501):
            raise
        answers = Finding("reachable", True, f"{label} answers at {host}, and does not list its models.")
        return [answers, _window(model)]
    return [Finding("reachable", True, f"{label} answers at {host}."), _known(listed, name, model), _window(model)]


def _known(listed: tuple[Listed, ...], name: str, model: RemoteModel) -> Finding:
    names = [entry.name for entry in listed]
    if name in names or name == "default":
        return Finding("model", True, f"“{name}” is known.")
    today = model.profile.renamed.get(name)
    if today:
        return Finding("model", False, f"“{name}” is gone; set steadyhand.model.name to “{today}”.")
    near = [known for known in names if name.lower() in known.lower() or known.lower() in name.lower()] or names
    shown = ", ".join(f"“{known}”" for known in near[:names_shown_max]) or "none at all"
    text = f"“{name}” is not among the {len(names)} listed; set steadyhand.model.name to one, such as {shown}."
    return Finding("model", False, text)


def _window(model: RemoteModel) -> Finding:
    if model.window is None:
        return Finding("window", True, "Not told, so the length of answers is left to the provider.")
    return Finding("window", True, f"{model.window:,} tokens.")


@attrs.define
class _Seen:
    """One answer to a small request."""

    parts: list[StreamPart] = attrs.field(factory=list)

    def of(self, kind: type[StreamPart]) -> list[StreamPart]:
        return [part for part in self.parts if isinstance(part, kind)]

    @property
    def finish(self) -> str | None:
        last = self.parts[-1] if self.parts else None
        return last.reason if isinstance(last, Finish) else None


_Look = Callable[[RemoteModel], Awaitable["tuple[bool, str]"]]


async def _try(model: RemoteModel, what: Looked, look: _Look) -> Finding:
    """One small request. What a provider says against it is a finding of that request."""
    try:
        with anyio.fail_after(step_s_max):
            return Finding(what, *await look(model))
    except ModelTrouble as trouble:
        return Finding(what, False, str(trouble))
    except TimeoutError:
        text = f"No end within {step_s_max:.0f} s; the model may be too slow for this machine."
        return Finding(what, False, text)


async def _asked(model: RemoteModel, text: str, tools: tuple[ToolOffer, ...] = ()) -> _Seen:
    seen = _Seen()
    request = ModelRequest(_SYSTEM, tools, (UserMessage(text),), output_tokens_max=answer_tokens_max)
    async with aclosing(cast(Any, model.ask(request))) as parts:
        async for part in parts:
            seen.parts.append(part)
    return seen


async def _streams(model: RemoteModel) -> tuple[bool, str]:
    seen = await _asked(model, "Say: ready")
    if seen.finish is None:
        return False, "The answer broke off before its end; a proxy may hold it back, or the server be overloaded."
    pieces = len(seen.parts) - len(seen.of(Finish)) - len(seen.of(UsagePart))
    counted = "with" if seen.of(UsagePart) else "without"
    return True, f"Works, {pieces} pieces, {counted} a count of tokens."


async def _calls(model: RemoteModel) -> tuple[bool, str]:
    seen = await _asked(model, "Call the tool report_word with the word: ready", (_TOOL,))
    calls = [part for part in seen.of(CallProposed) if isinstance(part, CallProposed)]
    if not calls:
        return False, (
            "None came; this model may not know tools, so choose one that does (or, with llama.cpp, start it so)."
        )
    parsed = parse_arguments(calls[0].arguments)
    if isinstance(parsed, BadArguments) or calls[0].tool != _TOOL.name or seen.finish != "calls":
        return False, "One came, but not whole or not as offered; choose a model that is better at tools."
    return True, "They work."
