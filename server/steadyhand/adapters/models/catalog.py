"""All models: the built-in practice model and the remote ones of the settings (`ports.Models`, `ports.Providers`).

The settings are read for each model, so new ones apply from the next request on. Nothing is imported or opened for a
model before its first use.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from steadyhand.domain.model.messages import Finding, ProviderError
from steadyhand.domain.settings import Settings
from steadyhand.ports.model import Model, ModelCandidate, ModelCheck, OfferedModel

if TYPE_CHECKING:
    from steadyhand.adapters.models.remote_models import ModelSettings, RemoteModels

PRACTICE = "practice"
PRACTICE_TEXT = (
    "The practice model is built in. It needs no key and no network. It is not a language model: it follows a few"
    " fixed sentences. For a language model set steadyhand.model.provider; see docs/providers.md."
)


class ModelCatalog:
    """All models. Called with (provider, name) it is `ports.Models`."""

    def __init__(self, environment: Callable[[], Mapping[str, str]]) -> None:
        self._settings: Callable[[], Settings] = Settings
        self._secret: Callable[[str], Awaitable[str | None]] | None = None
        self._environment = environment
        self._remote_models: RemoteModels | None = None  # made when one is wanted
        self._practice: Model | None = None  # likewise

    def __call__(self, provider: str, name: str) -> Model:
        if provider == PRACTICE:
            if self._practice is None:
                from steadyhand.adapters.models.practice import PracticeModel

                self._practice = PracticeModel()
            return self._practice
        return self._remote().model(provider, name)

    def connect(self, settings: Callable[[], Settings], secret: Callable[[str], Awaitable[str | None]] | None) -> None:
        self._settings, self._secret = settings, secret

    async def list_models(self, provider: str) -> Sequence[OfferedModel]:
        if provider == PRACTICE:
            return (OfferedModel(PRACTICE, PRACTICE),)
        return tuple(
            OfferedModel(provider, found.name, found.window) for found in await self._remote().list_models(provider)
        )

    async def learn_window(self, provider: str, name: str) -> int | None:
        if provider == PRACTICE:
            return None
        try:
            return await self._remote().learn_window(provider, name)
        except ProviderError:
            return None

    async def check(self, candidate: ModelCandidate) -> ModelCheck:
        if candidate.provider == PRACTICE:
            return ModelCheck(True, PRACTICE_TEXT, (OfferedModel(PRACTICE, PRACTICE),))
        from steadyhand.adapters.models.check import check_candidate

        return await check_candidate(self._remote(), candidate)

    async def diagnose(self, provider: str, name: str) -> Sequence[Finding]:
        if provider == PRACTICE:
            return (Finding("model", True, PRACTICE_TEXT),)
        from steadyhand.adapters.models.doctor import diagnose

        try:
            return await diagnose(self._remote().model(provider, name))
        except ProviderError as trouble:
            return (Finding("model", False, str(trouble)),)

    async def close(self) -> None:
        if self._remote_models is not None:
            await self._remote_models.close()

    def _remote(self) -> RemoteModels:
        if self._remote_models is None:
            from steadyhand.adapters.models.remote_models import RemoteModels

            self._remote_models = RemoteModels(self._model_settings, self._environment, self._ask_secret)
        return self._remote_models

    def _model_settings(self) -> ModelSettings:
        from steadyhand.adapters.models.remote_models import ModelSettings

        settings = self._settings()
        return ModelSettings(
            settings.model.provider, settings.base_url, settings.key_variable, settings.dialect, settings.window
        )

    async def _ask_secret(self, name: str) -> str | None:
        return await self._secret(name) if self._secret is not None else None
