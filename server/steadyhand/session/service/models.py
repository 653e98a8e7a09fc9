"""The models that a user may choose from, and the check of one before it is chosen (row P7)."""

from __future__ import annotations

from steadyhand.domain.model.messages import ProviderError
from steadyhand.domain.views.notifications import MessageNotification
from steadyhand.ports.model import ModelCandidate, ModelCheck, OfferedModel
from steadyhand.session.context import SessionContext


async def list_models(context: SessionContext) -> tuple[OfferedModel, ...]:
    """Return the practice model and what the chosen provider offers.

    Of a provider that does not answer only the chosen model is listed, and the user is warned."""
    chosen = context.settings.model
    found = [OfferedModel("practice", "practice")]
    if chosen.provider != "practice" and context.providers is not None:
        try:
            found += await context.providers.list_models(chosen.provider)
        except ProviderError as trouble:
            found.append(OfferedModel(chosen.provider, chosen.name))
            context.editor.tell(MessageNotification("warning", str(trouble)))
    return tuple(found)


async def check_model(context: SessionContext, candidate: ModelCandidate) -> ModelCheck:
    """Try out a model whose settings are not in force; change nothing."""
    if context.providers is None:
        return ModelCheck(False, "This server has no providers to check.")
    return await context.providers.check(candidate)
