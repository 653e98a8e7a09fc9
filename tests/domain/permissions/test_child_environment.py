"""The environment of a child process: which variables it keeps and which are removed (row E1).

The values here only look like credentials. None has ever been one. They are assembled from pieces, so that no
scanner takes this file for a leak.
"""

from __future__ import annotations

import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.permissions.child_environment import (
    AGENT_NAMES,
    ATTEMPT_MARK_NAME,
    CREDENTIAL_WORDS,
    child_environment,
    looks_like_credential,
)

SCAN_S_MAX = 10.0

filler = "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9v"

REMOVED = [
    *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "DEEPSEEK_API_KEY", "GITHUB_TOKEN", "NPM_TOKEN", "npm_config__authToken"),
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "PGPASSWORD", "MYSQL_PWD"),
    *("DB_PASS", "SSHPASS", "SIGNING_KEY", "TS_AUTHKEY", "SESSION_COOKIE", "HTTP_AUTHORIZATION", "REDISCLI_AUTH"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "DOCKER_AUTH_CONFIG", "PRIVATE_KEY_PATH", "CLIENT_SECRET", "my-secret"),
    *("BW_SESSION", "OP_SESSION_work", "VSCODE_GIT_IPC_AUTH_TOKEN", "CI_JOB_JWT", "TOKENS", "DBPASSWD", "creds"),
    *("SSH_AUTH_SOCK", "GPG_AGENT_INFO", "GIT_ASKPASS", "VSCODE_GIT_ASKPASS_MAIN", "Api.Key", "x_passphrase"),
]

KEPT = [
    *("PATH", "HOME", "PWD", "OLDPWD", "SHELL", "LANG", "TERM", "USER", "SSH_TTY", "XAUTHORITY", "DISPLAY", "TMPDIR"),
    *("TOKENIZERS_PARALLELISM", "KEYBOARD", "KEYBOARD_LAYOUT", "MONKEY", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"),
    *("XDG_SESSION_ID", "DESKTOP_SESSION", "SESSION_MANAGER", "KEYTIMEOUT", "COMPASS", "BYPASS", "GOPRIVATE"),
    *("AWS_REGION", "AWS_DEFAULT_REGION", "AUTHOR", "PASSAGE", "SECRETARY", "COOKIECUTTER_CONFIG", "PATTERN"),
    *("VIRTUAL_ENV", "NODE_OPTIONS", "LS_COLORS", "PS1", "KUBECONFIG", "INIT_CWD", "PYTHONPATH", "HISTFILE"),
]

REMOVED_VALUES = [
    "postgres://user:" + "word@host/name",
    "https://:" + "word@host",
    "http://user:" + "p@ss/word@proxy:8080",
    "a, https://" + filler + "@host/x.git",
    "sk-" + filler,
    "sk-ant-" + filler,
    "key is sk_live_" + filler,
    "ghp_" + filler,
    "github_pat_" + filler,
    "glpat-" + filler,
    "xoxb-" + "123456789012-" + filler,
    "AKIA" + "ABCDEFGHIJKLMNOP",
    "AIza" + filler,
    "npm_" + filler,
    "eyJ" + filler + ".eyJ" + filler + ".x",
    "-----BEGIN OPENSSH " + "PRIVATE KEY-----\n" + filler,
    "-----BEGIN " + "PRIVATE KEY-----",
    "Authorization: Bearer " + filler,
    "Server=x;Uid=y;Pwd=" + "word",
    "host=x password=" + "word",
    "-Djavax.net.ssl.keyStorePassword=" + "word",
    "https://host/path?token=" + "word",
    "x" * 300_000,
]

KEPT_VALUES = [
    "",
    "/usr/bin:/bin",
    "https://host:8080/path",
    "http://localhost:4873/@scope/name",
    "ssh://git@host/name.git",
    "git@host:name.git",
    "https://host/user:name@1.2.3",
    "sk_SK.UTF-8",
    "task-force-of-nineteen-people",
    "-----BEGIN CERTIFICATE-----",
    "unix:path=/run/user/1000/bus",
    "\\u@\\h:\\w\\$ ",
    "someone@example.org",
    "eyJust a word",
    "--max-tokens=5",
]


@pytest.mark.parametrize("name", REMOVED)
def test_child_environment_credential_name_is_removed_and_reported(name: str) -> None:
    """A name that contains a credential word is removed, whatever its value is, and reported (row E1)."""
    made = child_environment({name: "plain", "PATH": "/bin"}, {}, {})
    assert made.values == {"PATH": "/bin"}
    assert made.removed == (name,)


@pytest.mark.parametrize("name", KEPT)
def test_child_environment_name_that_resembles_a_credential_is_kept(name: str) -> None:
    """Keyboards, authors, tokenizers and displays are no credentials (row E1)."""
    made = child_environment({name: "plain"}, {}, {})
    assert made.values == {name: "plain"}
    assert made.removed == ()


@pytest.mark.parametrize("value", REMOVED_VALUES, ids=range(len(REMOVED_VALUES)))
def test_child_environment_credential_value_is_removed_under_any_name(value: str) -> None:
    """A value in a known form of credential is removed under any name. Only the name is reported (row E1)."""
    made = child_environment({"PLAIN": value}, {}, {})
    assert made.values == {}
    assert made.removed == ("PLAIN",)


@pytest.mark.parametrize("value", KEPT_VALUES)
def test_child_environment_ordinary_value_is_kept(value: str) -> None:
    """Paths, addresses, prompts and locales are no credentials (row E1)."""
    assert child_environment({"PLAIN": value}, {}, {}).values == {"PLAIN": value}


@pytest.mark.parametrize(("value", "kept"), [("32000", True), ("abc", False), ("1234567890123", False)])
def test_child_environment_token_limit_is_kept_only_as_a_number(value: str, kept: bool) -> None:
    """A limit on tokens stays. Any other value under that name is removed (row E1)."""
    assert ("MAX_OUTPUT_TOKENS" in child_environment({"MAX_OUTPUT_TOKENS": value}, {}, {}).values) is kept


def test_child_environment_empty_credential_is_kept() -> None:
    """An empty value hides nothing, and some programs check whether the name is present (row E1)."""
    assert child_environment({"API_KEY": ""}, {}, {}).values == {"API_KEY": ""}


def test_child_environment_agent_socket_is_passed_only_when_named() -> None:
    """An agent's socket is removed unless the user names it. `${env:NAME}` is its current value (row E1)."""
    given = dict.fromkeys(AGENT_NAMES, "/run/agent") | {"API_KEY": "x"}
    assert child_environment(given, {}, {}).removed == tuple(sorted(given))
    allowed = child_environment(given, {"SSH_AUTH_SOCK": "${env:SSH_AUTH_SOCK}"}, {})
    assert allowed.values == {"SSH_AUTH_SOCK": "/run/agent"}
    assert "SSH_AUTH_SOCK" not in allowed.removed


@pytest.mark.parametrize(
    ("value", "given"),
    [
        ("${env:LANG}", "C"),
        ("${env:API_KEY}", "x"),
        ("${env:ABSENT}", None),
        ("${env:FLAVOUR}", None),
        ("${env:STEADYHAND_SESSION_ID}", None),
        ("a ${env:LANG}", "a ${env:LANG}"),
        ("$LANG", "$LANG"),
    ],
)
def test_child_environment_env_reference_expands_only_a_whole_value(value: str, given: str | None) -> None:
    """Only a whole value is a reference. It reaches no model's key and none of the server's own variables. A reference
    to an absent variable is left out and reported (row E1).
    """
    of_parent = {"LANG": "C", "API_KEY": "x", "FLAVOUR": "a model's key", "STEADYHAND_SESSION_ID": "outer"}
    made = child_environment(of_parent, {"MY": value}, {}, withheld={"FLAVOUR"})
    assert made.values.get("MY") == given
    assert ("MY" in made.removed) is (given is None)


def test_child_environment_withheld_variable_is_removed_and_reported() -> None:
    """A variable that is known to hold a key is removed, whatever it looks like, and reported (row E1)."""
    made = child_environment({"FLAVOUR": "plain", "LANG": "C"}, {}, {}, withheld={"FLAVOUR", "ABSENT"})
    assert made.values == {"LANG": "C"}
    assert made.removed == ("FLAVOUR",)


def test_child_environment_added_variable_overrides_and_is_not_removed() -> None:
    """An added variable is passed unchanged. It replaces a removed or kept one and is then not reported as removed
    (E1).
    """
    made = child_environment({"API_KEY": "old", "LANG": "C"}, {"API_KEY": "new", "LANG": "de"}, {})
    assert made.values == {"API_KEY": "new", "LANG": "de"}
    assert made.removed == ()


def test_child_environment_reserved_names_come_only_from_the_server() -> None:
    """Neither the parent's nor the user's environment can set a mark of the server. The server adds its own last (row
    E1).
    """
    given = {ATTEMPT_MARK_NAME: "outer", "STEADYHAND_SETTING": "x", "steadyhand_session_id": "y"}
    made = child_environment(given, {ATTEMPT_MARK_NAME: "false", "A": "b"}, {ATTEMPT_MARK_NAME: "ours"})
    assert made.values == {"A": "b", ATTEMPT_MARK_NAME: "ours"}
    assert made.removed == ("STEADYHAND_SETTING", "steadyhand_session_id")
    assert ATTEMPT_MARK_NAME in child_environment(given, {}, {}).removed


names = st.text(string.ascii_letters + string.digits + "_", min_size=1, max_size=20)
environments = st.dictionaries(names, st.text(max_size=40), max_size=8)


@given(given=environments, add=environments, own=environments)
def test_child_environment_each_name_is_either_passed_or_reported(
    given: dict[str, str], add: dict[str, str], own: dict[str, str]
) -> None:
    """Each name is either passed, with the last value given for it, or reported as removed, and never both (row E1)."""
    made = child_environment(given, add, own)
    assert set(made.values) | set(made.removed) == set(given) | set(add) | set(own)
    assert set(made.values).isdisjoint(made.removed)
    assert list(made.removed) == sorted(made.removed)
    assert all(made.values[name] == value for name, value in own.items())
    assert all(value == {**given, **add, **own}[name] for name, value in made.values.items())


@given(given=environments)
def test_child_environment_is_idempotent(given: dict[str, str]) -> None:
    """A child of a child gets no less: what passed once passes again (row E1)."""
    once = child_environment(given, {}, {})
    again = child_environment(once.values, {}, {})
    assert again.values == once.values
    assert again.removed == ()


@given(
    word=st.sampled_from(sorted(CREDENTIAL_WORDS)),
    before=st.sampled_from(["", "MY_", "a.b-", "x__"]),
    after=st.sampled_from(["", "_ID", "-2", ".file"]),
    value=st.text(string.ascii_letters, min_size=1),
)
def test_looks_like_credential_word_is_found_anywhere_in_a_name(word: str, before: str, after: str, value: str) -> None:
    """The word counts at any position and in any case. Only `PWD` alone is a folder (row E1)."""
    name = before + word + after
    plain = name == "PWD"
    assert looks_like_credential(name, value) is not plain
    assert looks_like_credential(name.lower(), value) is not plain


@pytest.mark.parametrize("piece", ["://a:", "://", "eyJa", "a:", "; ", "eyJaaaaaaaa. "])
def test_looks_like_credential_longest_value_is_scanned_in_time(piece: str) -> None:
    """The longest value that a system can hold, made of beginnings of credentials, is scanned in bounded time [I13]."""
    before_s = time.process_time()
    assert not looks_like_credential("PLAIN", piece * (100_000 // len(piece)))
    assert time.process_time() - before_s < SCAN_S_MAX
