"""Every model there is: the practice model built in, and the remote ones of the settings (ports.Models, Providers).

Settings are asked for anew at each model, so that new ones count from the next request on. Nothing is imported or
opened for a remote model before it is asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from steadyhand.adapters.model_practice import PracticeModel
from steadyhand.adapters.model_providers import ModelSettings, RemoteModels
from steadyhand.core.model import Finding, ModelTrouble
from steadyhand.core.settings import Settings
from steadyhand.ports import Model, OfferedModel

PRACTICE = "practice"
PRACTICE_TEXT = (
    "The practice model is built in: it needs no key and no network, follows a few fixed sentences, and is no language"
    " model. For one, set steadyhand.model.provider; see docs/providers.md."
)


class AllModels:
    """Called with (provider, name) it is ports.Models."""

    def __init__(self, environment: Callable[[], Mapping[str, str]]) -> None:
        self._settings: Callable[[], Settings] = Settings
        self._secret: Callable[[str], Awaitable[str | None]] | None = None
        self._remote = RemoteModels(self._model_settings, environment, self._ask_secret)

    def __call__(self, provider: str, name: str) -> Model:
        if provider == PRACTICE:
            return PracticeModel()
        return self._remote.model(provider, name)

    def connect(self, settings: Callable[[], Settings], secret: Callable[[str], Awaitable[str | None]] | None) -> None:
        self._settings, self._secret = settings, secret

    async def offered(self, provider: str) -> Sequence[OfferedModel]:
        if provider == PRACTICE:
            return (OfferedModel(PRACTICE, PRACTICE),)
        return tuple(OfferedModel(provider, found.name, found.window) for found in await self._remote.listing(provider))

    async def learn_window(self, provider: str, name: str) -> int | None:
        if provider == PRACTICE:
            return None
        try:
            return await self._remote.learn_window(provider, name)
        except ModelTrouble:
            return None

    async def diagnose(self, provider: str, name: str) -> Sequence[Finding]:
        if provider == PRACTICE:
            return (Finding("model", True, PRACTICE_TEXT),)
        from steadyhand.adapters.model_doctor import diagnose

        try:
            return await diagnose(self._remote.model(provider, name))
        except ModelTrouble as trouble:
            return (Finding("model", False, str(trouble)),)

    async def close(self) -> None:
        await self._remote.close()

    def _model_settings(self) -> ModelSettings:
        settings = self._settings()
        return ModelSettings(settings.model.provider, settings.base_url, settings.key_variable)

    async def _ask_secret(self, name: str) -> str | None:
        return await self._secret(name) if self._secret is not None else None
