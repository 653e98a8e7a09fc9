"""What `doctor` reports: the versions, where sessions are stored, whether the chosen provider works."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence

import anyio

from steadyhand.domain.model.messages import Finding
from steadyhand.domain.model.pricing import price_sentence
from steadyhand.domain.records.record import ModelName
from steadyhand.session.context import SessionContext
from steadyhand.session.service.retention import Retention, count_retention
from steadyhand.session.service.sandbox_report import SandboxReport, report_sandbox
from steadyhand.session.storage import directory
from steadyhand_values import frozen

PROVIDER_S_MAX = 300.0


@frozen
class Diagnosis:
    """As `DoctorResult` on the wire. `provider`: findings on the chosen one; `window`: in tokens, None if unknown;
    `notes`: a sentence each, None where there is none."""

    version: str
    python: str
    paths: Mapping[str, str]
    model: ModelName
    journal: Mapping[str, str]
    sandbox: SandboxReport
    retention: Retention
    provider: tuple[Finding, ...] = ()
    window: int | None = None
    notes: tuple[str, ...] | None = None


async def diagnose(context: SessionContext, folders: Sequence[str] = ()) -> Diagnosis:
    """Ask the chosen provider, by requests that are billed, for up to `PROVIDER_S_MAX`. May be cancelled.

    `folders`: absolute paths of the workspace's folders."""
    chosen = context.settings.model
    sandbox, of_sandbox = await report_sandbox(context, folders)
    provider = await _diagnose_provider(context, chosen)
    return Diagnosis(
        version=context.version,
        python=platform.python_version(),
        paths={"state": context.state_directory},
        model=chosen,
        journal=await context.in_thread(directory.diagnose, context),
        sandbox=sandbox,
        retention=await context.in_thread(count_retention, context),
        provider=provider,
        window=await context.learn_window(chosen) if provider else None,
        notes=(*of_sandbox, *_notes(context)) or None,
    )


async def _diagnose_provider(context: SessionContext, chosen: ModelName) -> tuple[Finding, ...]:
    if context.providers is None:
        return ()
    with anyio.move_on_after(PROVIDER_S_MAX):
        return tuple(await context.providers.diagnose(chosen.provider, chosen.name))
    text = f"It did not finish its answer within {PROVIDER_S_MAX:.0f} s. Try again when it is less busy."
    return (Finding("reachable", False, text),)


def _notes(context: SessionContext) -> tuple[str, ...]:
    """Return which variables children do not get, by name alone (row E1), and what the model costs (row U2)."""
    removed = ", ".join(context.child_environment({}).removed)
    withheld = (
        f"Commands do not get these variables: {removed}. To give commands a variable, set it in environment.add."
    )
    price = price_sentence(context.settings.model, context.settings)
    return (*([withheld] if removed else []), *([price] if price is not None else []))
