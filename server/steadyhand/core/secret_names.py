"""File names that look as if they held a secret: keys, credentials, password stores. A guess by name alone.

It is used where nobody is asked before a content leaves for a model. It is no fence: a secret in a file with an
ordinary name is not seen, and a reading that asks for permission does not look here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_FOLDERS = frozenset((".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store"))
_NAMES = re.compile(
    r"\.env.*"
    r"|id_(rsa|dsa|ecdsa|ed25519)(_sk)?"
    r"|.*\.(pem|key|p12|pfx|jks|keystore|kdbx|ppk)"
    r"|[._]netrc|\.npmrc|\.pypirc|\.pgpass|\.htpasswd|\.git-credentials|\.vault-token"
    r"|(credentials|secrets?)(\.(json|ya?ml|toml|ini|cfg|conf|txt|env))?"
)


def looks_secret(names: Iterable[str]) -> bool:
    """Whether a path of these names looks like a secret's; case does not count."""
    folded = [name.lower() for name in names]
    return any(name in _FOLDERS for name in folded) or (bool(folded) and _NAMES.fullmatch(folded[-1]) is not None)
