"""How this installation stands, for the doctor: what runs, where its sessions lie, and what is to be known of it."""

from __future__ import annotations

import platform
from collections.abc import Mapping

import attrs

from steadyhand.core.record import ModelName
from steadyhand.session.house import House
from steadyhand.session.world import World


@attrs.frozen
class Diagnosis:
    """As `DoctorResult` on the wire. `notes`: a sentence each; None where there is nothing to say."""

    version: str
    python: str
    paths: Mapping[str, str]
    model: ModelName
    journal: Mapping[str, str]
    notes: tuple[str, ...] | None = None


async def diagnose(house: House) -> Diagnosis:
    world = house.world
    return Diagnosis(
        version=world.version,
        python=platform.python_version(),
        paths={"state": world.state_directory},
        model=world.settings.model,
        journal=await house.diagnose(),
        notes=_notes(world) or None,
    )


def _notes(world: World) -> tuple[str, ...]:
    """What children are not given is named, its value never shown (row E1)."""
    removed = world.child_environment({}).removed
    if not removed:
        return ()
    names = ", ".join(removed)
    return (f"Commands do not get these variables: {names}. What a command needs can be put into environment.add.",)
