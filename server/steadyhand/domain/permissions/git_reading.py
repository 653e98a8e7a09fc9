"""What keeps git to reading: the configuration that overrides the repository's, the user's and the system's (row O2).

git takes programs from its configuration. Keys with fixed names are overridden whatever the configuration says. Filters
have names of their own, so git is asked first for what is configured (`CONFIGURATION_WORDS`), and each filter found is
switched off. If git cannot answer, the configuration of user and system is left out (decision 61).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from steadyhand_values import frozen, pattern

FILTERS_MAX = 200
"""Filters that are switched off one by one; with more of them the configuration of user and system is left out."""
CONFIGURATION_WORDS = ("config", "--list", "-z", "--show-scope")
"""The words behind `git` whose output `parse_configuration` reads; git 2.26 or newer."""

_CONFIGURATION: Mapping[str, str] = {
    "core.fsmonitor": "",  # it may name a program
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "diff.ignoreSubmodules": "dirty",  # else git starts in each submodule, with that one's configuration
    "diff.submodule": "short",
    "format.pretty": "medium",  # a format may ask for signatures, and a program checks those
    "gpg.program": "false",
    "gpg.openpgp.program": "false",
    "gpg.ssh.program": "false",
    "gpg.x509.program": "false",
    "log.showSignature": "false",
    "status.submoduleSummary": "false",
}
_FILTER_OFF: Mapping[str, str] = {"clean": "", "smudge": "", "process": "", "required": "false"}
_FILTER = pattern(r"filter\.(.+)\.(?:clean|smudge|process|required)", re.DOTALL)
_FILES = ("core.excludesfile", "core.attributesfile")
_OWN_SCOPES = ("system", "global")


def _as_variables(configuration: Mapping[str, str]) -> dict[str, str]:
    return {
        "GIT_CONFIG_COUNT": str(len(configuration)),
        **{f"GIT_CONFIG_KEY_{number}": key for number, key in enumerate(configuration)},
        **{f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(configuration.values())},
    }


_COMMON: Mapping[str, str] = {
    "GIT_OPTIONAL_LOCKS": "0",  # status and diff must not refresh the index on disk
    "GIT_PAGER": "cat",
    "PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",  # newer git: a partial clone fetches nothing
    "GIT_ALLOW_PROTOCOL": "none",  # older git: a fetch is not allowed to connect
}
ASKING_ENVIRONMENT: Mapping[str, str] = {**_COMMON, **_as_variables(_CONFIGURATION)}
"""The environment in which git is asked for its configuration; to list it runs nothing."""
READING_ENVIRONMENT: Mapping[str, str] = {
    **ASKING_ENVIRONMENT,
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
}
"""Added to the environment of a reading command; it overrides the repository's own configuration and leaves out that of
user and system."""


@frozen
class GitConfiguration:
    """What of a configuration matters to a reading. `files`: what user and system name as lists of patterns."""

    filters: tuple[str, ...] = ()
    files: tuple[str, ...] = ()  # as written; `~/` may begin them


def parse_configuration(listed: bytes) -> GitConfiguration | None:
    """Read what git lists for `CONFIGURATION_WORDS`; None: it is not such a list, or has too many filters."""
    parts = listed.split(b"\0")
    if parts.pop() != b"" or not parts or len(parts) % 2:
        return None
    filters: dict[str, None] = {}
    files: dict[str, str] = {}
    for scope, item in zip(parts[::2], parts[1::2], strict=True):
        key, _, value = item.decode("utf-8", "surrogateescape").partition("\n")
        if (found := _FILTER.fullmatch(key)) is not None:
            filters[found[1]] = None
        elif key in _FILES and scope.decode() in _OWN_SCOPES:
            files[key] = value
    return None if len(filters) > FILTERS_MAX else GitConfiguration(tuple(filters), tuple(files.values()))


def reading_environment(configured: GitConfiguration) -> dict[str, str]:
    """Return the variables for a reading in which the configuration of user and system counts, without its programs."""
    off = {f"filter.{name}.{key}": value for name in configured.filters for key, value in _FILTER_OFF.items()}
    return {**_COMMON, **_as_variables({**_CONFIGURATION, **off})}


def git_trouble(config: str, gitmodules: bool) -> str | None:
    """Return one sentence why git may do more than read in a repository; None if it only reads.

    `config` is the text of the repository's own `.git/config`, which must be in the workspace. `gitmodules`:
    `.gitmodules` exists beside `.git`. Filters and diff drivers are no trouble: they are switched off. Included files
    and submodules are, because they lead elsewhere. When in doubt this reports trouble.
    """
    if gitmodules:
        return "The repository has submodules, whose own configuration may run programs."
    for line in re.split(r"\r\n|\n|\r", config.lower()):
        for section in re.findall(r"\[\s*([-a-z0-9]+)", line):
            if section in _PROGRAM_SECTIONS:
                return f"The repository's configuration has a section [{section}]: it may run programs."
        for key in _PROGRAM_KEYS:
            if re.search(rf"(?:^|[\s\]\ufeff]){key}\s*(?:=|$|[;#])", line):
                return f"The repository's configuration sets {key}: it may run programs or lead elsewhere."
    return None


_PROGRAM_SECTIONS = frozenset({"include", "includeif", "submodule"})
_PROGRAM_KEYS = ("attributesfile", "partialclone", "promisor", "worktree", "worktreeconfig")
