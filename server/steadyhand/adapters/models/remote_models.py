"""The models of the settings: provider, name, address and key.

`RemoteModels` makes one `RemoteModel` for each pair of provider and name, over one HTTP client, and keeps it: the
connections, and a window that was learnt, last longer than a turn. New settings discard them. Nothing is opened, and no
HTTP library is imported, before the first request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from steadyhand.adapters.models.error_words import page_title
from steadyhand.adapters.models.http import HttpClient
from steadyhand.adapters.models.remote import Access, RemoteModel, Secret
from steadyhand.adapters.models.stream_parser import token_count
from steadyhand.domain.model.messages import ProviderError
from steadyhand.domain.model.provider_profiles import (
    PROFILES,
    Profile,
    effective_model_name,
    is_variable_name,
)
from steadyhand.domain.settings import DialectSetting
from steadyhand.ports.model import ModelCandidate
from steadyhand_values import frozen

LIST_S_MAX = 20.0
LIST_BYTES_MAX = 8 * 1024 * 1024
MODELS_LISTED_MAX = 1000
PASSING_KINDS = ("unreachable", "keyMissing", "overloaded")  # kinds of error after which a list may come later
UNCHOSEN = "unchosen"  # the model's name in a request about its provider alone


@frozen
class ModelSettings:
    """The settings `model.*` about the connection. They apply to `provider`, not to another one that a session has
    chosen.
    """

    provider: str
    base_url: str | None = None
    key_variable: str | None = None
    dialect: DialectSetting = "auto"
    window: int | None = None  # tokens; wins over what the provider says


@frozen
class ModelListing:
    """A model that a provider offers; window in tokens."""

    name: str
    window: int | None = None


class RemoteModels:
    """The models over HTTP of one event loop."""

    def __init__(
        self,
        settings: Callable[[], ModelSettings],
        environment: Callable[[], Mapping[str, str]],
        secret: Secret | None = None,
    ) -> None:
        """`settings` and `environment` are called for each model and each request."""
        self._settings = settings
        self._environment = environment
        self._secret = secret
        self._client = HttpClient()
        self._models: dict[tuple[str, str], RemoteModel] = {}
        self._windows: dict[tuple[str, str], int] = {}  # (provider, the model's name there) → tokens, from its list
        self._windows_asked_for: set[tuple[str, str]] = set()
        self._current_settings: ModelSettings | None = None

    def model(self, provider: str, name: str) -> RemoteModel:
        """Return the model of a pair. If the name is only the provider's word, nobody chose a model.

        Raises ProviderError if settings are missing or unusable.
        """
        settings = self._settings()
        if settings != self._current_settings:
            self._models.clear()
            self._windows.clear()
            self._windows_asked_for.clear()
            self._current_settings = settings
        made = self._models.get((provider, name))
        if made is None:
            made = self._models[(provider, name)] = RemoteModel(self._access(settings, provider, name), self._client)
            listed_window = self._windows.get((provider, made.access.name))
            made.window = made.access.window or listed_window or made.window
        return made

    async def list_models(self, provider: str) -> tuple[ModelListing, ...]:
        """Return what a provider offers; no model has to be chosen. Raises ProviderError if it does not answer."""
        chosen = PROFILES[provider].model if provider in PROFILES else None
        listed = await list_models(self.model(provider, chosen or UNCHOSEN))
        self._remember(provider, listed)
        return listed

    async def learn_window(self, provider: str, name: str) -> int | None:
        """Return the window of a model; None: unknown. An unknown window is asked for until the provider has answered
        once.

        Raises ProviderError for settings only: a provider that does not list its models is no error.
        """
        made = self.model(provider, name)
        if made.window is None and made.profile.window_members and (provider, name) not in self._windows_asked_for:
            self._windows_asked_for.add((provider, name))
            try:
                self._remember(provider, await list_models(made))
            except ProviderError as trouble:
                if trouble.kind in PASSING_KINDS:  # a local server may still be starting
                    self._windows_asked_for.discard((provider, name))
        return made.window

    def candidate(self, candidate: ModelCandidate, client: HttpClient) -> RemoteModel:
        """Return a model for settings that are not in force; it is not remembered. Raises ProviderError if they are
        missing or unusable.
        """
        if candidate.key_variable and not is_variable_name(candidate.key_variable):
            raise ProviderError(
                "steadyhand.model.apiKeyEnv is not the name of an environment variable.", kind="settings"
            )
        configured = self._settings()
        dialect = configured.dialect if candidate.provider == configured.provider else "auto"
        tried = ModelSettings(candidate.provider, candidate.base_url or None, candidate.key_variable or None, dialect)
        chosen = effective_model_name(candidate.provider, candidate.name or "")
        return RemoteModel(self._access(tried, candidate.provider, chosen or UNCHOSEN), client)

    async def close(self) -> None:
        await self._client.close()

    def _remember(self, provider: str, listed: tuple[ModelListing, ...]) -> None:
        """Store the windows of a list, for present and later models."""
        self._windows.update({(provider, entry.name): entry.window for entry in listed if entry.window})
        for (owner, _), made in self._models.items():
            listed_window = self._windows.get((owner, made.access.name))
            made.window = made.access.window or listed_window or made.window

    def _access(self, settings: ModelSettings, provider: str, name: str) -> Access:
        profile = PROFILES.get(provider)
        if profile is None:
            known = ", ".join(PROFILES)
            raise ProviderError(
                f"There is no provider “{provider}”. Set steadyhand.model.provider to one of practice, {known}.",
                kind="settings",
            )
        chosen = effective_model_name(provider, name)
        if chosen is None:
            raise ProviderError(f"No model of {profile.named} is chosen. Set steadyhand.model.name.", kind="settings")
        configured = provider == settings.provider
        return Access(
            profile=profile.in_dialect(settings.dialect if configured else "auto"),
            name=chosen,
            environment=self._environment,
            base_url=settings.base_url if configured else None,
            key_variable=settings.key_variable if configured else None,
            secret=self._secret,
            window=settings.window if configured else None,
        )


async def list_models(model: RemoteModel) -> tuple[ModelListing, ...]:
    """Return what the provider offers, in its order. The model remembers its own window from it.

    Raises ProviderError if the provider does not answer.
    """
    path = "/v1/models?limit=1000" if model.profile.dialect == "messages" else "/models"
    body = await model.get(path, LIST_S_MAX, LIST_BYTES_MAX)
    try:
        payload: Any = json.loads(body)
        entries = payload["data"] if "data" in payload else payload["models"]
        listed = tuple(
            ModelListing(str(entry.get("id") or entry.get("name")), _window_of(model.profile, entry))
            for entry in entries[:MODELS_LISTED_MAX]
        )
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        if body.lstrip()[:1] == b"<":
            raise model.errors.not_a_provider(words=page_title(body)) from None
        raise model.errors.garbled() from None
    for entry in listed:
        only = model.profile.model == "default" and len(listed) == 1  # llama.cpp has one model, whatever its name
        if entry.window and (entry.name == model.access.name or only) and model.access.window is None:
            model.window = entry.window
    return listed


def _window_of(profile: Profile, entry: Mapping[str, Any]) -> int | None:
    for member in profile.window_members:
        window = token_count(entry, *member.split("."))
        if window:
            return window
    return None
