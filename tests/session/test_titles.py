"""Titles: the automatic one comes with the first prompt, the user's stays, in this life and the next (S3, K3)."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from steadyhand.core.record import Title
from steadyhand.core.refusal import Refused
from steadyhand.core.told import SessionTold
from steadyhand.session import desk
from steadyhand.session.titles import title_chars_max
from tests.support.scripted import Gate, Stage, on_disk, says, staged

pytestmark = pytest.mark.anyio


def shown(stage: Stage) -> tuple[str, str]:
    """Title and its source as the editor was told last."""
    last = [told.session for told in stage.editor.told if isinstance(told, SessionTold)][-1]
    return last.title, last.title_source


async def test_the_first_prompt_names_an_untitled_session(tmp_path: Path) -> None:
    """K3: its first line, recorded with the prompt, once; a later prompt names nothing."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        await stage.say(owner, "mend the door\nand the window")
        await stage.say(owner, "now the roof")
        assert shown(stage) == ("mend the door", "auto")
        assert [record.source for record in on_disk(owner) if isinstance(record, Title)] == ["auto"]


@pytest.mark.parametrize("when", ["before the prompt", "while the turn runs", "after it"])
async def test_no_automatic_title_comes_over_the_users(tmp_path: Path, when: str) -> None:
    """S3, K3, case 80: renamed at any moment of the turn that would name it, it keeps the user's title, and is opened
    with it in the next life; a later prompt changes nothing."""
    gate = Gate()
    async with staged(tmp_path, [gate, *says("done")]) as stage:
        owner = await stage.session()
        if when == "before the prompt":
            await desk.rename(owner, "Mine")
        accepted = await stage.send(owner, "call it yours")
        await gate.wait_reached()
        if when == "while the turn runs":
            await desk.rename(owner, "Mine")
        gate.go.set()
        await stage.ended(owner, accepted.turn_id)
        if when == "after it":
            await desk.rename(owner, "Mine")
        await stage.say(owner, "call it theirs")
        assert shown(stage) == ("Mine", "user")
        left = stage.crashed(tmp_path / "left")
        session_id = owner.session_id
    async with staged(tmp_path, state=left, life=2) as stage:
        view = (await stage.opened(session_id)).view()
        assert (view.title, view.title_source) == ("Mine", "user")


async def test_a_rename_beside_the_first_prompt(tmp_path: Path) -> None:
    """S3, case 80: both at once; whichever is recorded first, the user's title stands at the end."""
    for number in range(4):
        async with staged(tmp_path, life=number + 1) as stage:
            owner = await stage.session()
            async with anyio.create_task_group() as tasks:
                for work in ((stage.say, "call it yours"), (desk.rename, "Mine"))[:: -1 if number % 2 else 1]:
                    act, text = work
                    tasks.start_soon(act, owner, text)  # type: ignore[arg-type]  # two kinds of work
            assert shown(stage) == ("Mine", "user")


async def test_an_empty_title_takes_it_away(tmp_path: Path) -> None:
    """S3: then the session has none, and a prompt names it only if it is the first."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        await desk.rename(owner, "Mine")
        view = await desk.rename(owner, " \n ")
        assert (view.title, view.title_source) == ("", "none")
        await stage.say(owner, "call it yours")
        assert shown(stage) == ("call it yours", "auto")


async def test_a_title_is_bounded(tmp_path: Path) -> None:
    """S3, [I13]: on one line, and so many characters are the last that are taken."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        assert (await desk.rename(owner, " a\tb\n c ")).title == "a b c"
        assert (await desk.rename(owner, "x" * title_chars_max)).title == "x" * title_chars_max
        with pytest.raises(Refused) as refused:
            await desk.rename(owner, "x" * (title_chars_max + 1))
        assert refused.value.kind == "invalidParams"
        assert owner.view().title == "x" * title_chars_max
