"""How this installation stands, for the doctor: what runs, where its sessions lie, whether the chosen provider works,
and what is to be known of it."""

from __future__ import annotations

import platform
from collections.abc import Mapping

import anyio
import attrs

from steadyhand.core.model import Finding
from steadyhand.core.prices import price_told
from steadyhand.core.record import ModelName
from steadyhand.session.house import House
from steadyhand.session.world import World

provider_s_max = 300.0


@attrs.frozen
class Diagnosis:
    """As `DoctorResult` on the wire. `provider`: what was found of the chosen one; `window`: tokens, where they are
    known. `notes`: a sentence each; None where there is nothing to say."""

    version: str
    python: str
    paths: Mapping[str, str]
    model: ModelName
    journal: Mapping[str, str]
    provider: tuple[Finding, ...] = ()
    window: int | None = None
    notes: tuple[str, ...] | None = None


async def diagnose(house: House) -> Diagnosis:
    """Asks the chosen provider, by requests that are billed, for `provider_s_max` at most. May be cancelled."""
    world = house.world
    chosen = world.settings.model
    provider = await _of_provider(world, chosen)
    return Diagnosis(
        version=world.version,
        python=platform.python_version(),
        paths={"state": world.state_directory},
        model=chosen,
        journal=await house.diagnose(),
        provider=provider,
        window=await world.learn_window(chosen) if provider else None,
        notes=_notes(world) or None,
    )


async def _of_provider(world: World, chosen: ModelName) -> tuple[Finding, ...]:
    if world.providers is None:
        return ()
    with anyio.move_on_after(provider_s_max):
        return tuple(await world.providers.diagnose(chosen.provider, chosen.name))
    text = f"It was not done answering after {provider_s_max:.0f} s: ask again when it is less busy."
    return (Finding("reachable", False, text),)


def _notes(world: World) -> tuple[str, ...]:
    """What children are not given is named, its value never shown (row E1); what the model costs (row U2)."""
    removed = ", ".join(world.child_environment({}).removed)
    withheld = f"Commands do not get these variables: {removed}. What a command needs can be put into environment.add."
    price = price_told(world.settings.model, world.settings)
    return (*([withheld] if removed else []), *([price] if price is not None else []))
