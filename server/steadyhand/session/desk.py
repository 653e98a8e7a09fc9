"""What a sidebar asks of one session beside prompts: its title, its export, its usage, its checkpoints, its queue."""

from __future__ import annotations

from typing import Literal

import attrs

from steadyhand.core import export, show
from steadyhand.core.profiles import PROFILES, PROVIDERS
from steadyhand.core.record import ModelSet, Queue, Title
from steadyhand.core.refusal import invalid
from steadyhand.core.usage import usage_view
from steadyhand.core.views import CheckpointTurn, QueuedView, SessionView, UsageView
from steadyhand.session.owner import Owner
from steadyhand.session.prompts import require_fit
from steadyhand.session.titles import users_title


async def rename(owner: Owner, title: str) -> SessionView:
    """A title the user gave; no automatic one replaces it (row S3). An empty one takes the title away."""
    title = users_title(title)
    owner.require_owned()
    await owner.record_or_refuse([Title(title, "user" if title else "none")])
    owner.tell_changes()
    return owner.view()


async def set_model(owner: Owner, provider: str, name: str) -> SessionView:
    """From the next request on (wire.md: `session/setModel`)."""
    if provider not in PROVIDERS:
        raise invalid("$.provider", f"not one of {', '.join(PROVIDERS)}")
    if not name.strip():  # the provider's own word stands for the model that a provider has where none is named
        if provider in PROFILES and PROFILES[provider].model is None:
            raise invalid("$.name", f"empty, and {PROFILES[provider].named} has no model of its own: name one")
        name = provider
    owner.require_owned()
    if (provider, name) != (owner.ledger.model.provider, owner.ledger.model.name):
        await owner.record_or_refuse([ModelSet(provider, name)])
    owner.tell_changes()
    return owner.view()


def exported(owner: Owner, form: Literal["markdown", "json"]) -> str:
    make = export.as_json if form == "json" else export.as_markdown
    return make(owner.view(), owner.ledger, owner.ground.root)


def usage(owner: Owner) -> UsageView:
    return usage_view(owner.ledger)


def checkpoints(owner: Owner) -> tuple[CheckpointTurn, ...]:
    """The turns that changed files, oldest first, each with the files really changed (rows W8, G6)."""
    return tuple(
        CheckpointTurn(turn.turn_id, turn.at, turn.text, changed)
        for turn in owner.ledger.turns.values()
        if (changed := show.changed_in_turn(owner.ledger, turn.turn_id))
    )


async def edit_queue(owner: Owner, client_message_id: str, text: str | None, remove: bool) -> tuple[QueuedView, ...]:
    """Change or take out a prompt that waits; one that has begun is waiting no more (row S4)."""
    if (text is None) == (not remove):
        raise invalid("$.text", "give either a text or remove")
    owner.require_owned()
    async with owner.delivering:
        waiting = owner.ledger.queue.get(client_message_id)
        if waiting is None:
            raise invalid("$.clientMessageId", "no prompt with this id is waiting")
        if text is not None:
            require_fit(attrs.evolve(waiting.prompt, text=text))
        changed = Queue(client_message_id, waiting.turn_id, waiting.text if text is None else text, remove)
        await owner.record_or_refuse([changed])
    owner.tell_queue()
    if remove:
        owner.end_cancelled(waiting.turn_id)
    return owner.queue()
