"""What a child's environment keeps and what is taken out of it (row E1).

The values here only look like credentials; none has ever been one. They are put together from pieces, so that
no scanner takes this file for a leak.
"""

from __future__ import annotations

import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.core.environment import (
    agent_names,
    attempt_mark_name,
    child_environment,
    credential_words,
    looks_like_credential,
)

looked_at_s_max = 10.0

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
def test_a_credential_is_removed_for_its_name(name: str) -> None:
    """A name with a credential's word in it goes, whatever its value is, and is named (row E1)."""
    made = child_environment({name: "plain", "PATH": "/bin"}, {}, {})
    assert made.values == {"PATH": "/bin"}
    assert made.removed == (name,)


@pytest.mark.parametrize("name", KEPT)
def test_what_only_sounds_like_one_is_kept(name: str) -> None:
    """Keyboards, authors, tokenizers and displays are no credentials (row E1)."""
    made = child_environment({name: "plain"}, {}, {})
    assert made.values == {name: "plain"}
    assert made.removed == ()


@pytest.mark.parametrize("value", REMOVED_VALUES, ids=range(len(REMOVED_VALUES)))
def test_a_credential_is_removed_for_its_value(value: str) -> None:
    """A value that is a known form of credential goes under any name; the value is not told (row E1)."""
    made = child_environment({"PLAIN": value}, {}, {})
    assert made.values == {}
    assert made.removed == ("PLAIN",)


@pytest.mark.parametrize("value", KEPT_VALUES)
def test_a_plain_value_is_kept(value: str) -> None:
    """Paths, addresses, prompts and locales are no credentials (row E1)."""
    assert child_environment({"PLAIN": value}, {}, {}).values == {"PLAIN": value}


@pytest.mark.parametrize(("value", "kept"), [("32000", True), ("abc", False), ("1234567890123", False)])
def test_a_number_of_tokens_is_no_token(value: str, kept: bool) -> None:
    """A limit on tokens stays; anything else under that name goes (row E1)."""
    assert ("MAX_OUTPUT_TOKENS" in child_environment({"MAX_OUTPUT_TOKENS": value}, {}, {}).values) is kept


def test_an_empty_credential_is_kept() -> None:
    """An empty value hides nothing, and some programs ask whether the name is there (row E1)."""
    assert child_environment({"API_KEY": ""}, {}, {}).values == {"API_KEY": ""}


def test_an_agent_is_given_when_it_is_named() -> None:
    """An agent's socket goes unless the user names it; `${env:NAME}` is its value of today (row E1)."""
    given = dict.fromkeys(agent_names, "/run/agent") | {"API_KEY": "x"}
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
def test_what_a_reference_stands_for(value: str, given: str | None) -> None:
    """A whole value alone is one; it reaches no model's key and nothing of ours, and what is absent is left out and
    named (row E1)."""
    of_parent = {"LANG": "C", "API_KEY": "x", "FLAVOUR": "a model's key", "STEADYHAND_SESSION_ID": "outer"}
    made = child_environment(of_parent, {"MY": value}, {}, withheld={"FLAVOUR"})
    assert made.values.get("MY") == given
    assert ("MY" in made.removed) is (given is None)


def test_what_holds_a_key_is_withheld() -> None:
    """A variable that is known to hold a key goes, whatever it looks like, and is named (row E1)."""
    made = child_environment({"FLAVOUR": "plain", "LANG": "C"}, {}, {}, withheld={"FLAVOUR", "ABSENT"})
    assert made.values == {"LANG": "C"}
    assert made.removed == ("FLAVOUR",)


def test_what_the_user_adds_is_given() -> None:
    """An added variable is given as it is, over a removed or kept one, and is then not named as removed (E1)."""
    made = child_environment({"API_KEY": "old", "LANG": "C"}, {"API_KEY": "new", "LANG": "de"}, {})
    assert made.values == {"API_KEY": "new", "LANG": "de"}
    assert made.removed == ()


def test_our_own_are_only_ever_ours() -> None:
    """Neither the parent's nor the user's environment can pass a mark for ours; ours is added last (row E1)."""
    given = {attempt_mark_name: "outer", "STEADYHAND_SETTING": "x", "steadyhand_session_id": "y"}
    made = child_environment(given, {attempt_mark_name: "false", "A": "b"}, {attempt_mark_name: "ours"})
    assert made.values == {"A": "b", attempt_mark_name: "ours"}
    assert made.removed == ("STEADYHAND_SETTING", "steadyhand_session_id")
    assert attempt_mark_name in child_environment(given, {}, {}).removed


names = st.text(string.ascii_letters + string.digits + "_", min_size=1, max_size=20)
environments = st.dictionaries(names, st.text(max_size=40), max_size=8)


@given(given=environments, add=environments, own=environments)
def test_nothing_is_lost_changed_or_made_up(given: dict[str, str], add: dict[str, str], own: dict[str, str]) -> None:
    """Each name is either given, with the last value said for it, or named as removed; never both (row E1)."""
    made = child_environment(given, add, own)
    assert set(made.values) | set(made.removed) == set(given) | set(add) | set(own)
    assert set(made.values).isdisjoint(made.removed)
    assert list(made.removed) == sorted(made.removed)
    assert all(made.values[name] == value for name, value in own.items())
    assert all(value == {**given, **add, **own}[name] for name, value in made.values.items())


@given(given=environments)
def test_what_is_kept_would_be_kept_again(given: dict[str, str]) -> None:
    """A child of a child gets no less: what passed once passes again (row E1)."""
    once = child_environment(given, {}, {})
    again = child_environment(once.values, {}, {})
    assert again.values == once.values
    assert again.removed == ()


@given(
    word=st.sampled_from(sorted(credential_words)),
    before=st.sampled_from(["", "MY_", "a.b-", "x__"]),
    after=st.sampled_from(["", "_ID", "-2", ".file"]),
    value=st.text(string.ascii_letters, min_size=1),
)
def test_a_credentials_word_is_found_anywhere_in_a_name(word: str, before: str, after: str, value: str) -> None:
    """Wherever the word stands and in whatever case; PWD alone is a folder (row E1)."""
    name = before + word + after
    plain = name == "PWD"
    assert looks_like_credential(name, value) is not plain
    assert looks_like_credential(name.lower(), value) is not plain


@pytest.mark.parametrize("piece", ["://a:", "://", "eyJa", "a:", "; ", "eyJaaaaaaaa. "])
def test_a_long_value_is_looked_at_in_time(piece: str) -> None:
    """The longest value a system can hold, made of beginnings of credentials, is read in bounded time [I13]."""
    before_s = time.process_time()
    assert not looks_like_credential("PLAIN", piece * (100_000 // len(piece)))
    assert time.process_time() - before_s < looked_at_s_max
