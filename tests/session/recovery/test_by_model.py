"""The model resolves an uncertain effect itself: it inspects, and settles with permission, without a button (row B5,
case 31).

The effect is a command whose server was killed while it ran: it holds back everything. The model of these tests
reads its replies, as a real one would, to know which attempt and which inspection it may name.
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

from steadyhand.domain.model.messages import CallProposed, ModelRequest, ReplyMessage, StreamPart
from steadyhand.domain.records.record import Inspection, Mode, Permission, Record, Settlement
from steadyhand.domain.settings import Settings
from steadyhand.ports.disk import Disk
from steadyhand.ports.processes import OrphanProcess
from steadyhand.session.recovery.resolve import ResolutionRequest
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.session import Session
from steadyhand.tools.contract import CallContext, ToolOutcome
from tests.support.editor import ScriptedEditor
from tests.support.fakes import FakeProcesses, Script
from tests.support.faults import GatedDisk, carries
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import ScriptedModel, asks, call, read, run, says, write
from tests.support.scripted_tool import ScriptedTool
from tests.support.session_state import on_disk, outcomes, replies, states
from tests.support.waiting import until

pytestmark = pytest.mark.anyio

COMMAND = "touch secret-plan.txt; sleep 600"
ModelStep: TypeAlias = "Callable[[ModelRequest], CallProposed]"


class RespondingModel(ScriptedModel):
    """A model whose answers may depend on what it received."""

    def __init__(self, *steps: ModelStep | CallProposed) -> None:
        super().__init__()
        self.steps = list(steps)

    async def ask(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        step = self.steps.pop(0) if self.steps else None
        if step is None:
            self.answers = [says("done")]
        else:
            self.answers = [asks(step if isinstance(step, CallProposed) else step(request))]
        async for part in super().ask(request):
            yield part


def latest_match(request: ModelRequest, pattern: str) -> str:
    """The first group of the latest match in the replies."""
    texts = [message.text for message in request.messages if isinstance(message, ReplyMessage)]
    found = [match.group(1) for text in texts for match in re.finditer(pattern, text)]
    assert found, texts
    return found[-1]


def reported_attempt(request: ModelRequest) -> str:
    return latest_match(request, r"attempt (?:is )?([0-9a-f]{32})")


def inspects(request: ModelRequest) -> CallProposed:
    return call("inspect_effect", attemptId=reported_attempt(request))


def settles(action: str = "confirm", **other: Any) -> ModelStep:
    def propose(request: ModelRequest) -> CallProposed:
        found = {
            "attemptId": other.get("attemptId") or reported_attempt(request),
            "inspectionId": latest_match(request, r"Inspection ([0-9a-f]{32})"),
            "action": action,
            "evidence": "The service says that it has it.",
        }
        return call("settle_effect", **{**found, **other})

    return propose


@attrs.define
class Network:
    """A check over the network. It only reads."""

    asked: int = 0

    @property
    def tool(self) -> ScriptedTool:
        return ScriptedTool("check_network", self._answer)

    async def _answer(self, _: CallContext) -> ToolOutcome:
        self.asked += 1
        return ToolOutcome("returned", "the service has it")


@attrs.frozen
class KilledCommand:
    """A session whose command was killed, and the model that works in it."""

    stage: InProcessServer
    session: Session
    editor: ScriptedEditor
    network: Network
    model: RespondingModel
    attempt_id: str

    async def turn(self) -> str:
        return (await self.stage.say(self.session)).reason

    def of(self, kind: type[Record]) -> list[Any]:
        return [record for record in on_disk(self.session) if isinstance(record, kind)]

    @property
    def settlements(self) -> list[tuple[str, str]]:
        return [(one.settled, one.by) for one in self.of(Settlement)]

    def reply_to(self, tool: str) -> str:
        """The reply to the latest call of the tool."""
        calls = list(self.session.ledger.calls.values())
        return [reply for each, reply in zip(calls, replies(self.session), strict=True) if each.tool == tool][-1]


@asynccontextmanager
async def killed_command(
    folder: Path, *steps: ModelStep | CallProposed, editor: ScriptedEditor | None = None, mode: Mode = "ask",
    disk: Disk | None = None, survivors: Sequence[OrphanProcess] = (),
) -> AsyncIterator[KilledCommand]:  # fmt: skip
    """The process after the one in which the command ran."""
    processes = FakeProcesses({COMMAND: Script(hangs=True)})
    async with scripted_server(
        folder, asks(run(COMMAND)), processes=processes, settings=Settings(mode="auto")
    ) as stage:
        session = await stage.session()
        await stage.send(session, "go")
        await until(lambda: bool(processes.runs))
        session_id, (attempt_id,) = session.session_id, session.ledger.attempts
        state = stage.crashed(folder / "left")
    model, network, client = RespondingModel(*steps), Network(), editor or ScriptedEditor()
    processes = FakeProcesses()
    processes.survivors_of[attempt_id] = survivors
    async with scripted_server(
        folder, state=state, run=2, models=model, editor=client, processes=processes, disk=disk, tools=[network.tool],
    ) as stage:  # fmt: skip
        session = await stage.opened(session_id)
        await session.set_mode(mode)
        assert [one.attempt_id for one in session.ledger.uncertain()] == [attempt_id]
        yield KilledCommand(stage, session, client, network, model, attempt_id)


WRITE = write("b.txt", "b")
CHECK_NETWORK = call("check_network")


async def test_model_settles_a_killed_command_and_continues_the_turn(tmp_path: Path) -> None:
    """Rows B5, B1, case 31: The write is held back, and nobody presses a button. A read and the check over the
    network are not held back. The model inspects, settles with its evidence and the permission that any effect
    needs, and goes on in the same turn."""
    editor = ScriptedEditor(None, "once", "once")  # nobody answers the question of the held-back call
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.txt").write_text("a\n")
    steps = (WRITE, read("a.txt"), CHECK_NETWORK, inspects, settles(), WRITE)
    async with killed_command(tmp_path, *steps, editor=editor) as killed:
        assert await killed.turn() == "done"
        assert states(killed.session)[1:] == ["refused", "returned", "returned", "returned", "returned", "returned"]
        assert outcomes(killed.session)[1] == ("refused", "recovery_required")
        assert killed.network.asked == 1
        assert killed.stage.content("b.txt") == "b"
        assert killed.settlements == [("model_confirmed", "model")]
        assert [one.by for one in killed.of(Inspection)] == ["user", "model"], "of the question, then of the model"
        assert len(editor.held_back_questions) == 1
        settling, writing = editor.questions
        assert settling.tool == "settle_effect"
        assert "The service says that it has it." in settling.text
        assert [option.id for option in settling.options] == ["once", "reject"]
        assert writing.tool == "write_file"
        assert killed.session.ledger.uncertain() == []
        assert killed.session.ledger.refused == []


async def test_settlement_without_an_editor_in_auto_mode_is_permitted(tmp_path: Path) -> None:
    """Rows B4, B5: Without an editor the reply names the attempt and the two tools. In `auto` they are enough."""
    editor = ScriptedEditor()
    editor.somebody = False
    async with killed_command(tmp_path, WRITE, inspects, settles(), WRITE, editor=editor, mode="auto") as killed:
        assert await killed.turn() == "done"
        assert killed.settlements == [("model_confirmed", "model")]
        assert killed.stage.content("b.txt") == "b"
        assert editor.questions == []
        assert editor.held_back_questions == []


async def test_settlement_without_an_editor_in_ask_mode_is_refused(tmp_path: Path) -> None:
    """Rows B5, C5: A settlement needs permission like any effect, so nothing is settled."""
    editor = ScriptedEditor()
    editor.somebody = False
    async with killed_command(tmp_path, WRITE, inspects, settles(), editor=editor) as killed:
        assert await killed.turn() == "done"
        assert outcomes(killed.session)[-1] == ("refused", "not_answered")
        assert killed.settlements == []


async def test_settlement_that_the_user_denies_leaves_it_uncertain(tmp_path: Path) -> None:
    """Row B5: The effect stays uncertain."""
    async with killed_command(tmp_path, WRITE, inspects, settles(), editor=ScriptedEditor(None, "reject")) as killed:
        assert await killed.turn() == "done"
        assert outcomes(killed.session)[-1] == ("refused", "denied")
        assert killed.settlements == []
        assert [one.attempt_id for one in killed.session.ledger.uncertain()] == [killed.attempt_id]


async def test_plan_mode_permits_inspection_and_refuses_settlement(tmp_path: Path) -> None:
    """Rows B5, G2: An inspection is a read. A settlement is an effect like any other."""
    async with killed_command(tmp_path, mode="plan") as killed:
        inspect_call = call("inspect_effect", attemptId=killed.attempt_id)
        killed.model.steps = [inspect_call, settles(attemptId=killed.attempt_id)]
        assert await killed.turn() == "done"
        assert [one.by for one in killed.of(Inspection)] == ["model"]
        assert outcomes(killed.session)[-1] == ("refused", "policy")
        assert killed.settlements == []


async def test_waive_by_the_model_is_recorded_as_the_models(tmp_path: Path) -> None:
    """Row B5: The journal records `waive` as the model's too, and the notice does not call it the user's."""
    async with killed_command(tmp_path, WRITE, inspects, settles("waive"), editor=ScriptedEditor(None)) as killed:
        assert await killed.turn() == "done"
        assert killed.settlements == [("waived", "model")]
        (notice,) = [said.text for said in killed.session.messages(99)[0] if said.role == "notice"]
        assert "waived by the model" in notice


async def test_inspection_reply_does_not_contain_the_stored_arguments(tmp_path: Path) -> None:
    """Row B5: The model gets the finding, but neither the arguments nor the command line of a survivor that holds
    them."""
    alive = [OrphanProcess(77, "start-77", f"/bin/sh -c {COMMAND}")]
    editor = ScriptedEditor(None)
    async with killed_command(tmp_path, WRITE, inspects, editor=editor, survivors=alive) as killed:
        assert await killed.turn() == "done"
        reply = killed.reply_to("inspect_effect")
        assert "77 sh" in reply
        assert "secret-plan" not in reply
        assert "secret-plan" not in killed.reply_to("write_file")


@pytest.mark.parametrize("which", ["old", "made up"])
async def test_settlement_without_the_latest_inspection_fails(tmp_path: Path, which: str) -> None:
    """Row B5, [I8]: The model names the inspection that it saw last, or is refused. The reply says why, and nothing
    is settled."""
    other: dict[str, Any] = {"inspectionId": "f" * 32}

    def again(request: ModelRequest) -> CallProposed:
        other["inspectionId"] = latest_match(request, r"Inspection ([0-9a-f]{32})") if which == "old" else "f" * 32
        return inspects(request)

    def settle(request: ModelRequest) -> CallProposed:
        return settles(**other)(request)

    async with killed_command(tmp_path, WRITE, inspects, again, settle, editor=ScriptedEditor(None)) as killed:
        assert await killed.turn() == "done"
        assert outcomes(killed.session)[-1] == ("failed", "inspectFirst")
        assert killed.settlements == []


async def test_second_settlement_fails_and_is_not_recorded(tmp_path: Path) -> None:
    """Row J14: The server refuses a second settlement and does not record it."""
    steps = (WRITE, inspects, settles("waive"), settles("confirm"))
    async with killed_command(tmp_path, *steps, editor=ScriptedEditor(None)) as killed:
        assert await killed.turn() == "done"
        assert outcomes(killed.session)[-1] == ("failed", "alreadyResolved")
        assert killed.settlements == [("waived", "model")]


async def test_unknown_attempt_is_neither_inspected_nor_settled(tmp_path: Path) -> None:
    """Row B5: Both tools say that there is no such attempt."""
    unknown = call("inspect_effect", attemptId="e" * 32)
    settle = call("settle_effect", attemptId="e" * 32, inspectionId="f" * 32, action="waive", evidence="none")
    async with killed_command(tmp_path, unknown, settle, editor=ScriptedEditor("once")) as killed:
        assert await killed.turn() == "done"
        assert "There is no attempt" in killed.reply_to("inspect_effect")
        assert outcomes(killed.session)[-1] == ("failed", "not_found")


@pytest.mark.parametrize(
    "fields",
    [
        {"action": "retry"}, {"action": "restore"}, {"action": "reject"}, {"evidence": " "}, {"evidence": "e" * 2001},
        {"attemptId": "1234"}, {"inspectionId": ""}, {"more": 1},
    ],
)  # fmt: skip
async def test_settle_effect_refuses_invalid_arguments(tmp_path: Path, fields: dict[str, Any]) -> None:
    """Row B5: The arguments are strict. The model can only confirm or waive, and says on what evidence."""
    fits = {"attemptId": "1" * 32, "inspectionId": "2" * 32, "action": "confirm", "evidence": "seen"}
    async with scripted_server(tmp_path, asks(call("settle_effect", **{**fits, **fields})), says("done")) as stage:
        session = await stage.session()
        await stage.say(session)
        (each,) = session.ledger.calls.values()
        assert each.reply is not None
        assert (each.reply.outcome, each.reply.reason) == ("refused", "bad_arguments")
        assert stage.editor.questions == []


@pytest.mark.parametrize("kind", ["inspection", "settlement"])
async def test_turn_counts_as_parked_during_inspection_and_settlement(tmp_path: Path, kind: str) -> None:
    """Rows B5, A3: While the step runs, the turn counts as parked, so that other resolutions can proceed."""
    disk = GatedDisk(carries(kind))
    editor = ScriptedEditor()
    editor.somebody = False
    steps = (WRITE, inspects, settles())
    async with killed_command(tmp_path, *steps, editor=editor, mode="auto", disk=disk) as killed:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(killed.turn)
            await disk.wait_reached()
            assert killed.session.turn is not None
            assert killed.session.turn.open_questions == 1
            assert killed.session.view().parked
            disk.go.set()
        assert killed.settlements == [("model_confirmed", "model")]


async def test_model_settles_an_effect_of_another_session(tmp_path: Path) -> None:
    """Rows B1, B5: The settlement goes to the journal of the other session, and what was held back here goes on."""
    async with killed_command(tmp_path, WRITE, inspects, settles(), WRITE, editor=ScriptedEditor(None)) as killed:
        here = await killed.stage.session("ask")
        assert (await killed.stage.say(here)).reason == "done"
        assert killed.settlements == [("model_confirmed", "model")]
        assert [record for record in on_disk(here) if isinstance(record, Settlement)] == []
        assert killed.stage.content("b.txt") == "b"
        assert any(isinstance(record, Permission) and record.tool == "settle_effect" for record in on_disk(here))


async def test_settlement_after_the_user_waived_fails(tmp_path: Path) -> None:
    """Row A6: Of two resolutions one wins. The reply tells the model, and the user's resolution stays the user's."""

    async def waive_as_user(killed: KilledCommand) -> None:
        seen = await resolve(killed.session, ResolutionRequest(killed.attempt_id, "inspect"))
        assert seen.inspection is not None
        chosen = ResolutionRequest(killed.attempt_id, "waive", inspection_id=seen.inspection.inspection_id)
        await resolve(killed.session, chosen)

    @attrs.define(eq=False)
    class WaivingEditor(ScriptedEditor):
        def __attrs_pre_init__(self) -> None:
            super().__init__(None, "once")

        async def ask_permission(self, question: Any) -> Any:
            await waive_as_user(killed)
            return await super().ask_permission(question)

    async with killed_command(tmp_path, WRITE, inspects, settles(), editor=WaivingEditor()) as killed:
        assert await killed.turn() == "done"
        assert outcomes(killed.session)[-1] == ("failed", "alreadyResolved")
        assert killed.settlements == [("waived", "user")]
