"""Check a model before it is used (row P7): its key, the provider's list, one small request.

Nothing is changed or remembered: the check has a model and connections of its own. Its text says what was found and, of
each failure, what to do.
"""

from __future__ import annotations

import anyio

from steadyhand.adapters.models.doctor import NAMES_SHOWN_MAX, ask_briefly
from steadyhand.adapters.models.http import HttpClient
from steadyhand.adapters.models.remote import RemoteModel
from steadyhand.adapters.models.remote_models import UNCHOSEN, ModelListing, RemoteModels, list_models
from steadyhand.domain.model.messages import ProviderError
from steadyhand.ports.model import ModelCandidate, ModelCheck, OfferedModel

CHECK_S_MAX = 30.0
LIST_S_MAX = 12.0  # of it; a slow list leaves time for the request
UNLISTED_STATUSES = (400, 403, 404, 405, 501)  # of a provider that answers and has no list


async def check_candidate(models: RemoteModels, candidate: ModelCandidate) -> ModelCheck:
    """Return what a check of these settings shows. Raises nothing but a cancel."""
    client = HttpClient()
    try:
        model = models.candidate(candidate, client)
        return await check_model(model, model.access.name != UNCHOSEN)
    except ProviderError as trouble:
        return ModelCheck(False, str(trouble))
    finally:
        await client.close()


async def check_model(model: RemoteModel, is_chosen: bool) -> ModelCheck:
    """Return what a list and one small request show. `is_chosen` False: no model is named, so only the list counts.

    Raises nothing but a cancel.
    """
    listed: tuple[ModelListing, ...] | None = None
    try:
        with anyio.fail_after(CHECK_S_MAX):
            await model.make_headers()
            listed = await _list(model)
            if not is_chosen:
                return _without_a_model(model, listed)
            text = await _ask(model)
    except ProviderError as trouble:
        return ModelCheck(False, f"{trouble}{_near_names(model, listed, trouble)}", _offered(model, listed))
    except TimeoutError:
        text = (
            f"{model.profile.label} at {model.host} gave no complete answer within {CHECK_S_MAX:.0f} s. It may still be"
            " loading the model: try again. If it stays so, choose a smaller model or another provider."
        )
        return ModelCheck(False, text, _offered(model, listed))
    return ModelCheck(True, text, _offered(model, listed))


async def _list(model: RemoteModel) -> tuple[ModelListing, ...] | None:
    """Return the provider's list; None: it answers, and does not list its models."""
    try:
        with anyio.fail_after(LIST_S_MAX):
            return await list_models(model)
    except TimeoutError:
        return None
    except ProviderError as trouble:
        if trouble.kind == "garbled" or trouble.status in UNLISTED_STATUSES:
            return None
        raise


async def _ask(model: RemoteModel) -> str:
    """Make the small request and return what it shows. Raises ProviderError."""
    if (await ask_briefly(model, "Say: ready")).finish is None:
        raise ProviderError(
            f"The answer of {model.profile.named} at {model.host} broke off. A proxy may hold it back, or the server is"
            " overloaded. Try again."
        )
    return f"{model.profile.label} at {model.host} answers as “{model.access.name}”."


def _without_a_model(model: RemoteModel, listed: tuple[ModelListing, ...] | None) -> ModelCheck:
    if not listed:
        text = (
            f"{model.profile.label} at {model.host} answers, but lists no models. Set steadyhand.model.name to the name"
            " of one."
        )
        return ModelCheck(False, text, _offered(model, listed))
    names = ", ".join(f"“{entry.name}”" for entry in listed[:NAMES_SHOWN_MAX])
    found = f"{model.profile.label} at {model.host} answers and lists {len(listed)} models."
    return ModelCheck(True, f"{found} Choose one, for instance {names}.", _offered(model, listed))


def _near_names(model: RemoteModel, listed: tuple[ModelListing, ...] | None, trouble: ProviderError) -> str:
    """Return a sentence with names of the list, if the provider does not know the model."""
    if trouble.kind != "notFound" or not listed:
        return ""
    from difflib import get_close_matches

    names = [entry.name for entry in listed]
    near = get_close_matches(model.access.name, names, NAMES_SHOWN_MAX, 0.4) or names[:NAMES_SHOWN_MAX]
    return " It lists " + ", ".join(f"“{name}”" for name in near) + "."


def _offered(model: RemoteModel, listed: tuple[ModelListing, ...] | None) -> tuple[OfferedModel, ...] | None:
    if listed is None:
        return None
    return tuple(OfferedModel(model.profile.provider, entry.name, entry.window) for entry in listed)
