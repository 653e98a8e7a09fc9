"""Build the environment of a child process (row E1).

It has three parts, each one over the one before: the variables this process was started with, less those that look like
credentials; the variables the user adds, unfiltered because the user named them; our own variables. A variable is
removed for its name (one of its words is a credential's word), for its value (a URL with user info, a known form of
key, a private key), or because a model's key is read from it. Variables that reach a credential agent (ssh, gpg, git's
askpass) are removed too.

When in doubt a variable is removed. `removed` lists the names and never the values, so a user can find a missing
variable and add it. `${env:NAME}` stands for the value this process was started with; so an agent is allowed once by
name, although its socket has another path each day. These names look like credentials and are not: a count of tokens,
the path of a display's authority file, an author.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from steadyhand_values import frozen, pattern

OWN_PREFIX = "STEADYHAND_"
ATTEMPT_MARK_NAME = "STEADYHAND_ATTEMPT_ID"
IDEMPOTENCY_KEY_NAME = "STEADYHAND_IDEMPOTENCY_KEY"
SESSION_NAME = "STEADYHAND_SESSION_ID"

VALUE_CHARS_LOOKED_AT_MAX = 256 * 1024  # longer values are removed unread; Linux allows 128 KiB

# A name is a credential's if one of its words is here; `_`, `-`, `.` and the like separate words.
CREDENTIAL_WORDS = frozenset(
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
# Endings find two words written as one: PGPASSWORD, AUTHTOKEN. Short words are left out: MONKEY, COMPASS.
CREDENTIAL_ENDINGS = (
    *("PASSWORD", "PASSWORDS", "PASSWD", "PASSPHRASE", "SECRET", "SECRETS", "TOKEN", "CREDENTIAL"),
    *("CREDENTIALS", "COOKIE", "COOKIES", "APIKEY", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY", "AUTHKEY"),
    *("SIGNINGKEY", "MASTERKEY", "ACCOUNTKEY", "SESSID"),
)
CREDENTIAL_NAMES = frozenset(
    ["SSHPASS", "BW_SESSION", "MYSQL_PWD", "DOCKER_AUTH_CONFIG", "GOOGLE_APPLICATION_CREDENTIALS"]
)
CREDENTIAL_PREFIXES = ("AWS_", "OP_SESSION_")
AGENT_NAMES = frozenset(
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
AGENT_PREFIXES = ("VSCODE_GIT_ASKPASS_",)
PLAIN_NAMES = frozenset(
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

_WORDS = pattern(r"[^A-Z0-9]+")
_COUNT = pattern(r"[0-9]{1,9}")
_GIVEN_VALUE = pattern(r"\$\{env:([^}]+)\}")

# Quantifiers are bounded, so that a search cannot restart at every character and become quadratic.
CREDENTIAL_VALUES = pattern(
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


@frozen
class ChildEnvironment:
    """The variables of a child, and the sorted names of the variables that were removed. It holds no removed value."""

    values: Mapping[str, str]
    removed: tuple[str, ...]


def child_environment(
    given: Mapping[str, str],
    add: Mapping[str, str],
    own: Mapping[str, str],
    withheld: Collection[str] = (),
) -> ChildEnvironment:
    """Build the environment of one child. `given` is this process's own; `own` is added last and unchanged.

    `withheld`: names of variables that hold a model's key, whatever they look like; `${env:NAME}` cannot read them.
    """
    kept = {name: text for name, text in given.items() if name not in withheld and not _is_withheld(name, text)}
    reachable = {name: text for name, text in given.items() if name not in withheld and not _is_own(name)}
    # A user's variable must not pass for one of ours: with a false mark we would end a process that is not ours.
    meant = {name: _resolve_value(value, reachable) for name, value in add.items() if not _is_own(name)}
    added = {name: value for name, value in meant.items() if value is not None}
    values = {**kept, **added, **own}
    return ChildEnvironment(values, tuple(sorted({*given, *add} - set(values))))


def looks_like_credential(name: str, value: str) -> bool:
    """Return whether a variable's name or value looks like a credential. Variables of agents are not covered here."""
    return bool(value) and (_is_credential_name(name.upper(), value) or is_credential_value(value))


def _resolve_value(value: str, given: Mapping[str, str]) -> str | None:
    """Return the value of a user's variable; None: it refers to a variable that this process does not have."""
    named = _GIVEN_VALUE.fullmatch(value)
    return value if named is None else given.get(named[1])


def _is_withheld(name: str, value: str) -> bool:
    return _is_own(name) or _is_agent(name.upper()) or looks_like_credential(name, value)


def _is_own(name: str) -> bool:
    return name.upper().startswith(OWN_PREFIX)


def _is_agent(name: str) -> bool:
    return name in AGENT_NAMES or name.startswith(AGENT_PREFIXES)


def _is_credential_name(name: str, value: str) -> bool:
    if name in PLAIN_NAMES:
        return False
    if name in CREDENTIAL_NAMES or name.startswith(CREDENTIAL_PREFIXES):
        return True
    words = _WORDS.split(name)
    if "TOKENS" in words and _COUNT.fullmatch(value):
        words = [word for word in words if word != "TOKENS"]  # MAX_OUTPUT_TOKENS=8000
    return any(word in CREDENTIAL_WORDS or word.endswith(CREDENTIAL_ENDINGS) for word in words)


def is_credential_value(value: str) -> bool:
    """Return whether a value has a known form of a credential, or is too long to be looked at."""
    return len(value) > VALUE_CHARS_LOOKED_AT_MAX or CREDENTIAL_VALUES.search(value) is not None
