"""The models of the settings: which provider, which name, at which address, with whose key.

`RemoteModels` makes one `RemoteModel` for each pair of provider and name, over one HTTP client, and keeps it: the
connections, and what was learnt of a window, outlive a turn. New settings begin anew. Nothing is opened, and no HTTP
library imported, before the first request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from steadyhand.adapters.http_client import HttpClient
from steadyhand.adapters.model_answer import tokens
from steadyhand.adapters.model_remote import Access, RemoteModel, Secret
from steadyhand.core.model import ModelTrouble
from steadyhand.core.profiles import PROFILES, Profile, chosen_name

list_s_max = 20.0
list_bytes_max = 8 * 1024 * 1024
models_listed_max = 1000
NO_ANSWER = ("unreachable", "keyMissing", "overloaded")  # kinds of trouble after which a list may yet come
UNCHOSEN = "unchosen"  # stands for a model where only its provider is asked


@attrs.frozen
class ModelSettings:
    """`model.*` of the settings that concern the way to a provider. They belong to `provider`, not to another one
    that a session may have chosen."""

    provider: str
    base_url: str | None = None
    key_variable: str | None = None


@attrs.frozen
class Listed:
    """A model a provider offers; window in tokens."""

    name: str
    window: int | None = None


class RemoteModels:
    """Models over HTTP, of one event loop."""

    def __init__(
        self,
        settings: Callable[[], ModelSettings],
        environment: Callable[[], Mapping[str, str]],
        secret: Secret | None = None,
    ) -> None:
        """`settings` and `environment` are asked anew for each model and each request."""
        self._settings = settings
        self._environment = environment
        self._secret = secret
        self._client = HttpClient()
        self._made: dict[tuple[str, str], RemoteModel] = {}
        self._windows: dict[tuple[str, str], int] = {}  # (provider, the model's name there) → what its list told
        self._looked_for: set[tuple[str, str]] = set()
        self._made_for: ModelSettings | None = None

    def model(self, provider: str, name: str) -> RemoteModel:
        """The model behind a pair. A name that is only the provider's word is one that nobody chose. ModelTrouble where
        settings are missing or cannot be used."""
        settings = self._settings()
        if settings != self._made_for:
            self._made.clear()
            self._windows.clear()
            self._looked_for.clear()
            self._made_for = settings
        made = self._made.get((provider, name))
        if made is None:
            made = self._made[(provider, name)] = RemoteModel(self._access(settings, provider, name), self._client)
            told = self._windows.get((provider, made.access.name))
            made.window = told or made.window
        return made

    async def listing(self, provider: str) -> tuple[Listed, ...]:
        """What a provider offers; no model has to be chosen for that. ModelTrouble where it does not answer."""
        chosen = PROFILES[provider].model if provider in PROFILES else None
        listed = await list_models(self.model(provider, chosen or UNCHOSEN))
        self._remember(provider, listed)
        return listed

    async def learn_window(self, provider: str, name: str) -> int | None:
        """The window of a model, asked for where it is not known, once if there is an answer; None where nobody tells.
        ModelTrouble for settings only: a provider that does not list its models is no trouble."""
        made = self.model(provider, name)
        if made.window is None and made.profile.window_members and (provider, name) not in self._looked_for:
            self._looked_for.add((provider, name))
            try:
                self._remember(provider, await list_models(made))
            except ModelTrouble as trouble:
                if trouble.kind in NO_ANSWER:  # a local server may still be starting
                    self._looked_for.discard((provider, name))
        return made.window

    async def close(self) -> None:
        await self._client.close()

    def _remember(self, provider: str, listed: tuple[Listed, ...]) -> None:
        """The windows that a list told, for models made before and after."""
        self._windows.update({(provider, entry.name): entry.window for entry in listed if entry.window})
        for (owner, _), made in self._made.items():
            told = self._windows.get((owner, made.access.name))
            made.window = told or made.window

    def _access(self, settings: ModelSettings, provider: str, name: str) -> Access:
        profile = PROFILES.get(provider)
        if profile is None:
            known = ", ".join(PROFILES)
            raise ModelTrouble(
                f"There is no provider “{provider}”: set steadyhand.model.provider to practice, {known}.",
                kind="settings",
            )
        chosen = chosen_name(provider, name)
        if chosen is None:
            raise ModelTrouble(f"No model of {profile.named} is chosen: set steadyhand.model.name.", kind="settings")
        configured = provider == settings.provider
        return Access(
            profile=profile,
            name=chosen,
            environment=self._environment,
            base_url=settings.base_url if configured else None,
            key_variable=settings.key_variable if configured else None,
            secret=self._secret,
        )


async def list_models(model: RemoteModel) -> tuple[Listed, ...]:
    """What the provider offers, in its order. A window that it tells for this model is remembered by it. ModelTrouble
    where it does not answer."""
    path = "/models" if model.profile.dialect == "chat" else "/v1/models?limit=1000"
    body = await model.get(path, list_s_max, list_bytes_max)
    try:
        told: Any = json.loads(body)
        entries = told["data"] if "data" in told else told["models"]
        listed = tuple(
            Listed(str(entry.get("id") or entry.get("name")), _window(model.profile, entry))
            for entry in entries[:models_listed_max]
        )
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        if body.lstrip()[:1] == b"<":
            raise model.troubles.not_a_provider() from None
        raise model.troubles.garbled() from None
    for entry in listed:
        only = model.profile.model == "default" and len(listed) == 1  # llama.cpp has one, whatever it is called
        if entry.window and (entry.name == model.access.name or only) and model.access.window is None:
            model.window = entry.window
    return listed


def _window(profile: Profile, entry: Mapping[str, Any]) -> int | None:
    for member in profile.window_members:
        told = tokens(entry, *member.split("."))
        if told:
            return told
    return None
