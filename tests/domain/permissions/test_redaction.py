"""Texts and command lines without credentials: the whole word goes (row E2, case 148)."""

from __future__ import annotations

import string
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steadyhand.domain.permissions import redaction
from steadyhand.domain.permissions.redaction import PIECE_CHARS, REDACTED_CHARS_MAX, redact

TEXTS = [
    ("Incorrect API key provided: sk-proj-abc123xyz. Try", "Incorrect API key provided: [key] Try"),
    ("key sk-proj-abc…xyz", "key [key]"),
    ("password=hunter2pw", "[key]"),
    ("password: hunter2", "password: [key]"),
    ("sk-ant-api03-AAAA_BBBB-CCCC is invalid", "[key] is invalid"),
    ("see https://me:hunter2@host/x?y=1 now", "see [key] now"),
    ('{"api_key": "hunter2 three", "model": "m"}', '{"api_key": [key] "model": "m"}'),
    ("Authorization: Bearer hunter2 end", "Authorization: [key] end"),
    ("x-api-key: hunter2 end", "x-api-key: [key] end"),
    ("Cookie: a=hunter2; b=hunter3 end", "Cookie: [key] end"),
    ("a -----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- z", "a [key] z"),
    ("a -----BEGIN PRIVATE KEY-----\nabc\n", "a [key]"),
    ("max_tokens: must be at most 8192", "max_tokens: must be at most 8192"),
    ("maximum context length is 140000 tokens", "maximum context length is 140000 tokens"),
    ("The model `gpt-5` does not exist", "The model `gpt-5` does not exist"),
    ("see https://host:8080/x and http://[::1]:80/", "see https://host:8080/x and http://[::1]:80/"),
]
COMMANDS = [
    ("mysql -phunter2 db", "mysql -p*** db"),
    ("mysql -u root -phunter2", "mysql -u root -p***"),
    ("curl -u bob:hunter2 host", "curl -u *** host"),
    ("curl -ubob:hunter2 host", "curl -u*** host"),
    ("curl --user bob:hunter2 host", "curl --user *** host"),
    ("curl -H X-Api-Key: hunter2 host", "curl -H X-Api-Key: *** host"),
    ("curl -H X-Api-Key:hunter2 host", "curl -H X-Api-Key:*** host"),
    ("curl -H Authorization: Bearer hunter2 host", "curl -H Authorization: *** host"),
    ("curl -b session=1 host", "curl -b *** host"),
    ("sshpass -p hunter2 ssh host", "sshpass -p *** ssh host"),
    ("redis-cli -a hunter2 ping", "redis-cli -a *** ping"),
    ("docker login -u me -p hunter2 host", "docker login -u me -p *** host"),
    ("zip -P hunter2 a.zip a", "zip -P *** a.zip a"),
    ("wget --password=hunter2 host", "wget *** host"),
    ("tool --api-key hunter2 run", "tool --api-key *** run"),
    ("env AWS_SECRET_ACCESS_KEY=hunter2 make", "env AWS_SECRET_ACCESS_KEY=*** make"),
    ("git clone https://me:hunter2@host/x", "git clone ***"),
    ("openssl enc -pass pass:hunter2 -in a", "openssl enc -p*** pass:*** -in a"),
    ("python -m http.server 8000", "python -m http.server 8000"),
    ("tar -xf a.tar", "tar -xf a.tar"),
    ("make MAX_OUTPUT_TOKENS=8000", "make MAX_OUTPUT_TOKENS=8000"),
]


@pytest.mark.parametrize(("text", "shown"), TEXTS)
def test_text_keeps_everything_but_the_credential(text: str, shown: str) -> None:
    """Case 148: keys, passwords in URLs, JSON members, headers and blocks of keys, each as a whole word."""
    assert redact(text, mark="[key]").rstrip() == shown


@pytest.mark.parametrize(("line", "shown"), COMMANDS)
def test_command_line_keeps_everything_but_the_credential(line: str, shown: str) -> None:
    """Case 148: also a password joined to `-p`, `-u user:password` and headers."""
    assert redact(line, is_command=True) == shown


SECRETS = st.text(string.ascii_letters + string.digits + "-_.~+/=!$%^*|,;:@#&?", min_size=PIECE_CHARS, max_size=60)
KEYS = st.text(string.ascii_letters + string.digits, min_size=24, max_size=60)
IN_TEXTS = [
    *("password={}", "password: {}", '"password": "{}"', "'token': '{}'", '{{"secret":"{}"}}', "api_key={} end"),
    *("PGPASSWORD={} psql", "--password {} end", "--token={} end", "Authorization: Bearer {} end", "X-Api-Key: {}"),
    *("-H X-Api-Key:{} end", "-u bob:{} end", "-ubob:{} end", "--user bob:{} end", '\\"api_key\\":\\"{}\\"'),
    *("client_secret := {} end", "Cookie: session={} end", "access_token => {}"),
]
FORMS = [
    *("sk-{}", "sk-proj-{}", "sk-ant-api03-{}", "sk-or-v1-{}", "gsk_{}", "xai-{}", "hf_{}", "ghp_{}", "github_pat_{}"),
    *(
        "glpat-{}",
        "npm_{}",
        "xoxb-{}",
        "AIza{}{}",
        "ya29.{}",
        "SG.{}",
        "pplx-{}",
        "nvapi-{}",
        "r8_{}",
        "hvs.{}",
        "dop_v1_{}",
    ),
    *("sk_live_{}", "pypi-{}", "Bearer {}", "basic {}"),
]


def _pieces_left(secret: str, shown: str) -> list[str]:
    pieces = (secret[at : at + PIECE_CHARS] for at in range(len(secret) - PIECE_CHARS + 1))
    return [piece for piece in pieces if piece in shown]


@pytest.mark.parametrize("template", IN_TEXTS)
@given(secret=SECRETS)
@settings(max_examples=40, deadline=None)
def test_no_piece_of_a_named_secret_survives(template: str, secret: str) -> None:
    """Case 148: whatever characters the secret has, no 8 of them in a row are left."""
    for is_command in (False, True):
        assert _pieces_left(secret, redact(f"a {template.format(secret)} z", is_command=is_command)) == []


@pytest.mark.parametrize("template", FORMS)
@given(key=KEYS, around=st.sampled_from(["{}", "key:{}.", "({})", '"{}"', "x={},", "{}\n", "<{}>"]))
@settings(max_examples=30, deadline=None)
def test_no_piece_of_a_key_of_a_known_form_survives(template: str, key: str, around: str) -> None:
    """Case 148: a key of a provider's format, wherever in a sentence."""
    assert _pieces_left(key, redact(f"a {around.format(template.format(key, key))} z")) == []


@given(secret=SECRETS, before=st.text("ab \n\"'(", max_size=5), behind=st.text("yz \n\"').", max_size=5))
@settings(max_examples=200, deadline=None)
def test_no_piece_of_the_known_key_survives(secret: str, before: str, behind: str) -> None:
    """Case 148: the key in use, or a part of it that a provider repeats, in any words."""
    half = secret[: max(PIECE_CHARS, len(secret) // 2)]
    for said in (secret, half):
        assert _pieces_left(secret, redact(f"it is {before}{said}{behind} there", (secret,))) == []


@given(st.text(max_size=200))
def test_redacted_text_stays_as_it_is(text: str) -> None:
    """Case 148: no text raises, and a second pass changes nothing."""
    once = redact(text)
    assert redact(once) == once


def test_redaction_ends_in_time() -> None:
    """I13: a text at its bound takes no long time."""
    began = time.process_time()
    for piece in ("a=", "token=x ", "://a:b@", "sk-abcd", "-p", "'", '"token":"', "Cookie: a; ", "-u a:"):
        redact((piece * REDACTED_CHARS_MAX)[:REDACTED_CHARS_MAX], ("k" * 40,), is_command=True)
    assert time.process_time() - began < 30


def test_one_module_alone_takes_credentials_out() -> None:
    """Case 148: no output has a way of its own, which would differ."""
    server = Path(redaction.__file__).parents[2]
    users = {path.name for path in server.rglob("*.py") if "CREDENTIAL_VALUES" in path.read_text(encoding="utf-8")}
    assert users == {"child_environment.py", "redaction.py"}
