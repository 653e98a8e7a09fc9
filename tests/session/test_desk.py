"""What a sidebar asks of a session beside prompts: title, model, queue, export, checkpoints, usage, deletion."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from steadyhand.core.model import ModelRequest, ModelTrouble, StreamPart
from steadyhand.core.prompt import FileAttachment, Prompt
from steadyhand.core.record import ModelName, ModelSet, Queue, Title, User
from steadyhand.core.refusal import Refused
from steadyhand.core.settings import Settings
from steadyhand.core.told import QueueTold, RecoveryTold, SessionTold
from steadyhand.core.views import ChangedFile
from steadyhand.ports import OfferedModel
from steadyhand.session import desk, prompts
from steadyhand.session.owner import Owner
from steadyhand.session.prompts import prompt_bytes_max
from steadyhand.session.titles import title_chars_max
from steadyhand.tools.tool import Done, Running
from tests.support.disks import Operation
from tests.support.fakes import FakeProcesses
from tests.support.scripted import (
    Gate,
    GatedDisk,
    ScriptedEditor,
    ScriptedModel,
    ScriptedTool,
    Stage,
    asks,
    call,
    kinds,
    on_disk,
    says,
    staged,
    until,
    write,
)

pytestmark = pytest.mark.anyio


async def unknown(_: Running) -> Done:
    return Done("unknown", "Nobody knows.", "output_lost")


DOUBTFUL = ScriptedTool("doubtful", unknown, "opaque")


def errors(refused: pytest.ExceptionInfo[Refused]) -> Any:
    return refused.value.more["errors"]


def is_there(owner: Owner) -> bool:
    return Path(owner.path).exists()


async def other_window(stage: Stage, folder: Path, owner: Owner) -> str:
    """The word that a rename is refused with where another process owns the session."""
    async with staged(folder, life=2, processes=FakeProcesses()) as second:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("steadyhand.session.house.owner_wait_s_max", 0.05)
            theirs = await second.opened(owner.session_id)
        with pytest.raises(Refused) as refused:
            await desk.rename(theirs, "theirs")
        with pytest.raises(Refused):
            await second.house.delete(owner.session_id, force=True)
        return refused.value.kind


# --- titles (rows S3, K3, case 80) ----------------------------------------------------------------------------------


async def test_a_title_of_the_user_is_never_overwritten(tmp_path: Path) -> None:
    """Rows S3, K3, case 80: given before the first prompt, while the first turn runs, or in an earlier life, it stays;
    an automatic one that was on its way is dropped."""
    gate = Gate()
    async with staged(tmp_path, [gate, *says("1")], says("2")) as stage:
        owner = await stage.session()
        await stage.send(owner, "an automatic title", "c1")
        await gate.wait_reached()
        assert (owner.view().title, owner.view().title_source) == ("an automatic title", "auto")
        view = await desk.rename(owner, "  the user's\n title ")
        assert (view.title, view.title_source) == ("the user's title", "user")
        gate.go.set()
        await until(lambda: not owner.view().busy)
        await owner.append([Title("late and automatic", "auto")], barrier=True)
        await stage.say(owner, "another prompt", "c2")
        assert owner.view().title == "the user's title"
        first = await stage.house.create("given at creation", stage.root.as_uri())
        early = await stage.house.owner(first.session_id)
        await stage.say(early, "a prompt", "c1")
        assert (early.view().title, early.view().title_source) == ("given at creation", "user")
        assert [record.title for record in on_disk(early) if isinstance(record, Title)] == []
        state = stage.crashed(tmp_path / "later")
    async with staged(tmp_path, state=state, life=2) as stage:
        again = await stage.opened(owner.session_id)
        await stage.say(again, "yet another", "c3")
        assert (again.view().title, again.view().title_source) == ("the user's title", "user")
        listed = {view.session_id: view.title for view in await stage.house.listed()}
        assert listed[owner.session_id] == "the user's title"


async def test_an_automatic_title_comes_once(tmp_path: Path) -> None:
    """Row K3: with the first prompt, durable with it; one that the user took away does not come back."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        await stage.say(owner, "/help", "c0")
        assert owner.view().title_source == "none"
        await stage.say(owner, "  first line \nsecond", "c1")
        assert (owner.view().title, owner.view().title_source) == ("first line", "auto")
        assert kinds(owner)[kinds(owner).index("title") - 1] == "user"
        view = await desk.rename(owner, " ")
        assert (view.title, view.title_source) == ("", "none")
        await stage.say(owner, "not a title", "c2")
        assert owner.view().title == ""


async def test_renaming(tmp_path: Path) -> None:
    """Row S3: told once, bounded [I13], allowed beside a running turn, and not by a process that does not own it."""
    gate = Gate()
    async with staged(tmp_path, [gate]) as stage:
        owner = await stage.session()
        await stage.send(owner, "one", "c1")
        await gate.wait_reached()
        epoch = owner.epoch
        await desk.rename(owner, "x" * title_chars_max)
        assert owner.epoch == epoch
        told = [one.session.title for one in stage.editor.told if isinstance(one, SessionTold)]
        assert told[-1] == "x" * title_chars_max
        with pytest.raises(Refused) as refused:
            await desk.rename(owner, "x" * (title_chars_max + 1))
        assert errors(refused) == [{"path": "$.title", "message": f"longer than {title_chars_max} characters"}]
        assert await other_window(stage, tmp_path, owner) == "notOwner"
        assert owner.view().title == "x" * title_chars_max


async def test_renaming_keeps_what_is_unresolved(tmp_path: Path) -> None:
    """Row B8."""
    async with staged(tmp_path, asks(call("doubtful")), tools=[DOUBTFUL]) as stage:
        owner = await stage.session()
        await stage.say(owner)
        before = owner.snapshot().calls
        await desk.rename(owner, "new")
        assert len(before) == 1
        assert owner.snapshot().calls == before


# --- deleting (rows S3, B8) -----------------------------------------------------------------------------------------


async def test_deleting_a_session(tmp_path: Path) -> None:
    """Row S3: its folder is gone, it is in no list and is known to nobody; no word of it comes afterwards."""
    async with staged(tmp_path) as stage:
        owner, other = await stage.session(), await stage.session()
        await stage.say(owner, "write", "c1")
        told = len(stage.editor.told)
        await stage.house.delete(owner.session_id, force=False)
        assert not is_there(owner)
        assert [view.session_id for view in await stage.house.listed()] == [other.session_id]
        for refused_call in (stage.house.open(owner.session_id, 1), stage.house.delete(owner.session_id, True)):
            with pytest.raises(Refused) as refused:
                await refused_call
            assert refused.value.kind == "unknownSession"
        assert [one for one in stage.editor.told[told:] if isinstance(one, SessionTold)] == []


async def test_deleting_ends_its_turn(tmp_path: Path) -> None:
    """Rows S2, S3: a turn that runs is cancelled first, and whoever waits for it is told."""
    gate = Gate()
    async with staged(tmp_path, [gate]) as stage:
        owner = await stage.session()
        accepted = await stage.send(owner, "one", "c1")
        await gate.wait_reached()
        reasons: list[str] = []

        async def wait() -> None:
            reasons.append((await owner.wait_ended(accepted.turn_id)).reason)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.lowlevel.checkpoint()
            await stage.house.delete(owner.session_id, force=False)
        assert reasons == ["closed"]
        assert not is_there(owner)


async def test_unresolved_effects_are_deleted_by_force_alone(tmp_path: Path) -> None:
    """Row B8: refused with what is uncertain, and then all is as it was; by force it goes, and its marks with it."""
    async with staged(tmp_path, asks(call("doubtful")), says("2"), tools=[DOUBTFUL]) as stage:
        owner = await stage.session()
        await stage.say(owner)
        with pytest.raises(Refused) as refused:
            await stage.house.delete(owner.session_id, force=False)
        assert refused.value.kind == "recoveryRequired"
        told: Any = refused.value.more["uncertain"]
        assert told[0]["attemptId"] == owner.snapshot().calls[0].attempt_id
        assert (await stage.say(owner, "go on", "c2")).reason == "done"
        await stage.house.delete(owner.session_id, force=True)
        assert not is_there(owner)
        last = [one.snapshot for one in stage.editor.told if isinstance(one, RecoveryTold)][-1]
        assert (last.session_id, last.calls) == (owner.session_id, ())


async def test_a_doubt_that_deleting_itself_makes(tmp_path: Path) -> None:
    """Row B8: where ending the turn leaves an effect uncertain, nothing is deleted, and the session works on."""
    gate = Gate()

    async def lost(running: Running) -> Done:
        try:
            await gate.passed()
        except anyio.get_cancelled_exc_class():
            pass  # its end is not known
        return await unknown(running)

    slow = ScriptedTool("slow", lost, "opaque")
    async with staged(tmp_path, asks(call("slow")), says("2"), tools=[slow]) as stage:
        owner = await stage.session()
        await stage.send(owner, "one", "c1")
        await gate.wait_reached()
        with pytest.raises(Refused) as refused:
            await stage.house.delete(owner.session_id, force=False)
        assert refused.value.kind == "recoveryRequired"
        assert is_there(owner)
        assert (await stage.say(owner, "go on", "c2")).reason == "done"


async def test_a_session_that_cannot_be_removed(tmp_path: Path) -> None:
    """Row J7: one clear sentence, and the session is as it was."""

    def removes(operation: Operation) -> bool:
        return operation.verb == "unlink" and operation.target.endswith("journal.jsonl")

    disk = GatedDisk(removes, PermissionError(13, "Permission denied"), held=False)
    async with staged(tmp_path, disk=disk) as stage:
        owner = await stage.session()
        with pytest.raises(Refused) as refused:
            await stage.house.delete(owner.session_id, force=False)
        assert refused.value.kind == "journalBroken"
        assert "Make the state directory writable" in refused.value.message
        assert (await stage.say(owner, "one", "c1")).reason == "done"


# --- export (row G5) ------------------------------------------------------------------------------------------------


async def test_both_exports(tmp_path: Path) -> None:
    """Row G5: what was said, called and attached, as it is shown; Markdown whose fences nothing breaks, JSON that is
    parsed."""
    content = "```\nfenced\n"
    async with staged(tmp_path, asks(write("a.md", content), text="I write."), says("Done.")) as stage:
        owner = await stage.session()
        sent = Prompt("write it", (FileAttachment("b.txt"),))
        accepted = await prompts.prompt(owner, owner.epoch, "c1", sent)
        await stage.ended(owner, accepted.turn_id)
        await stage.say(owner, "/help", "c2")
        text = desk.exported(owner, "markdown")
        assert text.startswith("# write it\n\n")
        assert "\n## You · " in text
        assert "\n\nwrite it\n\n- attached: b.txt\n" in text
        assert "\n### write_file: a.md: returned\n\n````json\n" in text
        order = [text.index(part) for part in ("I write.", "a.md: returned", "Done.", "/help: this list")]
        assert order == sorted(order)
        found = json.loads(desk.exported(owner, "json"))
        assert (found["format"], found["session"]["sessionId"]) == (1, owner.session_id)
        assert [message["role"] for message in found["messages"]] == [
            "user", "assistant", "assistant", "user", "assistant",
        ]  # fmt: skip
        assert found["messages"][0]["attachments"] == [{"kind": "file", "path": "b.txt"}]
        assert json.loads(found["messages"][1]["calls"][0]["arguments"])["content"] == content


# --- the queue (row S4) ---------------------------------------------------------------------------------------------


async def test_editing_the_queue(tmp_path: Path) -> None:
    """Row S4, case 76: another text in the same place, durable and told; what runs then is the new one."""
    gate = Gate()
    async with staged(tmp_path, [gate, *says("1")], says("2"), says("3")) as stage:
        owner = await stage.session()
        sent = [await stage.send(owner, text, text) for text in ("one", "two", "three")]
        left = await desk.edit_queue(owner, "two", "TWO", False)
        assert [item.text for item in left] == ["TWO", "three"]
        assert [told.queue for told in stage.editor.told if isinstance(told, QueueTold)][-1] == left
        assert [record.text for record in on_disk(owner) if isinstance(record, Queue)] == ["two", "three", "TWO"]
        gate.go.set()
        for each in sent:
            await stage.ended(owner, each.turn_id)
        assert [record.text for record in on_disk(owner) if isinstance(record, User)] == ["one", "TWO", "three"]
        again = await stage.send(owner, "two", "two")
        assert again.duplicate, "it is known by the text it was sent with"


async def test_removing_from_the_queue(tmp_path: Path) -> None:
    """Row S4: it never runs, whoever waits for it is told, and it is not there after a crash."""
    gate = Gate()
    async with staged(tmp_path, [gate, *says("1")]) as stage:
        owner = await stage.session()
        await stage.send(owner, "one", "one")
        second = await stage.send(owner, "two", "two")
        assert await desk.edit_queue(owner, "two", None, True) == ()
        assert (await stage.ended(owner, second.turn_id)).reason == "cancelled"
        assert prompts.status(owner, "two").reason == "cancelled"
        state = stage.crashed(tmp_path / "later")
        gate.go.set()
        await until(lambda: not owner.view().busy)
        assert len(stage.model.requests) == 1
    async with staged(tmp_path, state=state, life=2) as stage:
        assert (await stage.house.open(owner.session_id, 9)).queue == ()


@pytest.mark.parametrize(
    ("name", "text", "remove", "path"),
    [
        ("two", None, False, "$.text"),
        ("two", "new", True, "$.text"),
        ("two", "", False, "$.text"),
        ("two", " \n", False, "$.text"),
        ("two", "x" * (prompt_bytes_max + 1), False, "$.text"),
        ("aside", "/help", False, "$.aside"),
        ("one", "new", False, "$.clientMessageId"),
        ("nobody", None, True, "$.clientMessageId"),
    ],
)
async def test_what_cannot_be_edited(tmp_path: Path, name: str, text: str | None, remove: bool, path: str) -> None:
    """Row S4: neither or both, what could not be sent, one that runs or is unknown; the queue is as it was."""
    gate = Gate()
    async with staged(tmp_path, [gate]) as stage:
        owner = await stage.session()
        await stage.send(owner, "one", "one")
        await stage.send(owner, "two", "two")
        await prompts.prompt(owner, owner.epoch, "aside", Prompt("quick", aside=True))
        await gate.wait_reached()
        with pytest.raises(Refused) as refused:
            await desk.edit_queue(owner, name, text, remove)
        assert [error["path"] for error in errors(refused)] == [path]
        assert [item.text for item in owner.queue()] == ["two", "quick"]


# --- models (row P1) ------------------------------------------------------------------------------------------------


class ManyModels:
    """`ports.Providers` that offers what it is given; a trouble is raised."""

    def __init__(self, offers: Sequence[OfferedModel] | ModelTrouble) -> None:
        self.offers = offers
        self.asked: list[tuple[str, str]] = []
        self.model = ScriptedModel()

    def __call__(self, provider: str, name: str) -> ManyModels:
        self.asked.append((provider, name))
        return self

    def ask(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        return self.model.ask(request)

    def connect(self, settings: Callable[[], Settings], secret: Callable[[str], Awaitable[str | None]] | None) -> None:
        raise AssertionError("connected by the edge alone")

    async def offered(self, provider: str) -> Sequence[OfferedModel]:
        if isinstance(self.offers, ModelTrouble):
            raise self.offers
        return self.offers

    async def learn_window(self, provider: str, name: str) -> int | None:
        return None

    async def diagnose(self, provider: str, name: str) -> Sequence[str]:
        return ()

    async def close(self) -> None:
        pass


PRACTICE = OfferedModel("practice", "practice")
CHOSEN = Settings(model=ModelName("openai", "large"))


async def test_models_that_are_offered(tmp_path: Path) -> None:
    """wire.md, model/list: the practice model always, and what the provider of the settings offers."""
    offers = [OfferedModel("openai", "large", 1000), OfferedModel("openai", "small")]
    async with staged(tmp_path, models=ManyModels(offers), settings=CHOSEN) as stage:
        assert await stage.house.offered() == (PRACTICE, *offers)
    async with staged(tmp_path, models=ManyModels(offers), life=2) as stage:
        assert await stage.house.offered() == (PRACTICE,), "nobody asks a provider that is not chosen"


async def test_a_provider_that_offers_nothing(tmp_path: Path) -> None:
    """wire.md, model/list: one that does not answer gives the chosen name, and the person its sentence."""
    trouble = ManyModels(ModelTrouble("Nobody answers at the address."))
    async with staged(tmp_path, models=trouble, settings=CHOSEN) as stage:
        assert await stage.house.offered() == (PRACTICE, OfferedModel("openai", "large"))
        assert stage.editor.messages() == ["Nobody answers at the address."]


async def test_choosing_a_model(tmp_path: Path) -> None:
    """wire.md, session/setModel: from the next request on, recorded once, over a restart; a provider that is none is
    refused by its place."""
    models = ManyModels([])
    async with staged(tmp_path, models=models) as stage:
        owner = await stage.session()
        await stage.say(owner, "one", "c1")
        view = await desk.set_model(owner, "openai", "large")
        assert view.model == ModelName("openai", "large")
        await desk.set_model(owner, "openai", "large")
        assert [record for record in on_disk(owner) if isinstance(record, ModelSet)] == [ModelSet("openai", "large")]
        await stage.say(owner, "two", "c2")
        assert models.asked == [("practice", "practice"), ("openai", "large")]
        with pytest.raises(Refused) as refused:
            await desk.set_model(owner, "nobody", "large")
        assert refused.value.kind == "invalidParams"
        assert [error["path"] for error in errors(refused)] == ["$.provider"]
        told = [one.session.model for one in stage.editor.told if isinstance(one, SessionTold)]
        assert told[-1] == ModelName("openai", "large")
        state = stage.crashed(tmp_path / "later")
    async with staged(tmp_path, state=state, life=2, models=models) as stage:
        again = await stage.opened(owner.session_id)
        assert again.view().model == ModelName("openai", "large")


# --- checkpoints and usage (rows W8, U1) ----------------------------------------------------------------------------


async def test_turns_that_changed_files(tmp_path: Path) -> None:
    """Rows W8, G6: oldest first, each with its prompt and the files really changed; a turn that changed none, a refused
    write and a slash command are not among them."""
    async with staged(
        tmp_path,
        asks(write("a.txt", "1")), says("1"),
        says("only words"),
        asks(write("a.txt", "2"), call("move_file", **{"from": "b.txt", "to": "c.txt"})), says("3"),
        asks(write("d.txt", "4")), says("4"),
        editor=ScriptedEditor("once", "once", "once", "reject"),
    ) as stage:  # fmt: skip
        (stage.root / "b.txt").write_text("b")
        owner = await stage.session()
        for name in ("first", "second", "third", "fourth"):
            await stage.say(owner, name, name)
        await stage.say(owner, "/help", "c9")
        found = desk.checkpoints(owner)
        assert [(turn.prompt, turn.files) for turn in found] == [
            ("first", (ChangedFile("a.txt", "created"),)),
            ("third", (ChangedFile("a.txt", "modified"), ChangedFile("c.txt", "moved", "b.txt"))),
        ]
        assert [turn.turn_id for turn in found] == [prompts.status(owner, name).turn_id for name in ("first", "third")]
        state = stage.crashed(tmp_path / "later")
    async with staged(tmp_path, state=state, life=2) as stage:
        assert desk.checkpoints(await stage.opened(owner.session_id)) == found


async def test_a_session_without_a_request_used_nothing(tmp_path: Path) -> None:
    """Row U1: zeros, and nothing is missing from them; asking is free for one that another process owns."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        view = desk.usage(owner)
        assert (view.billed.input, view.billed.output, view.context, view.complete) == (0, 0, 0, True)
