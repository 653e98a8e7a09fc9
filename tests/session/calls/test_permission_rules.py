"""Rules and trust in whole turns: what the settings allow, ask about and deny, and what no rule allows (row G2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.domain.permissions.rules import PermissionRule, PermissionRules, parse_rule
from steadyhand.domain.records.record import Mode
from steadyhand.domain.settings import Settings
from steadyhand.tools.registry import SUBJECTS
from tests.support.editor import ScriptedEditor
from tests.support.fakes import FakeProcesses, Script
from tests.support.in_process_server import scripted_server
from tests.support.model import asks, call, read, run, says, write
from tests.support.session_state import calls_of, outcomes, replies, states

pytestmark = pytest.mark.anyio


def rules_of(*texts: str) -> tuple[PermissionRule, ...]:
    found = [parse_rule(text, SUBJECTS) for text in texts]
    assert all(isinstance(rule, PermissionRule) for rule in found)
    return tuple(rule for rule in found if isinstance(rule, PermissionRule))


def asked_titles(editor: ScriptedEditor) -> list[str]:
    return [question.title for question in editor.questions]


def shell() -> FakeProcesses:
    return FakeProcesses(otherwise=Script(), environment={"PATH": "/usr/bin:/bin"})


async def test_allow_rule_passes_its_path_or_command_and_asks_for_others(tmp_path: Path) -> None:
    """G2: in the mode `ask` an allowed path and command pass. Another path, a chained command and `.env` are asked
    about.
    """
    allow = rules_of("write_file(src/**)", "write_file(.env)", "run_command(npm test*)")
    answer = asks(
        write("src/a.txt", "a"), write("b.txt", "b"), write(".env", "x"), write("src/.vscode/x", "x"),
        run("npm test"), run("npm test && rm x"),
    )  # fmt: skip
    editor = ScriptedEditor()
    settings = Settings(rules=PermissionRules(allow=allow))
    async with scripted_server(
        tmp_path, answer, says("ok"), settings=settings, processes=shell(), editor=editor
    ) as harness:
        session = await harness.session("ask")
        await harness.say(session)
        assert states(session) == ["returned"] * 6
        assert asked_titles(editor) == [
            *("write_file: b.txt", "write_file: .env", "write_file: src/.vscode/x", "run_command: npm"),
        ]
        assert "protected path" in editor.questions[1].text


@pytest.mark.parametrize("mode", ["ask", "edits", "auto"])
async def test_deny_rule_refuses_in_every_mode_and_names_itself(tmp_path: Path, mode: Mode) -> None:
    """G2: the call is refused as `policy` in every mode, nobody is asked, and the text names the rule. Reads can be
    denied too.
    """
    deny = rules_of("write_file(lock/)", "run_command(rm *)", "read_file(secret.txt)")
    answer = asks(write("lock/a", "a"), run("cd x; rm a"), read("secret.txt"), write("free", "b"))
    settings = Settings(rules=PermissionRules(allow=rules_of("*"), deny=deny))
    async with scripted_server(tmp_path, answer, says("ok"), settings=settings, processes=shell()) as harness:
        (harness.root / "secret.txt").write_text("s")
        session = await harness.session(mode)
        await harness.say(session)
        assert states(session) == ["refused", "refused", "refused", "returned"]
        assert outcomes(session)[:2] == [("refused", "policy")] * 2
        assert [each.reply.reason for each in calls_of(session)[:3] if each.reply] == ["policy"] * 3
        for reply, rule in zip(replies(session), deny, strict=False):
            assert f"“{rule.text}” in permissions.deny" in reply
        assert harness.editor.questions == []
        assert not (harness.root / "lock").exists()


async def test_ask_rule_asks_each_time_in_every_mode(tmp_path: Path) -> None:
    """G2: it asks in `auto` too, for a read as for an effect, each time. A grant for the session is not offered."""
    settings = Settings(rules=PermissionRules(allow=rules_of("*"), ask=rules_of("delete_file", "read_file(*.key)")))
    answer = asks(call("delete_file", path="a"), call("delete_file", path="b"), read("c.key"), read("d"))
    editor = ScriptedEditor("once", "reject", "reject")
    async with scripted_server(tmp_path, answer, says("ok"), settings=settings, editor=editor) as harness:
        for name in ("a", "b", "c.key", "d"):
            (harness.root / name).write_text(name)
        session = await harness.session("auto")
        await harness.say(session)
        assert asked_titles(editor) == ["delete_file: a", "delete_file: b", "read_file: c.key"]
        assert {tuple(option.id for option in question.options) for question in editor.questions} == {
            ("once", "reject")
        }
        assert "“delete_file” in permissions.ask" in editor.questions[0].text
        assert states(session) == ["returned", "refused", "refused", "returned"]


async def test_deny_rule_applies_through_links_and_parent_references(tmp_path: Path) -> None:
    """G2, E3: the resolved path is compared, so neither a link nor `..` avoids a rule."""
    settings = Settings(rules=PermissionRules(deny=rules_of("*(lock/)")))
    answer = asks(write("way/a", "a"), write("x/../lock/a", "a"), call("move_file", **{"from": "b", "to": "lock/b"}))
    async with scripted_server(tmp_path, answer, says("ok"), settings=settings) as harness:
        (harness.root / "lock").mkdir()
        (harness.root / "x").mkdir()
        (harness.root / "b").write_text("b")
        (harness.root / "way").symlink_to("lock")
        session = await harness.session("auto")
        await harness.say(session)
        assert states(session) == ["refused"] * 3
        assert list((harness.root / "lock").iterdir()) == []


@pytest.mark.parametrize("mode", ["plan", "ask", "edits", "auto"])
async def test_untrusted_workspace_allows_only_reads_in_every_mode(tmp_path: Path, mode: Mode) -> None:
    """G2: the agent only reads, whatever the session's mode and the rules say. Nobody is asked."""
    answer = asks(read("a.txt"), write("b", "b"), run("make"), run("ls"), call("settle_effect", attemptId="1" * 32,
        inspectionId="2" * 32, action="waive", evidence="none"))  # fmt: skip
    settings = Settings(rules=PermissionRules(allow=rules_of("*")), trusted=False)
    async with scripted_server(tmp_path, answer, says("ok"), settings=settings, processes=shell()) as harness:
        (harness.root / "a.txt").write_text("A")
        session = await harness.session(mode)
        await harness.say(session)
        assert states(session) == ["returned", "refused", "refused", "returned", "refused"]
        assert "not trusted" in replies(session)[1]
        assert harness.editor.questions == []
        assert [path.name for path in harness.root.iterdir()] == ["a.txt"]


async def test_trust_applies_from_the_next_call_on(tmp_path: Path) -> None:
    """G2: a refused call can be asked for again once the workspace is trusted, in the mode of the session."""
    turns = (asks(write("a", "a")), says("no"), asks(write("a", "a")), says("yes"))
    async with scripted_server(tmp_path, *turns, settings=Settings(trusted=False)) as harness:
        session = await harness.session("edits")
        await harness.say(session)
        assert (session.view().mode, states(session)) == ("edits", ["refused"])
        harness.registry.context.settings = Settings(trusted=True)
        await harness.say(session)
        assert states(session) == ["refused", "returned"]
