"""Recognise file names that probably hold a secret, by kind. The name is all it looks at (case 137).

Such a file is read in no mode without a question, a search from above leaves its content out, and no prompt gets it as
an attachment. docs/protocol.md, "Secret names", has the same table. A secret in a file with an ordinary name is not
seen, and a command may read any of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyhand.domain.permissions.name_table import NameKinds, NameTable

_ENDINGS = ("json", "yaml", "yml", "toml", "ini", "cfg", "conf", "txt", "env")

SECRET_KINDS: NameKinds = {
    "environment": ".env*",
    "keys": (
        "id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk *.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx"
        " *.ppk"
    ),
    "passwords and tokens": (
        ".netrc _netrc .npmrc .pypirc .pgpass .my.cnf .htpasswd .git-credentials .vault-token .dockercfg .s3cfg .boto"
        " kubeconfig *.tfstate *.tfvars"
    ),
    "named so": " ".join(
        name for word in ("credentials", "secret", "secrets") for name in (word, *(f"{word}.{end}" for end in _ENDINGS))
    ),
    "folders of programs": (
        ".ssh/ .gnupg/ .aws/ .azure/ .kube/ .docker/ .password-store/ .config/gh/ .config/gcloud/ .mozilla/"
        " .config/google-chrome/ .config/chromium/ .local/share/keyrings/"
    ),
}
SECRET = NameTable(SECRET_KINDS, anywhere=False)
EXAMPLE_NAMES = frozenset({".env.example", ".env.sample", ".env.template", ".env.dist", ".env.defaults"})
"""Files of the first kind that are there to be read."""


def looks_secret(names: Sequence[str]) -> bool:
    """Return whether a path of these names probably holds a secret; case does not count."""
    kind = SECRET.kind_of(names)
    return kind is not None and not (kind == "environment" and names[-1].lower() in EXAMPLE_NAMES)
