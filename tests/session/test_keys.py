"""The variable that holds a model's key is given to no child, whatever it is called (row E1)."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

from steadyhand.core.plain import plain
from steadyhand.core.settings import Settings
from steadyhand.session.diagnosis import diagnose
from tests.support.fakes import FakeProcesses, Script
from tests.support.scripted import asks, run, says, staged

pytestmark = pytest.mark.anyio

HARMLESS = "correct-horse"  # neither this name nor this value looks like a credential
GIVEN = {"PATH": "/usr/bin:/bin", "FLAVOUR": HARMLESS, "OPENAI_API_KEY": "x", "COLOUR": "blue"}
MINE = Settings(key_variable="FLAVOUR", mode="auto")


async def test_no_child_is_given_the_key_s_variable(tmp_path: Path) -> None:
    """E1, P1: a command, one that only reads and one in the background go without what `model.apiKeyEnv` names."""
    processes = FakeProcesses(otherwise=Script(), environment=GIVEN)
    answer = asks(run("make"), run("git status"), run("serve", background=True))
    async with staged(tmp_path, answer, says("ok"), processes=processes, settings=MINE) as stage:
        await stage.say(await stage.session("auto"))
        assert [started.command for started in processes.runs] == ["make", "git status", "serve"]
        for started in processes.runs:
            assert started.environment["COLOUR"] == "blue"
            assert not {"FLAVOUR", "OPENAI_API_KEY"} & set(started.environment)
            assert HARMLESS not in started.environment.values()


async def test_new_settings_count_from_the_next_child_on(tmp_path: Path) -> None:
    """E1: a variable is withheld from the moment the settings name it; what the user adds by name is given."""
    processes = FakeProcesses(otherwise=Script(), environment=GIVEN)
    answers = [asks(run("make")), says("ok"), asks(run("make all")), says("ok"), asks(run("make it")), says("ok")]
    async with staged(tmp_path, *answers, processes=processes, settings=Settings(mode="auto")) as stage:
        owner = await stage.session("auto")
        await stage.say(owner)
        stage.house.world.settings = MINE
        await stage.say(owner)
        stage.house.world.settings = attrs.evolve(MINE, environment_add={"FLAVOUR": "vanilla"})
        await stage.say(owner)
        assert [started.environment.get("FLAVOUR") for started in processes.runs] == [HARMLESS, None, "vanilla"]


async def test_it_is_named_and_not_shown(tmp_path: Path) -> None:
    """E1: the doctor names what children are not given, the key's variable among it, and shows no value."""
    async with staged(tmp_path, processes=FakeProcesses(environment=GIVEN), settings=MINE) as stage:
        found = json.dumps(plain(await diagnose(stage.house)))
    assert "FLAVOUR, OPENAI_API_KEY" in found
    assert HARMLESS not in found
    assert "COLOUR" not in found
