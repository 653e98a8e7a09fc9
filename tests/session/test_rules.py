"""Rules and trust in whole turns: what the settings allow, ask about and deny, and what no rule lets pass (row G2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.core.record import Mode
from steadyhand.core.rules import Rule, Rules, parse
from steadyhand.core.settings import Settings
from steadyhand.tools.catalogue import SUBJECTS
from tests.support.fakes import FakeProcesses, Script
from tests.support.scripted import (
    ScriptedEditor,
    asks,
    call,
    calls_of,
    outcomes,
    read,
    replies,
    run,
    says,
    staged,
    states,
    write,
)

pytestmark = pytest.mark.anyio


def listed(*texts: str) -> tuple[Rule, ...]:
    found = [parse(text, SUBJECTS) for text in texts]
    assert all(isinstance(rule, Rule) for rule in found)
    return tuple(rule for rule in found if isinstance(rule, Rule))


def asked(editor: ScriptedEditor) -> list[str]:
    return [question.title for question in editor.questions]


def shell() -> FakeProcesses:
    return FakeProcesses(otherwise=Script(), environment={"PATH": "/usr/bin:/bin"})


async def test_a_rule_lets_pass_what_it_names(tmp_path: Path) -> None:
    """G2: in the mode `ask` an allowed path and command pass; another path, a chained command and `.env` are asked."""
    allow = listed("write_file(src/**)", "write_file(.env)", "run_command(npm test*)")
    answer = asks(
        write("src/a.txt", "a"), write("b.txt", "b"), write(".env", "x"), write("src/.vscode/x", "x"),
        run("npm test"), run("npm test && rm x"),
    )  # fmt: skip
    editor = ScriptedEditor()
    settings = Settings(rules=Rules(allow=allow))
    async with staged(tmp_path, answer, says("ok"), settings=settings, processes=shell(), editor=editor) as stage:
        owner = await stage.session("ask")
        await stage.say(owner)
        assert states(owner) == ["returned"] * 6
        assert asked(editor) == [
            *("write_file: b.txt", "write_file: .env", "write_file: src/.vscode/x", "run_command: npm"),
        ]
        assert "protected path" in editor.questions[1].text


@pytest.mark.parametrize("mode", ["ask", "edits", "auto"])
async def test_a_rule_that_denies(tmp_path: Path, mode: Mode) -> None:
    """G2: refused as `policy` in every mode, nobody is asked, the sentence names the rule; reads can be denied too."""
    deny = listed("write_file(lock/)", "run_command(rm *)", "read_file(secret.txt)")
    answer = asks(write("lock/a", "a"), run("cd x; rm a"), read("secret.txt"), write("free", "b"))
    settings = Settings(rules=Rules(allow=listed("*"), deny=deny))
    async with staged(tmp_path, answer, says("ok"), settings=settings, processes=shell()) as stage:
        (stage.root / "secret.txt").write_text("s")
        owner = await stage.session(mode)
        await stage.say(owner)
        assert states(owner) == ["refused", "refused", "refused", "returned"]
        assert outcomes(owner)[:2] == [("refused", "policy")] * 2
        assert [each.reply.reason for each in calls_of(owner)[:3] if each.reply] == ["policy"] * 3
        for reply, rule in zip(replies(owner), deny, strict=False):
            assert f"“{rule.text}” in permissions.deny" in reply
        assert stage.editor.questions == []
        assert not (stage.root / "lock").exists()


async def test_a_rule_that_asks(tmp_path: Path) -> None:
    """G2: asks in `auto` too, for a read as for an effect, each time: an answer for the session is not offered."""
    settings = Settings(rules=Rules(allow=listed("*"), ask=listed("delete_file", "read_file(*.key)")))
    answer = asks(call("delete_file", path="a"), call("delete_file", path="b"), read("c.key"), read("d"))
    editor = ScriptedEditor("once", "reject", "reject")
    async with staged(tmp_path, answer, says("ok"), settings=settings, editor=editor) as stage:
        for name in ("a", "b", "c.key", "d"):
            (stage.root / name).write_text(name)
        owner = await stage.session("auto")
        await stage.say(owner)
        assert asked(editor) == ["delete_file: a", "delete_file: b", "read_file: c.key"]
        assert {tuple(option.id for option in question.options) for question in editor.questions} == {
            ("once", "reject")
        }
        assert "“delete_file” in permissions.ask" in editor.questions[0].text
        assert states(owner) == ["returned", "refused", "refused", "returned"]


async def test_a_denied_folder_is_denied_by_every_name(tmp_path: Path) -> None:
    """G2, E3: compared is where a path leads, so neither a link nor `..` leads around a rule."""
    settings = Settings(rules=Rules(deny=listed("*(lock/)")))
    answer = asks(write("way/a", "a"), write("x/../lock/a", "a"), call("move_file", **{"from": "b", "to": "lock/b"}))
    async with staged(tmp_path, answer, says("ok"), settings=settings) as stage:
        (stage.root / "lock").mkdir()
        (stage.root / "x").mkdir()
        (stage.root / "b").write_text("b")
        (stage.root / "way").symlink_to("lock")
        owner = await stage.session("auto")
        await stage.say(owner)
        assert states(owner) == ["refused"] * 3
        assert list((stage.root / "lock").iterdir()) == []


@pytest.mark.parametrize("mode", ["plan", "ask", "edits", "auto"])
async def test_a_workspace_that_is_not_trusted(tmp_path: Path, mode: Mode) -> None:
    """G2: the agent only reads, whatever the session's mode and the rules say; nobody is asked."""
    answer = asks(read("a.txt"), write("b", "b"), run("make"), run("ls"), call("settle_effect", attemptId="1" * 32,
        inspectionId="2" * 32, action="waive", evidence="none"))  # fmt: skip
    settings = Settings(rules=Rules(allow=listed("*")), trusted=False)
    async with staged(tmp_path, answer, says("ok"), settings=settings, processes=shell()) as stage:
        (stage.root / "a.txt").write_text("A")
        owner = await stage.session(mode)
        await stage.say(owner)
        assert states(owner) == ["returned", "refused", "refused", "returned", "refused"]
        assert "not trusted" in replies(owner)[1]
        assert stage.editor.questions == []
        assert [path.name for path in stage.root.iterdir()] == ["a.txt"]


async def test_trust_counts_from_the_next_call_on(tmp_path: Path) -> None:
    """G2: what was refused can be asked for again once the workspace is trusted, in the mode the session had."""
    turns = (asks(write("a", "a")), says("no"), asks(write("a", "a")), says("yes"))
    async with staged(tmp_path, *turns, settings=Settings(trusted=False)) as stage:
        owner = await stage.session("edits")
        await stage.say(owner)
        assert (owner.view().mode, states(owner)) == ("edits", ["refused"])
        stage.house.world.settings = Settings(trusted=True)
        await stage.say(owner)
        assert states(owner) == ["refused", "returned"]
