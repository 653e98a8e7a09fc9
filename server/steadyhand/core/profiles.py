"""The providers: one `Profile` each, data alone. Adding one means adding one here.

A profile says where the provider is, where its key comes from, how its requests differ from the plain dialect, and
what is known of its models. What is known is a hint, never a gate: names and windows change faster than releases,
so a model that does not stand here is asked for all the same, with nothing clamped.

Two dialects exist: `chat` (chat completions) and `messages` (Anthropic's Messages API).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import attrs

Dialect = Literal["chat", "messages"]
ReasoningBack = Literal["never", "present", "always"]

hosted_silence_s_max = 120.0
local_silence_s_max = 1200.0  # a model that is being loaded, and a long prompt on a slow machine, send nothing
progress_s_max = 660.0  # DeepSeek queues a request for up to 10 minutes behind keep-alives


@attrs.frozen
class KnownModel:
    """What is known of a model; tokens."""

    name: str
    window: int
    output_max: int


@attrs.frozen
class Profile:
    """One provider."""

    provider: str  # the word of `model.provider`
    label: str  # for people, at the beginning of a sentence
    dialect: Dialect
    address: str | None  # what paths are put behind; None: `model.baseUrl` has to be set
    key_variable: str | None  # the environment variable looked at where `model.apiKeyEnv` is not set
    key_needed: bool
    model: str | None = None  # where `model.name` is not set; None: it has to be
    known: tuple[KnownModel, ...] = ()
    output_member: str = "max_tokens"  # the body's name for the output limit
    output_tokens_default: int | None = None  # sent where the caller names none; None: it is left out
    reasoning_member: str | None = None  # the name under which reasoning goes back
    reasoning_back: ReasoningBack = "never"  # "always": the member goes even where there was no reasoning
    thinking_off: str | None = None  # JSON members that ask for an answer without reasoning
    extra: str | None = None  # JSON members of every request, behind the messages
    continues_under: str | None = None  # what an address ends in that goes on with a message (row P2); None: none does
    window_members: tuple[str, ...] = ()  # where an entry of GET /models tells the window; dots part levels
    renamed: Mapping[str, str] = attrs.field(factory=dict)  # names that are gone → what to write today
    billed_in: str | None = None  # the currency of `usage.cost`, where each answer tells what it cost
    silence_s_max: float = hosted_silence_s_max  # without a single byte
    progress_s_max: float = progress_s_max  # with keep-alives only

    @property
    def named(self) -> str:
        """The label within a sentence."""
        return self.label.replace("The ", "the ", 1) if self.label.startswith("The ") else self.label

    def is_at(self, base_url: str | None) -> bool:
        """Whether an address is the provider's own, however much of its path was copied; None is."""
        if base_url is None:
            return True
        own, given = (_place(address) for address in (self.address or "", base_url))
        return given is not None and own == given

    def known_model(self, name: str) -> KnownModel | None:
        return next((model for model in self.known if model.name == name), None)


_ADDRESS = re.compile(r"\s*(https?)://(\[[0-9a-f:.]+\]|[\w.-]+)(:\d{1,5})?(?:/.*)?", re.IGNORECASE)
_HERE = re.compile(r"localhost|127(\.\d{1,3}){3}|\[::1\]")


def _place(address: str) -> tuple[str, str, str] | None:
    """Scheme, host and port; None for what is no address."""
    found = _ADDRESS.fullmatch(address.strip())
    return (found[1].lower(), found[2].lower(), found[3] or "") if found else None


def is_here(base_url: str) -> bool:
    """Whether an address is on this machine."""
    place = _place(base_url)
    return place is not None and _HERE.fullmatch(place[1]) is not None


_DEEPSEEK = Profile(
    provider="deepseek",
    label="DeepSeek",
    dialect="chat",
    address="https://api.deepseek.com",
    key_variable="DEEPSEEK_API_KEY",
    key_needed=True,
    model="deepseek-flash",
    known=tuple(
        KnownModel(name, 1_000_000, 384_000)
        for name in ("deepseek-flash", "deepseek-v4-flash", "deepseek-v4-flash-vision-exp", "deepseek-v4-pro")
    ),
    # In a turn with calls every answer's reasoning has to come back, an empty one too; elsewhere it is ignored.
    reasoning_member="reasoning_content",
    reasoning_back="always",
    thinking_off='"thinking":{"type":"disabled"}',
    continues_under="/beta",
    renamed={"deepseek-chat": "deepseek-flash", "deepseek-reasoner": "deepseek-flash"},
)

_OPENAI = Profile(
    provider="openai",
    label="OpenAI",
    dialect="chat",
    address="https://api.openai.com/v1",
    key_variable="OPENAI_API_KEY",
    key_needed=True,
    model="gpt-5.1",
    known=tuple(KnownModel(name, 400_000, 128_000) for name in ("gpt-5.1", "gpt-5", "gpt-5-mini", "gpt-5-nano")),
    output_member="max_completion_tokens",
)

_ANTHROPIC = Profile(
    provider="anthropic",
    label="Anthropic",
    dialect="messages",
    address="https://api.anthropic.com",
    key_variable="ANTHROPIC_API_KEY",
    key_needed=True,
    model="claude-sonnet-5",
    known=(
        KnownModel("claude-opus-5-5", 1_000_000, 128_000),
        KnownModel("claude-opus-5", 1_000_000, 128_000),
        KnownModel("claude-sonnet-5", 1_000_000, 128_000),
        KnownModel("claude-haiku-4-5", 200_000, 64_000),
    ),
    output_tokens_default=32_000,  # this API wants a limit
    thinking_off='"thinking":{"type":"disabled"}',
    # One mark for the whole request, behind the messages: the provider moves the breakpoint to its last block.
    extra='"cache_control":{"type":"ephemeral"}',
    window_members=("max_input_tokens",),
)

_OPENROUTER = Profile(
    provider="openrouter",
    label="OpenRouter",
    dialect="chat",
    address="https://openrouter.ai/api/v1",
    key_variable="OPENROUTER_API_KEY",
    key_needed=True,
    reasoning_member="reasoning",
    reasoning_back="present",
    thinking_off='"reasoning":{"enabled":false}',
    billed_in="USD",  # its credits are dollars
    window_members=("context_length",),
)

_OLLAMA = Profile(
    provider="ollama",
    label="Ollama",
    dialect="chat",
    address="http://127.0.0.1:11434/v1",
    key_variable="OLLAMA_API_KEY",
    key_needed=False,
    reasoning_member="reasoning",
    reasoning_back="present",
    silence_s_max=local_silence_s_max,
    progress_s_max=local_silence_s_max,
)

_LLAMACPP = Profile(
    provider="llamacpp",
    label="llama.cpp",
    dialect="chat",
    address="http://127.0.0.1:8080/v1",
    key_variable="LLAMA_API_KEY",
    key_needed=False,
    model="default",  # the server has one model and does not look at its name
    reasoning_member="reasoning_content",
    reasoning_back="present",
    window_members=("meta.n_ctx", "meta.n_ctx_train"),
    silence_s_max=local_silence_s_max,
    progress_s_max=local_silence_s_max,
)

_VLLM = Profile(
    provider="vllm",
    label="vLLM",
    dialect="chat",
    address="http://127.0.0.1:8000/v1",
    key_variable="VLLM_API_KEY",
    key_needed=False,
    reasoning_member="reasoning",
    reasoning_back="present",
    window_members=("max_model_len",),
    silence_s_max=local_silence_s_max,
    progress_s_max=local_silence_s_max,
)

_COMPATIBLE = Profile(
    provider="compatible",
    label="The provider",
    dialect="chat",
    address=None,
    key_variable=None,  # no other provider's key goes to an address of the user's
    key_needed=False,
    window_members=("context_length", "max_model_len", "context_window"),
    silence_s_max=local_silence_s_max,
)

PROFILES: Mapping[str, Profile] = {
    profile.provider: profile
    for profile in (_DEEPSEEK, _OPENAI, _ANTHROPIC, _OPENROUTER, _OLLAMA, _LLAMACPP, _VLLM, _COMPATIBLE)
}
PROVIDERS = ("practice", *PROFILES)
"""Every word that `model.provider` takes: the practice model built in, and the remote ones."""


def chosen_name(provider: str, name: str) -> str | None:
    """The model's name at the provider. A name that is only the provider's word is one that nobody chose; None where
    there is no usual one, or no such provider."""
    if name not in ("", provider):
        return name
    return PROFILES[provider].model if provider in PROFILES else None


def key_variables(configured: str | None = None) -> frozenset[str]:
    """Every environment variable a key is read from; no child is given one of them."""
    named = {profile.key_variable for profile in PROFILES.values() if profile.key_variable}
    return frozenset(named | ({configured} if configured else set()))
