"""What a sidebar asks of one session beside prompts: its title, its model, its export, its usage, its checkpoints.

The user's title is one line and bounded; no automatic one replaces it (rows S3, K3, case 80). An automatic title is
the first line of the first prompt.
"""

from __future__ import annotations

from typing import Literal

from steadyhand.domain.errors import invalid_params
from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.model.provider_profiles import PROFILES, PROVIDERS, key_variables
from steadyhand.domain.model.usage import usage_view
from steadyhand.domain.permissions.child_environment import looks_like_credential
from steadyhand.domain.records.record import ModelSet, Title, User
from steadyhand.domain.views import export, render
from steadyhand.domain.views.types import CheckpointTurn, SessionView, UsageView
from steadyhand.session.session import Session
from steadyhand.tools.writes.blob_store import BlobStore

TITLE_CHARS_MAX = 200


def clean_title(given: str) -> str:
    """Return the user's title on one line without characters that cannot be shown.

    Raise Refused above `TITLE_CHARS_MAX`."""
    title = " ".join("".join(c if c.isprintable() else " " for c in given).split())
    if len(title) > TITLE_CHARS_MAX:
        raise invalid_params("$.title", f"longer than {TITLE_CHARS_MAX} characters")
    return title


def first_title(ledger: Ledger, user: User) -> tuple[Title, ...]:
    """Return the title that comes with this prompt; none if the session has one, or had its first prompt before."""
    begun = any(turn.is_in_history for turn in ledger.turns.values())
    if ledger.title_source != "none" or begun or user.command or user.aside or not user.text.strip():
        return ()
    return (Title(title=render.short_title(user.text.strip().split("\n")[0]), source="auto"),)


async def rename(session: Session, title: str) -> SessionView:
    """Set the user's title; an empty one removes it (row S3)."""
    title = clean_title(title)
    session.require_owned()
    await session.log.record_or_refuse([Title(title=title, source="user" if title else "none")])
    session.feed.notify_changes()
    return session.view()


async def set_model(session: Session, provider: str, name: str) -> SessionView:
    """Set the model of the next requests (docs/protocol.md: `session/setModel`)."""
    if provider not in PROVIDERS:
        raise invalid_params("$.provider", f"not one of {', '.join(PROVIDERS)}")
    if not name.strip():  # the provider's own word stands for the model that a provider has where none is named
        if provider in PROFILES and PROFILES[provider].model is None:
            raise invalid_params("$.name", f"empty, and {PROFILES[provider].named} has no default model: name one")
        name = provider
    session.require_owned()
    if (provider, name) != (session.ledger.model.provider, session.ledger.model.name):
        await session.log.record_or_refuse([ModelSet(provider=provider, name=name)])
    session.feed.notify_changes()
    return session.view()


def export_text(session: Session, form: Literal["markdown", "json"], redacted: bool = False) -> str:
    """Return the conversation for a file. `redacted`: without credentials; the session itself keeps them (case 106)."""
    make = export.as_json if form == "json" else export.as_markdown
    secrets = known_secrets(session) if redacted else None
    return make(session.view(), session.ledger, session.tool_context.root, secrets)


def known_secrets(session: Session) -> tuple[str, ...]:
    """Return the values of this process's variables that are credentials, or from which a model's key is read."""
    context = session.context
    keys = key_variables(context.settings.key_variable)
    environment = context.processes.environment()
    return tuple(value for name, value in environment.items() if name in keys or looks_like_credential(name, value))


def usage(session: Session) -> UsageView:
    """Return what the session has used."""
    return usage_view(session.ledger)


async def checkpoints(session: Session) -> tuple[CheckpointTurn, ...]:
    """Return the turns that changed files, oldest first, each with the files it really changed (rows W8, G6, G4)."""
    ledger, undone = session.ledger, session.ledger.undone_turns()
    store = BlobStore(session.context.disk, session.path, "checkpoints")
    stored = await session.context.in_thread(store.names)
    found: list[CheckpointTurn] = []
    for turn in list(ledger.turns.values()):
        if changed := render.files_changed_in_turn(ledger, turn.turn_id):
            is_expired = not _checkpoints_of(ledger, turn.turn_id) <= stored
            is_undone = turn.turn_id in undone
            found.append(
                CheckpointTurn(turn.turn_id, turn.at, turn.text, changed, is_expired or None, is_undone or None)
            )
    return tuple(found)


def _checkpoints_of(ledger: Ledger, turn_id: str) -> set[str]:
    """Return the digests of the contents that were stored before a turn changed files."""
    started = [one.started for one in ledger.attempts.values() if one.turn_id == turn_id and one.started is not None]
    return {path.checkpoint for one in started for path in one.evidence if path.checkpoint is not None}
