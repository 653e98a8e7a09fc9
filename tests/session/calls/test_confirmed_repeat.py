"""A call that the user confirmed is asked about until a repeat of it was allowed and has started (row B6, case 165)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.domain.records.identity import Arguments
from steadyhand.domain.records.record import Intent, Permission, Started
from steadyhand.session.service import prompt_queue
from steadyhand.session.session import Session
from steadyhand.tools.contract import CallContext, EvidenceResult, Preview, Refusal, ToolContext, ToolOutcome
from tests.support.editor import Park, Reaction, ScriptedEditor
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import Play, asks, call, says
from tests.support.scripted_tool import ScriptedPlan, ScriptedTool
from tests.support.session_state import on_disk, states

pytestmark = pytest.mark.anyio

DEPLOY = asks(call("deploy", to="x"))


class Deploy:
    """A tool without a check: its first run ends without a known outcome, the later ones return."""

    def __init__(self) -> None:
        self.runs = 0

    async def body(self, _: CallContext) -> ToolOutcome:
        self.runs += 1
        return ToolOutcome("unknown" if self.runs == 1 else "returned", "as the test says")

    @property
    def tool(self) -> ScriptedTool:
        return ScriptedTool("deploy", self.body, "opaque")


def turns(count: int) -> list[Play]:
    """Answers of the model for so many turns: each proposes the very same call."""
    return [answer for number in range(count) for answer in (DEPLOY, says(str(number)))]


async def confirm_first(server: InProcessServer, session: Session) -> None:
    """Run the call once, and confirm it at the next proposal, whose own question is answered next."""
    await server.say(session, "first")
    assert len(session.ledger.uncertain()) == 1


@pytest.mark.parametrize("no", ["reject", None, "session"], ids=["rejected", "dismissed", "never offered"])
async def test_no_to_a_confirmed_repeat_stays_a_question_in_auto(tmp_path: Path, no: Reaction) -> None:
    """Case 165, B6: the repeat is rejected twice, or not answered. Each later proposal of the same call is a question
    again, and the call never runs. Once it was allowed and ran, it is not asked about any more."""
    deploy, editor = Deploy(), ScriptedEditor("confirm", no, no, no, "once")
    async with scripted_server(tmp_path, *turns(6), tools=[deploy.tool], editor=editor) as server:
        session = await server.session("auto")
        await confirm_first(server, session)
        for number in (1, 2, 3):
            await server.say(session, "again")
            assert (len(editor.questions), deploy.runs) == (number, 1)
            assert "you confirmed the same call" in editor.questions[-1].text
        await server.say(session, "again")
        await server.say(session, "again")
        assert (len(editor.questions), deploy.runs) == (4, 3)
        assert states(session)[1:] == ["refused"] * 3 + ["returned"] * 2


async def test_no_to_a_confirmed_repeat_outlasts_a_restart(tmp_path: Path) -> None:
    """Case 165, B6, C5: the rejection is in the journal, and the next process asks about the same call again."""
    deploy, editor = Deploy(), ScriptedEditor("confirm", "reject")
    async with scripted_server(tmp_path, *turns(2), tools=[deploy.tool], editor=editor) as server:
        session = await server.session("auto")
        await confirm_first(server, session)
        await server.say(session, "again")
    later = ScriptedEditor("reject")
    async with scripted_server(tmp_path, *turns(1), tools=[deploy.tool], editor=later, run=2) as server:
        reopened = await server.opened(session.session_id)
        await server.say(reopened, "again")
        assert (len(later.questions), deploy.runs) == (1, 1)


async def test_cancelled_question_about_a_confirmed_repeat_clears_nothing(tmp_path: Path) -> None:
    """Case 165, B6: the turn is stopped while the question is open. There was no answer, so it is asked again."""
    park = Park()
    deploy, editor = Deploy(), ScriptedEditor("confirm", park, "reject")
    async with scripted_server(
        tmp_path, DEPLOY, says("0"), DEPLOY, DEPLOY, says("1"), tools=[deploy.tool], editor=editor
    ) as server:
        session = await server.session("auto")
        await confirm_first(server, session)
        accepted = await server.send(session, "again")
        await park.gate.wait_reached()
        await prompt_queue.cancel(session, accepted.turn_id)
        await server.ended(session, accepted.turn_id)
        await server.say(session, "again")
        assert (len(editor.questions), deploy.runs) == (2, 1)


async def test_confirmed_repeat_is_refused_while_nobody_can_be_asked(tmp_path: Path) -> None:
    """Case 165, B6: without an editor the repeat does not run, and the next editor is asked."""
    deploy, editor = Deploy(), ScriptedEditor("confirm", "reject", "reject")
    async with scripted_server(tmp_path, *turns(4), tools=[deploy.tool], editor=editor) as server:
        session = await server.session("auto")
        await confirm_first(server, session)
        await server.say(session, "again")
        editor.somebody = False
        await server.say(session, "again")
        editor.somebody = True
        await server.say(session, "again")
        assert (len(editor.questions), deploy.runs) == (2, 1)
        answers = [(one.answer, one.reason) for one in on_disk(session) if isinstance(one, Permission)]
        assert answers == [("reject", None), ("reject", "not_answered"), ("reject", None)]


async def test_allowed_repeat_that_never_started_is_asked_about_again(tmp_path: Path) -> None:
    """Case 165, B6, C5: the repeat was allowed, and refused before its start. It did not happen a second time, so the
    answer counts for nothing later."""
    deploy, editor = Deploy(), ScriptedEditor("confirm", "once", "reject")
    tool = RefusingAtLast("deploy", deploy.body, "opaque")
    async with scripted_server(tmp_path, *turns(3), tools=[tool], editor=editor) as server:
        session = await server.session("auto")
        await confirm_first(server, session)
        tool.refuses = True
        await server.say(session, "again")
        tool.refuses = False
        await server.say(session, "again")
        assert (len(editor.questions), deploy.runs) == (2, 1)


async def test_key_of_a_rejected_repeat_counts_the_confirmed_call_alone(tmp_path: Path) -> None:
    """Case 165, N2: a rejected repeat is no occurrence. The repeats before and after it have one key, which is not the
    confirmed call's."""
    deploy, editor = Deploy(), ScriptedEditor("confirm", "reject", "once")
    async with scripted_server(tmp_path, *turns(3), tools=[deploy.tool], editor=editor) as server:
        session = await server.session("auto")
        await confirm_first(server, session)
        await server.say(session, "again")
        await server.say(session, "again")
        first, rejected, allowed = [one for one in on_disk(session) if isinstance(one, Intent)]
        started = [one for one in on_disk(session) if isinstance(one, Started)]
        assert [one.attempt_id for one in started] == [first.attempt_id, allowed.attempt_id]
        assert rejected.key == first.key, "the intent was recorded before the confirmation"
        assert allowed.occurrence == 1
        assert allowed.key != first.key


class RefusingAtLast(ScriptedTool):
    """A tool whose last step before the start refuses on request."""

    refuses = False

    def prepare(self, arguments: Arguments, tool_context: ToolContext) -> ScriptedPlan | Refusal:
        plan = RefusingPlan if self.refuses else ScriptedPlan
        return plan(self.name, self.effect, self.body, self.outside)


class RefusingPlan(ScriptedPlan):
    """One call of it that does not start."""

    def gather(self, attempt_id: str, preview: Preview | None) -> EvidenceResult | Refusal:
        return Refusal("changed", "It changed meanwhile.")
