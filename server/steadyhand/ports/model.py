"""Models and what is known about their providers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Protocol, runtime_checkable

from steadyhand.domain.model.messages import Finding, ModelRequest, StreamPart
from steadyhand.domain.settings import Settings
from steadyhand_values import frozen


class Model(Protocol):
    """One model of one provider. It streams one answer for each request.

    It raises `ProviderError` (`domain.model.messages`) with one clear sentence.
    """

    def ask(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Yield the parts in order; the last one is `Finish`. A stream that ends without it was cut."""
        ...


@runtime_checkable
class Continuing(Protocol):
    """A model that may be able to continue an assistant message (`ModelRequest.is_continuation`, row P2)."""

    @property
    def can_continue(self) -> bool:
        """Whether it can, with its present settings."""
        ...


Models = Callable[[str, str], Model]
"""(provider, name) → the model; raises `ProviderError` if there is none."""


@frozen
class OfferedModel:
    """A model that a provider offers. `window` in tokens; None: the provider does not tell."""

    provider: str
    name: str
    window: int | None = None


@frozen
class ModelCandidate:
    """Settings of a model that are tried out. None: the provider's usual value."""

    provider: str
    name: str | None = None
    base_url: str | None = None
    key_variable: str | None = None


@frozen
class ModelCheck:
    """The result of trying out a model. `text`: what was found; if it is not ok, what to do. It holds no secret."""

    ok: bool
    text: str
    models: tuple[OfferedModel, ...] | None = None  # None: the provider does not tell


@runtime_checkable
class Providers(Protocol):
    """What can be asked about providers, besides an answer: their models, and what is wrong with one."""

    def connect(self, settings: Callable[[], Settings], secret: Callable[[str], Awaitable[str | None]] | None) -> None:
        """Set where the present settings come from, and the editor's secret store if it has one (name → secret)."""
        ...

    async def list_models(self, provider: str) -> Sequence[OfferedModel]:
        """Return the models that a provider offers. Raises `ProviderError` with one sentence if it does not answer."""
        ...

    async def learn_window(self, provider: str, name: str) -> int | None:
        """Return the model's window in tokens; None: nobody tells.

        An unknown window is asked of the provider, once if that is answered, bounded in time. The answer counts from
        the next request on. Raises nothing but a cancel.
        """
        ...

    async def check(self, candidate: ModelCandidate) -> ModelCheck:
        """Ask a provider for its models and make one small request, which it bills. Nothing is changed or remembered.

        Bounded in time. Raises nothing but a cancel.
        """
        ...

    async def diagnose(self, provider: str, name: str) -> Sequence[Finding]:
        """Check one thing after the other and return the findings in order.

        It makes small real requests, which the provider bills, and stops when the next thing cannot work. Raises
        nothing but a cancel.
        """
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
