"""No child receives the variable that holds a model's key, whatever its name (row E1)."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

from steadyhand.domain.permissions.unattended import UNATTENDED_ENVIRONMENT
from steadyhand.domain.settings import Settings
from steadyhand.domain.views.serialize import to_plain
from steadyhand.session.service.doctor import diagnose
from tests.support.fakes import FakeProcesses, Script
from tests.support.in_process_server import scripted_server
from tests.support.model import asks, run, says

pytestmark = pytest.mark.anyio

HARMLESS = "correct-horse"  # neither this name nor this value looks like a credential
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "FLAVOUR": HARMLESS, "OPENAI_API_KEY": "x", "COLOUR": "blue"}
KEY_SETTINGS = Settings(key_variable="FLAVOUR", mode="auto")


async def test_key_variable_is_withheld_from_every_child(tmp_path: Path) -> None:
    """Rows E1, P1: A command, a read-only command and a background command run without the variable that
    `model.apiKeyEnv` names."""
    processes = FakeProcesses(otherwise=Script(), environment=ENVIRONMENT)
    answer = asks(run("make"), run("git status"), run("serve", background=True))
    async with scripted_server(tmp_path, answer, says("ok"), processes=processes, settings=KEY_SETTINGS) as stage:
        await stage.say(await stage.session("auto"))
        assert [started.command for started in processes.runs] == ["make", "git status", "serve"]
        for started in processes.runs:
            assert started.environment["COLOUR"] == "blue"
            assert not {"FLAVOUR", "OPENAI_API_KEY"} & set(started.environment)
            assert HARMLESS not in started.environment.values()


async def test_new_key_setting_counts_from_the_next_child(tmp_path: Path) -> None:
    """Row E1: The server withholds a variable from the moment the settings name it. A child gets a variable that the
    user adds by name."""
    processes = FakeProcesses(otherwise=Script(), environment=ENVIRONMENT)
    answers = [asks(run("make")), says("ok"), asks(run("make all")), says("ok"), asks(run("make it")), says("ok")]
    async with scripted_server(tmp_path, *answers, processes=processes, settings=Settings(mode="auto")) as stage:
        session = await stage.session("auto")
        await stage.say(session)
        stage.registry.context.settings = KEY_SETTINGS
        await stage.say(session)
        stage.registry.context.settings = attrs.evolve(KEY_SETTINGS, environment_add={"FLAVOUR": "vanilla"})
        await stage.say(session)
        assert [started.environment.get("FLAVOUR") for started in processes.runs] == [HARMLESS, None, "vanilla"]


async def test_doctor_names_the_key_variable_without_its_value(tmp_path: Path) -> None:
    """Row E1: The doctor names what children do not get, the key's variable among it, and shows no value."""
    async with scripted_server(
        tmp_path, processes=FakeProcesses(environment=ENVIRONMENT), settings=KEY_SETTINGS
    ) as stage:
        found = json.dumps(to_plain(await diagnose(stage.registry.context)))
    assert "FLAVOUR, OPENAI_API_KEY" in found
    assert HARMLESS not in found
    assert "COLOUR" not in found


async def test_child_is_told_to_open_no_editor_unless_the_user_names_one(tmp_path: Path) -> None:
    """Case 118: Every command gets the variables that prevent editors and prompts; the user's setting wins."""
    processes = FakeProcesses(otherwise=Script(), environment=ENVIRONMENT)
    settings = Settings(mode="auto", environment_add={"EDITOR": "true"})
    answer = asks(run("make"), run("serve", background=True))
    async with scripted_server(tmp_path, answer, says("ok"), processes=processes, settings=settings) as stage:
        await stage.say(await stage.session("auto"))
        for started in processes.runs:
            assert started.environment["EDITOR"] == "true"
            assert started.environment["GIT_EDITOR"] == UNATTENDED_ENVIRONMENT["GIT_EDITOR"]
