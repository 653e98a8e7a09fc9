"""The providers: one `Profile` each, as data only. To add a provider, add a profile.

A profile says where the provider is, where its key comes from, how its requests differ from the plain dialect, and what
is known of its models. Known models are a hint: names and windows change faster than releases, so a model that is not
listed can be used too, without any clamp on its tokens.

There are three dialects: `chat` (chat completions), `messages` (Anthropic's Messages API) and `responses` (OpenAI's
Responses API, row P6). Each provider has a usual one; `Profile.in_dialect` gives it another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import attrs

from steadyhand.domain.permissions.child_environment import is_credential_value
from steadyhand.domain.settings import DialectSetting
from steadyhand_values import frozen, pattern

Dialect = Literal["chat", "messages", "responses"]
ReasoningBack = Literal["never", "present", "always"]

HOSTED_SILENCE_S_MAX = 120.0
LOCAL_SILENCE_S_MAX = 1200.0  # no byte comes while a model loads, or for a long prompt on a slow machine
OUTPUT_TOKENS_DEFAULT = 32_000  # the Messages API requires a limit
PROGRESS_S_MAX = 660.0  # DeepSeek queues a request for up to 10 minutes behind keep-alives


@frozen
class KnownModel:
    """A model whose limits are known, in tokens."""

    name: str
    window: int
    output_max: int


@frozen
class Profile:
    """One provider."""

    provider: str  # the word of the setting `model.provider`
    label: str  # for people, at the beginning of a sentence
    dialect: Dialect
    address: str | None  # prefix of the API's paths; None: the setting `model.baseUrl` is required
    key_variable: str | None  # environment variable with the key, if `model.apiKeyEnv` is not set
    key_needed: bool
    model: str | None = None  # used if `model.name` is not set; None: the setting is required
    known: tuple[KnownModel, ...] = ()
    output_member: str = "max_tokens"  # the request's name for the output limit
    output_tokens_default: int | None = None  # sent if the caller gives none; None: left out
    reasoning_member: str | None = None  # the name under which reasoning is sent back
    reasoning_back: ReasoningBack = "never"  # "always": sent even if there was no reasoning
    thinking_off: str | None = None  # JSON members that ask for no reasoning; "": leaving out what was encrypted
    extra: str | None = None  # JSON members of every request, after the messages
    continues_under: str | None = None  # end of an address that can continue a message (row P2); None: no address can
    window_members: tuple[str, ...] = ()  # members of a GET /models entry that may tell it; dots separate levels
    renamed: Mapping[str, str] = attrs.field(factory=dict)  # names that no longer exist → the name to use now
    billing_currency: str | None = None  # currency of `usage.cost`, if each answer tells its cost
    silence_s_max: float = HOSTED_SILENCE_S_MAX  # seconds without a single byte
    progress_s_max: float = PROGRESS_S_MAX  # seconds with keep-alives only
    addresses: Mapping[Dialect, str] = attrs.field(factory=dict)  # of other dialects, if they differ
    start: str = ""  # a sentence on how to start it, if it runs on the user's machine

    def in_dialect(self, dialect: DialectSetting) -> Profile:
        """Return the profile for a dialect; what belongs to its usual one is left out of another."""
        if dialect == "auto" or dialect == self.dialect:
            return self
        return attrs.evolve(
            self,
            dialect=dialect,
            address=self.addresses.get(dialect) or self.address,
            output_member=_OUTPUT_MEMBERS[dialect],
            output_tokens_default=OUTPUT_TOKENS_DEFAULT if dialect == "messages" else None,
            reasoning_member=None,
            reasoning_back="never",
            thinking_off=_THINKING_OFF[dialect],
            extra=None,
            continues_under=None,
        )

    @property
    def named(self) -> str:
        """The label for the middle of a sentence."""
        return self.label.replace("The ", "the ", 1) if self.label.startswith("The ") else self.label

    def is_at(self, base_url: str | None) -> bool:
        """Return whether an address is the provider's own; only scheme, host and port are compared. None is its own."""
        if base_url is None:
            return True
        own, given = (_place(address) for address in (self.address or "", base_url))
        return given is not None and own == given

    def known_model(self, name: str) -> KnownModel | None:
        """Return what is known of the model; None: nothing."""
        return next((model for model in self.known if model.name == name), None)


_OUTPUT_MEMBERS: Mapping[Dialect, str] = {
    "chat": "max_tokens",
    "messages": "max_tokens",
    "responses": "max_output_tokens",
}
# In the Responses dialect a request asks without reasoning by leaving out what was encrypted.
_THINKING_OFF: Mapping[Dialect, str | None] = {
    "chat": None,
    "messages": '"thinking":{"type":"disabled"}',
    "responses": "",
}

_ADDRESS = pattern(r"\s*(https?)://(\[[0-9a-f:.]+\]|[\w.-]+)(:\d{1,5})?(?:/.*)?", re.IGNORECASE)
_VARIABLE_NAME = pattern("[A-Za-z_][A-Za-z0-9_]{0,99}")
_HERE = pattern(r"localhost|127(\.\d{1,3}){3}|\[::1\]")


def _place(address: str) -> tuple[str, str, str] | None:
    """Return scheme, host and port; None if it is no address."""
    found = _ADDRESS.fullmatch(address.strip())
    return (found[1].lower(), found[2].lower(), found[3] or "") if found else None


def is_on_this_machine(base_url: str) -> bool:
    """Return whether an address is on this machine."""
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
    # In a turn with calls the API requires the reasoning of every answer, even if empty; elsewhere it ignores it.
    reasoning_member="reasoning_content",
    reasoning_back="always",
    thinking_off='"thinking":{"type":"disabled"}',
    continues_under="/beta",
    addresses={"messages": "https://api.deepseek.com/anthropic"},
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
    output_tokens_default=OUTPUT_TOKENS_DEFAULT,
    addresses={"chat": "https://api.anthropic.com/v1"},
    thinking_off='"thinking":{"type":"disabled"}',
    # One mark after the messages is enough: the provider moves the breakpoint to the request's last block.
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
    billing_currency="USD",  # its credits are dollars
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
    start="Start it with `ollama serve`.",
    silence_s_max=LOCAL_SILENCE_S_MAX,
    progress_s_max=LOCAL_SILENCE_S_MAX,
)

_LLAMACPP = Profile(
    provider="llamacpp",
    label="llama.cpp",
    dialect="chat",
    address="http://127.0.0.1:8080/v1",
    key_variable="LLAMA_API_KEY",
    key_needed=False,
    model="default",  # the server has one model and ignores its name
    reasoning_member="reasoning_content",
    reasoning_back="present",
    window_members=("meta.n_ctx", "meta.n_ctx_train"),
    start="Start it with `llama-server`.",
    silence_s_max=LOCAL_SILENCE_S_MAX,
    progress_s_max=LOCAL_SILENCE_S_MAX,
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
    start="Start it with `vllm serve`.",
    silence_s_max=LOCAL_SILENCE_S_MAX,
    progress_s_max=LOCAL_SILENCE_S_MAX,
)

_COMPATIBLE = Profile(
    provider="compatible",
    label="The provider",
    dialect="chat",
    address=None,
    key_variable=None,  # no other provider's key is sent to the user's address
    key_needed=False,
    window_members=("context_length", "max_model_len", "context_window"),
    silence_s_max=LOCAL_SILENCE_S_MAX,
)

PROFILES: Mapping[str, Profile] = {
    profile.provider: profile
    for profile in (_DEEPSEEK, _OPENAI, _ANTHROPIC, _OPENROUTER, _OLLAMA, _LLAMACPP, _VLLM, _COMPATIBLE)
}
PROVIDERS = ("practice", *PROFILES)
"""Every value of `model.provider`: the built-in practice model, and the remote providers."""


def effective_model_name(provider: str, name: str) -> str | None:
    """Return the model's name at the provider; None if there is no default or no such provider.

    A name that is empty or equals the provider's word means that the user chose none.
    """
    if name not in ("", provider):
        return name
    return PROFILES[provider].model if provider in PROFILES else None


def is_variable_name(value: object) -> bool:
    """Return whether this is a variable's name. A key that was put there by mistake is none: it would be shown wherever
    the name is shown (row E2)."""
    named = isinstance(value, str) and _VARIABLE_NAME.fullmatch(value) is not None
    return named and not is_credential_value(str(value))


def key_variables(configured: str | None = None) -> frozenset[str]:
    """Return every environment variable that a key is read from; no child process gets one of them."""
    named = {profile.key_variable for profile in PROFILES.values() if profile.key_variable}
    return frozenset(named | ({configured} if configured else set()))
