"""The environment a child is given (row E1).

Three parts, each over the one before: what this process was given, less what looks like a credential; what
the user adds, unfiltered, for the user named it; our own variables. A variable is removed for its name (a
word of it is a credential's word), for its value (a URL with user info, a known form of key, a private key),
or because it is known to hold a model's key, whatever it looks like. Agents that hand out credentials (ssh,
gpg, git's askpass) are removed too. The rules err towards removing; whoever misses a variable finds its name,
never its value, in `removed`, and can add it: `${env:NAME}` stands for the value this process was given, so
that an agent, whose socket has another path each day, is allowed by naming it once.

A number of tokens is no token, a path of a display's authority is none, an author is none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import attrs

own_prefix = "STEADYHAND_"
attempt_mark_name = "STEADYHAND_ATTEMPT_ID"
idempotency_key_name = "STEADYHAND_IDEMPOTENCY_KEY"
session_name = "STEADYHAND_SESSION_ID"

value_chars_looked_at_max = 256 * 1024  # a longer value is removed unread; Linux allows 128 KiB

# One of these as a word of a name (`_`, `-`, `.` and the like part words).
credential_words = frozenset(
    [
        "KEY",
        "KEYS",
        "APIKEY",
        "APIKEYS",
        "TOKEN",
        "TOKENS",
        "SECRET",
        "SECRETS",
        "PASSWORD",
        "PASSWORDS",
        "PASSWD",
        "PASS",
        "PWD",
        "PASSPHRASE",
        "PASSCODE",
        "CREDENTIAL",
        "CREDENTIALS",
        "CRED",
        "CREDS",
        "COOKIE",
        "COOKIES",
        "AUTH",
        "AUTHORIZATION",
        "OAUTH",
        "OAUTH2",
        "BEARER",
        "PRIVATE",
        "JWT",
        "PAT",
        "OTP",
        "SESSIONID",
        "SESSID",
    ]
)
# A word may also be glued to another: PGPASSWORD, AUTHTOKEN. Short ones are not looked for: MONKEY, COMPASS.
credential_endings = (
    *("PASSWORD", "PASSWORDS", "PASSWD", "PASSPHRASE", "SECRET", "SECRETS", "TOKEN", "CREDENTIAL"),
    *("CREDENTIALS", "COOKIE", "COOKIES", "APIKEY", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY", "AUTHKEY"),
    *("SIGNINGKEY", "MASTERKEY", "ACCOUNTKEY", "SESSID"),
)
credential_names = frozenset(
    ["SSHPASS", "BW_SESSION", "MYSQL_PWD", "DOCKER_AUTH_CONFIG", "GOOGLE_APPLICATION_CREDENTIALS"]
)
credential_prefixes = ("AWS_", "OP_SESSION_")
agent_names = frozenset(
    [
        "SSH_AUTH_SOCK",
        "SSH_AGENT_PID",
        "GPG_AGENT_INFO",
        "GNOME_KEYRING_CONTROL",
        "GNOME_KEYRING_PID",
        "SSH_ASKPASS",
        "GIT_ASKPASS",
        "KRB5CCNAME",
        "VSCODE_GIT_IPC_HANDLE",
    ]
)
agent_prefixes = ("VSCODE_GIT_ASKPASS_",)
plain_names = frozenset(
    [
        "PWD",
        "OLDPWD",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_DEFAULT_OUTPUT",
        "AWS_PAGER",
        "AWS_EC2_METADATA_DISABLED",
    ]
)

_words = re.compile(r"[^A-Z0-9]+")
_count = re.compile(r"[0-9]{1,9}")
_given_value = re.compile(r"\$\{env:([^}]+)\}")

# Quantifiers are bounded where a search could otherwise start over at every character.
credential_values = re.compile(
    "|".join(
        (
            r"://[^\s/?#@:]{0,512}:(?!\d{1,5}[/?#])[^\s@]{0,512}@",  # scheme://user:password@host
            r"(?<!ssh)://[^\s/?#@:]{1,512}@",  # scheme://token@host; ssh://git@host names only a user
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY",
            r"AGE-SECRET-KEY-1",
            r"(?<![A-Za-z0-9])(?:sk|rk|pk)[-_][A-Za-z0-9_-]{16}",
            r"(?<![A-Za-z0-9])gh[oprsu]_[A-Za-z0-9]{20}",
            r"(?<![A-Za-z0-9])(?:github_pat_|glpat-|gsk_|xai-|hf_|npm_|dop_v1_|shpat_)[A-Za-z0-9_-]{16}",
            r"(?<![A-Za-z0-9])xox[a-z]-[A-Za-z0-9-]{10}",
            r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}",
            r"(?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{30}",
            r"(?<![A-Za-z0-9])ya29\.[A-Za-z0-9_-]{16}",
            r"(?<![A-Za-z0-9])SG\.[A-Za-z0-9_-]{16}",
            r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,4096}\.eyJ[A-Za-z0-9_-]{8}",  # a JSON Web Token
            r"(?i:\b(?:bearer|basic)\s{1,8}[A-Za-z0-9._~+/=-]{16})",
            r"(?i:(?:password|passwd|passphrase|accountkey|accesskey)=[^\s;&])",
            r"(?i:(?<![a-z])(?:secret|token|access_token|api_?key|client_secret)=[^\s;&])",
            r"(?i:;\s{0,8}pwd=[^\s;])",  # a connection string
        )
    )
)


@attrs.frozen
class ChildEnvironment:
    """The variables of a child, and the names (sorted, never values) of those given that it does not get."""

    values: Mapping[str, str]
    removed: tuple[str, ...]


def child_environment(
    given: Mapping[str, str],
    add: Mapping[str, str],
    own: Mapping[str, str],
    withheld: Collection[str] = (),
) -> ChildEnvironment:
    """Build the environment of one child. `own` is added last and as it is.

    `withheld`: names of given variables that hold a key, whatever they look like; `${env:NAME}` does not reach them."""
    kept = {name: text for name, text in given.items() if name not in withheld and not _held_from_child(name, text)}
    reachable = {name: text for name, text in given.items() if name not in withheld and not _is_own(name)}
    # A user's variable may not pass for one of ours: a false mark would make a stranger's process ours to end.
    meant = {name: _meant(value, reachable) for name, value in add.items() if not _is_own(name)}
    added = {name: value for name, value in meant.items() if value is not None}
    values = {**kept, **added, **own}
    return ChildEnvironment(values, tuple(sorted({*given, *add} - set(values))))


def looks_like_credential(name: str, value: str) -> bool:
    """Whether the name or the value of a variable looks like a credential; an agent's does not."""
    return bool(value) and (_is_credential_name(name.upper(), value) or _is_credential_value(value))


def _meant(value: str, given: Mapping[str, str]) -> str | None:
    """A value as the user wrote it; None: it stands for a variable that is not given."""
    named = _given_value.fullmatch(value)
    return value if named is None else given.get(named[1])


def _held_from_child(name: str, value: str) -> bool:
    return _is_own(name) or _is_agent(name.upper()) or looks_like_credential(name, value)


def _is_own(name: str) -> bool:
    return name.upper().startswith(own_prefix)


def _is_agent(name: str) -> bool:
    return name in agent_names or name.startswith(agent_prefixes)


def _is_credential_name(name: str, value: str) -> bool:
    if name in plain_names:
        return False
    if name in credential_names or name.startswith(credential_prefixes):
        return True
    words = _words.split(name)
    if "TOKENS" in words and _count.fullmatch(value):
        words = [word for word in words if word != "TOKENS"]  # MAX_OUTPUT_TOKENS=8000
    return any(word in credential_words or word.endswith(credential_endings) for word in words)


def _is_credential_value(value: str) -> bool:
    return len(value) > value_chars_looked_at_max or credential_values.search(value) is not None
