"""The model's own way out of an uncertain effect: it looks, and settles with permission, no button (row B5, case 31).

The effect is a command whose server was killed while it ran: it holds back everything. The model of these tests reads
its replies, as a real one would, to know which attempt and which inspection it may name.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import attrs
import pytest

from steadyhand.core.model import CallProposed, ModelRequest, ReplyMessage, StreamPart
from steadyhand.core.record import Inspection, Mode, Permission, Record, Settlement
from steadyhand.core.settings import Settings
from steadyhand.ports import Disk, Survivor
from steadyhand.session.owner import Owner
from steadyhand.session.resolving import Wanted, resolve
from steadyhand.tools.tool import Done, Running
from tests.support.disks import carries
from tests.support.fakes import FakeProcesses, Script
from tests.support.scripted import (
    GatedDisk,
    ScriptedEditor,
    ScriptedModel,
    ScriptedTool,
    Stage,
    asks,
    call,
    on_disk,
    outcomes,
    read,
    replies,
    run,
    says,
    staged,
    states,
    until,
    write,
)

pytestmark = pytest.mark.anyio

COMMAND = "touch secret-plan.txt; sleep 600"
Thought: TypeAlias = "Callable[[ModelRequest], CallProposed]"


class ThinkingModel(ScriptedModel):
    """A model whose answers may be made from what it was told."""

    def __init__(self, *thoughts: Thought | CallProposed) -> None:
        super().__init__()
        self.thoughts = list(thoughts)

    async def ask(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        thought = self.thoughts.pop(0) if self.thoughts else None
        if thought is None:
            self.answers = [says("done")]
        else:
            self.answers = [asks(thought if isinstance(thought, CallProposed) else thought(request))]
        async for part in super().ask(request):
            yield part


def told(request: ModelRequest, pattern: str) -> str:
    """What the latest reply with it says."""
    texts = [message.text for message in request.messages if isinstance(message, ReplyMessage)]
    found = [match.group(1) for text in texts for match in re.finditer(pattern, text)]
    assert found, texts
    return found[-1]


def attempt_told(request: ModelRequest) -> str:
    return told(request, r"attempt (?:is )?([0-9a-f]{32})")


def inspects(request: ModelRequest) -> CallProposed:
    return call("inspect_effect", attemptId=attempt_told(request))


def settles(action: str = "confirm", **other: Any) -> Thought:
    def think(request: ModelRequest) -> CallProposed:
        found = {
            "attemptId": other.get("attemptId") or attempt_told(request),
            "inspectionId": told(request, r"Inspection ([0-9a-f]{32})"),
            "action": action,
            "evidence": "The service says that it has it.",
        }
        return call("settle_effect", **{**found, **other})

    return think


@attrs.define
class Network:
    """A check over the network: it only reads."""

    asked: int = 0

    @property
    def tool(self) -> ScriptedTool:
        return ScriptedTool("check_network", self._answer)

    async def _answer(self, _: Running) -> Done:
        self.asked += 1
        return Done("returned", "the service has it")


@attrs.frozen
class Desk:
    """A session whose command was killed, and a model in front of it."""

    stage: Stage
    owner: Owner
    editor: ScriptedEditor
    network: Network
    model: ThinkingModel
    attempt_id: str

    async def turn(self) -> str:
        return (await self.stage.say(self.owner)).reason

    def of(self, kind: type[Record]) -> list[Any]:
        return [record for record in on_disk(self.owner) if isinstance(record, kind)]

    @property
    def settled(self) -> list[tuple[str, str]]:
        return [(one.settled, one.by) for one in self.of(Settlement)]

    def reply_to(self, tool: str) -> str:
        """The reply to the latest call of it."""
        calls = list(self.owner.ledger.calls.values())
        return [reply for each, reply in zip(calls, replies(self.owner), strict=True) if each.tool == tool][-1]


@asynccontextmanager
async def killed_command(
    folder: Path, *thoughts: Thought | CallProposed, editor: ScriptedEditor | None = None, mode: Mode = "ask",
    disk: Disk | None = None, survivors: Sequence[Survivor] = (),
) -> AsyncIterator[Desk]:  # fmt: skip
    """The life after the one in which the command ran."""
    processes = FakeProcesses({COMMAND: Script(hangs=True)})
    async with staged(folder, asks(run(COMMAND)), processes=processes, settings=Settings(mode="auto")) as stage:
        owner = await stage.session()
        await stage.send(owner, "go")
        await until(lambda: bool(processes.runs))
        session_id, (attempt_id,) = owner.session_id, owner.ledger.attempts
        left = stage.crashed(folder / "left")
    model, network, person = ThinkingModel(*thoughts), Network(), editor or ScriptedEditor()
    processes = FakeProcesses()
    processes.survivors_of[attempt_id] = survivors
    async with staged(
        folder, state=left, life=2, models=model, editor=person, processes=processes, disk=disk, tools=[network.tool],
    ) as stage:  # fmt: skip
        owner = await stage.opened(session_id)
        await owner.set_mode(mode)
        assert [one.attempt_id for one in owner.ledger.uncertain()] == [attempt_id]
        yield Desk(stage, owner, person, network, model, attempt_id)


WRITE = write("b.txt", "b")
LOOK = call("check_network")


async def test_out_of_the_deadlock_without_a_button(tmp_path: Path) -> None:
    """B5, B1, case 31: the write is held back, and nobody presses anything; reading and the check over the network are
    not held back; the model inspects, settles with its evidence and the permission that any effect needs, and goes on
    in the same turn."""
    editor = ScriptedEditor(None, "once", "once")  # the question of the held-back call is left alone
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.txt").write_text("a\n")
    thoughts = (WRITE, read("a.txt"), LOOK, inspects, settles(), WRITE)
    async with killed_command(tmp_path, *thoughts, editor=editor) as desk:
        assert await desk.turn() == "done"
        assert states(desk.owner)[1:] == ["refused", "returned", "returned", "returned", "returned", "returned"]
        assert outcomes(desk.owner)[1] == ("refused", "recovery_required")
        assert desk.network.asked == 1
        assert desk.stage.content("b.txt") == "b"
        assert desk.settled == [("model_confirmed", "model")]
        assert [one.by for one in desk.of(Inspection)] == ["user", "model"], "the question's own look, then the model's"
        assert len(editor.held_back) == 1
        settling, writing = editor.questions
        assert settling.tool == "settle_effect"
        assert "The service says that it has it." in settling.text
        assert [option.id for option in settling.options] == ["once", "reject"]
        assert writing.tool == "write_file"
        assert desk.owner.ledger.uncertain() == []
        assert desk.owner.ledger.refused == []


async def test_with_nobody_there_and_everything_allowed(tmp_path: Path) -> None:
    """B4, B5: no editor at all: the reply names the attempt and the two tools; in `auto` they are enough."""
    editor = ScriptedEditor()
    editor.somebody = False
    async with killed_command(tmp_path, WRITE, inspects, settles(), WRITE, editor=editor, mode="auto") as desk:
        assert await desk.turn() == "done"
        assert desk.settled == [("model_confirmed", "model")]
        assert desk.stage.content("b.txt") == "b"
        assert editor.questions == []
        assert editor.held_back == []


async def test_with_nobody_there_to_permit_it(tmp_path: Path) -> None:
    """B5, C5: it needs permission like any effect, so nothing is settled."""
    editor = ScriptedEditor()
    editor.somebody = False
    async with killed_command(tmp_path, WRITE, inspects, settles(), editor=editor) as desk:
        assert await desk.turn() == "done"
        assert outcomes(desk.owner)[-1] == ("refused", "not_answered")
        assert desk.settled == []


async def test_the_user_says_no(tmp_path: Path) -> None:
    """B5: the effect stays uncertain."""
    async with killed_command(tmp_path, WRITE, inspects, settles(), editor=ScriptedEditor(None, "reject")) as desk:
        assert await desk.turn() == "done"
        assert outcomes(desk.owner)[-1] == ("refused", "denied")
        assert desk.settled == []
        assert [one.attempt_id for one in desk.owner.ledger.uncertain()] == [desk.attempt_id]


async def test_in_plan_mode_it_looks_and_settles_nothing(tmp_path: Path) -> None:
    """B5, G2: a look is a read; a settlement is an effect like any."""
    async with killed_command(tmp_path, mode="plan") as desk:
        looks = call("inspect_effect", attemptId=desk.attempt_id)
        desk.model.thoughts = [looks, settles(attemptId=desk.attempt_id)]
        assert await desk.turn() == "done"
        assert [one.by for one in desk.of(Inspection)] == ["model"]
        assert outcomes(desk.owner)[-1] == ("refused", "policy")
        assert desk.settled == []


async def test_waived_by_the_model(tmp_path: Path) -> None:
    """B5: `waive` too is recorded as the model's, and the notice does not call it the user's."""
    async with killed_command(tmp_path, WRITE, inspects, settles("waive"), editor=ScriptedEditor(None)) as desk:
        assert await desk.turn() == "done"
        assert desk.settled == [("waived", "model")]
        (notice,) = [said.text for said in desk.owner.messages(99)[0] if said.role == "notice"]
        assert "waived by the model" in notice


async def test_the_stored_arguments_do_not_come_back_to_it(tmp_path: Path) -> None:
    """B5: what it gets is the finding, not the arguments, nor the command line of a survivor that holds them."""
    alive = [Survivor(77, "start-77", f"/bin/sh -c {COMMAND}")]
    editor = ScriptedEditor(None)
    async with killed_command(tmp_path, WRITE, inspects, editor=editor, survivors=alive) as desk:
        assert await desk.turn() == "done"
        reply = desk.reply_to("inspect_effect")
        assert "77 sh" in reply
        assert "secret-plan" not in reply
        assert "secret-plan" not in desk.reply_to("write_file")


@pytest.mark.parametrize("which", ["old", "made up"])
async def test_an_inspection_that_is_not_the_latest(tmp_path: Path, which: str) -> None:
    """B5, [I8]: it names what it saw, or is refused; the reply says why, and nothing is settled."""
    other: dict[str, Any] = {"inspectionId": "f" * 32}

    def again(request: ModelRequest) -> CallProposed:
        other["inspectionId"] = told(request, r"Inspection ([0-9a-f]{32})") if which == "old" else "f" * 32
        return inspects(request)

    def settle(request: ModelRequest) -> CallProposed:
        return settles(**other)(request)

    async with killed_command(tmp_path, WRITE, inspects, again, settle, editor=ScriptedEditor(None)) as desk:
        assert await desk.turn() == "done"
        assert outcomes(desk.owner)[-1] == ("failed", "inspectFirst")
        assert desk.settled == []


async def test_what_is_settled_already(tmp_path: Path) -> None:
    """J14: a second settlement is refused and recorded nowhere."""
    thoughts = (WRITE, inspects, settles("waive"), settles("confirm"))
    async with killed_command(tmp_path, *thoughts, editor=ScriptedEditor(None)) as desk:
        assert await desk.turn() == "done"
        assert outcomes(desk.owner)[-1] == ("failed", "alreadyResolved")
        assert desk.settled == [("waived", "model")]


async def test_an_attempt_that_nobody_knows(tmp_path: Path) -> None:
    """B5: neither looked at nor settled."""
    unknown = call("inspect_effect", attemptId="e" * 32)
    settle = call("settle_effect", attemptId="e" * 32, inspectionId="f" * 32, action="waive", evidence="none")
    async with killed_command(tmp_path, unknown, settle, editor=ScriptedEditor("once")) as desk:
        assert await desk.turn() == "done"
        assert "There is no attempt" in desk.reply_to("inspect_effect")
        assert outcomes(desk.owner)[-1] == ("failed", "not_found")


@pytest.mark.parametrize(
    "fields",
    [
        {"action": "retry"}, {"action": "restore"}, {"action": "reject"}, {"evidence": " "}, {"evidence": "e" * 2001},
        {"attemptId": "1234"}, {"inspectionId": ""}, {"more": 1},
    ],
)  # fmt: skip
async def test_arguments_that_do_not_fit(tmp_path: Path, fields: dict[str, Any]) -> None:
    """B5: strict; it can only confirm or waive, and says on what evidence."""
    fits = {"attemptId": "1" * 32, "inspectionId": "2" * 32, "action": "confirm", "evidence": "seen"}
    async with staged(tmp_path, asks(call("settle_effect", **{**fits, **fields})), says("done")) as stage:
        owner = await stage.session()
        await stage.say(owner)
        (each,) = owner.ledger.calls.values()
        assert each.reply is not None
        assert (each.reply.outcome, each.reply.reason) == ("refused", "bad_arguments")
        assert stage.editor.questions == []


@pytest.mark.parametrize("kind", ["inspection", "settlement"])
async def test_both_are_parked_steps(tmp_path: Path, kind: str) -> None:
    """B5, A3: while it is carried out the turn counts as parked, so that resolutions are let through."""
    disk = GatedDisk(carries(kind))
    editor = ScriptedEditor()
    editor.somebody = False
    thoughts = (WRITE, inspects, settles())
    async with killed_command(tmp_path, *thoughts, editor=editor, mode="auto", disk=disk) as desk:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(desk.turn)
            await disk.wait_reached()
            assert desk.owner.turn is not None
            assert desk.owner.turn.parked == 1
            assert desk.owner.view().parked
            disk.go.set()
        assert desk.settled == [("model_confirmed", "model")]


async def test_an_effect_of_another_session(tmp_path: Path) -> None:
    """B1, B5: it is settled in its own journal, and what it held back here goes on."""
    async with killed_command(tmp_path, WRITE, inspects, settles(), WRITE, editor=ScriptedEditor(None)) as desk:
        here = await desk.stage.session("ask")
        assert (await desk.stage.say(here)).reason == "done"
        assert desk.settled == [("model_confirmed", "model")]
        assert [record for record in on_disk(here) if isinstance(record, Settlement)] == []
        assert desk.stage.content("b.txt") == "b"
        assert any(isinstance(record, Permission) and record.tool == "settle_effect" for record in on_disk(here))


async def test_the_user_may_have_settled_it_meanwhile(tmp_path: Path) -> None:
    """A6: of two doors one wins; the model is told, and the user's stays the user's."""

    async def waived(desk: Desk) -> None:
        seen = await resolve(desk.owner, Wanted(desk.attempt_id, "inspect"))
        assert seen.inspection is not None
        chosen = Wanted(desk.attempt_id, "waive", inspection_id=seen.inspection.inspection_id)
        await resolve(desk.owner, chosen)

    @attrs.define(eq=False)
    class Meanwhile(ScriptedEditor):
        def __attrs_pre_init__(self) -> None:
            super().__init__(None, "once")

        async def ask_permission(self, question: Any) -> Any:
            await waived(desk)
            return await super().ask_permission(question)

    async with killed_command(tmp_path, WRITE, inspects, settles(), editor=Meanwhile()) as desk:
        assert await desk.turn() == "done"
        assert outcomes(desk.owner)[-1] == ("failed", "alreadyResolved")
        assert desk.settled == [("waived", "user")]
