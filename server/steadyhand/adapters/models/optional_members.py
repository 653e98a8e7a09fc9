"""Members of a request that a provider may refuse: the same request works without them (case 112).

A provider that copies a dialect may not know every member of it. Where its refusal names a member that was sent and is
not needed, that member is left out. Of an output limit, which has two names in chat completions, the other name is
tried first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

import attrs

from steadyhand.domain.model.messages import ProviderError
from steadyhand.domain.model.provider_profiles import Dialect, Profile
from steadyhand_values import pattern

MEMBERS: Mapping[Dialect, tuple[str, ...]] = {
    "chat": ("stream_options", "tool_choice"),
    "messages": ("tool_choice",),
    "responses": ("include", "store", "strict", "tool_choice"),
}
OTHER_NAMES: Mapping[str, str] = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}

_TOO_MANY = pattern(r"max_tokens\W{1,4}\d{1,9} > (\d{1,9})")


def refused_member(trouble: ProviderError, profile: Profile, left_out: Collection[str]) -> str | None:
    """Return the optional member that a provider refuses; None: it refuses something else."""
    if trouble.kind != "rejected" or trouble.status not in (None, 400, 422):
        return None
    return next((name for name in _optional(profile) if name not in left_out and _names(trouble.words, name)), None)


def stated_output_max(trouble: ProviderError) -> int | None:
    """Return the output limit that a provider names when it refuses a larger one; None: it names none."""
    found = _TOO_MANY.search(trouble.words) if trouble.kind == "rejected" else None
    return int(found[1]) or None if found else None


def profile_without(profile: Profile, left_out: Collection[str]) -> Profile:
    """Return the profile without the members that the provider refuses."""
    output = profile.output_member
    if output in left_out:
        output = OTHER_NAMES.get(output, "")
    kept = attrs.evolve(profile, output_member="" if output in left_out else output)
    if profile.reasoning_member in left_out:
        kept = attrs.evolve(kept, reasoning_member=None, reasoning_back="never")
    if _name_of(profile.extra) in left_out:
        kept = attrs.evolve(kept, extra=None)
    if _name_of(profile.thinking_off) in left_out:
        kept = attrs.evolve(kept, thinking_off="")
    return kept


def _optional(profile: Profile) -> Iterator[str]:
    yield from MEMBERS[profile.dialect]
    if profile.dialect != "messages":  # which requires its limit
        yield profile.output_member
        if profile.dialect == "chat":
            yield OTHER_NAMES[profile.output_member]
    for name in (profile.reasoning_member, _name_of(profile.extra), _name_of(profile.thinking_off)):
        if name:
            yield name


def _name_of(members: str | None) -> str:
    """Return the first name of JSON members."""
    return members.split('"')[1] if members else ""


def _names(words: str, name: str) -> bool:
    """Return whether words name a member. A name that is also an English word must be marked as a name."""
    if "_" in name:
        return (
            re.search(rf"(?<![A-Za-z0-9]){name.replace('_', '[_ -]')}(?![A-Za-z0-9])", words, re.IGNORECASE) is not None
        )
    marked = rf"""['"`“\[.]{name}['"`”\]: ]|(?:parameter|field|argument|property|member|key):? {name}\b"""
    return re.search(marked, words + " ") is not None
