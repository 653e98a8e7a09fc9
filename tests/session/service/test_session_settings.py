"""What a sidebar requests of a session beside prompts: title, model, queue, export, checkpoints, usage, deletion."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from steadyhand.domain.errors import Refused
from steadyhand.domain.model.messages import ModelRequest, ProviderError, StreamPart
from steadyhand.domain.records.prompt import FileAttachment, Prompt
from steadyhand.domain.records.record import ModelName, ModelSet, Queue, Title, User
from steadyhand.domain.settings import Settings
from steadyhand.domain.views.notifications import QueueNotification, RecoveryNotification, SessionNotification
from steadyhand.domain.views.types import ChangedFile
from steadyhand.ports.model import ModelCandidate, ModelCheck, OfferedModel
from steadyhand.session.service import prompt_queue, session_settings
from steadyhand.session.service.models import check_model, list_models
from steadyhand.session.service.prompt_limits import PROMPT_BYTES_MAX
from steadyhand.session.service.session_settings import TITLE_CHARS_MAX
from steadyhand.session.session import Session
from steadyhand.tools.contract import CallContext, ToolOutcome
from tests.support.editor import ScriptedEditor
from tests.support.fakes import FakeProcesses
from tests.support.faults import GatedDisk, Operation
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import ScriptedModel, asks, call, says, write
from tests.support.scripted_tool import ScriptedTool
from tests.support.session_state import kinds, on_disk
from tests.support.waiting import Gate, until

pytestmark = pytest.mark.anyio


async def outcome_unknown(_: CallContext) -> ToolOutcome:
    return ToolOutcome("unknown", "Nobody knows.", "output_lost")


UNCERTAIN_TOOL = ScriptedTool("doubtful", outcome_unknown, "opaque")


def field_errors(refused: pytest.ExceptionInfo[Refused]) -> Any:
    return refused.value.more["errors"]


def session_exists(session: Session) -> bool:
    return Path(session.path).exists()


async def refusal_in_other_process(stage: InProcessServer, folder: Path, session: Session) -> str:
    """The kind that a rename is refused with where another process owns the session."""
    async with scripted_server(folder, run=2, processes=FakeProcesses()) as second:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("steadyhand.session.service.acquire.OWNER_WAIT_S_MAX", 0.05)
            read_only_session = await second.opened(session.session_id)
        with pytest.raises(Refused) as refused:
            await session_settings.rename(read_only_session, "theirs")
        with pytest.raises(Refused):
            await second.registry.delete(session.session_id, force=True)
        return refused.value.kind


# Titles (rows S3, K3, case 80).


async def test_user_title_is_never_overwritten(tmp_path: Path) -> None:
    """Rows S3, K3, case 80: A title of the user stays, whether it comes before the first prompt, while the first
    turn runs, or from an earlier process. An automatic title that comes later is dropped."""
    gate = Gate()
    async with scripted_server(tmp_path, [gate, *says("1")], says("2")) as stage:
        session = await stage.session()
        await stage.send(session, "an automatic title", "c1")
        await gate.wait_reached()
        assert (session.view().title, session.view().title_source) == ("an automatic title", "auto")
        view = await session_settings.rename(session, "  the user's\n title ")
        assert (view.title, view.title_source) == ("the user's title", "user")
        gate.go.set()
        await until(lambda: not session.view().busy)
        await session.log.append([Title(title="late and automatic", source="auto")], barrier=True)
        await stage.say(session, "another prompt", "c2")
        assert session.view().title == "the user's title"
        first = await stage.registry.create("given at creation", stage.root.as_uri())
        early = await stage.registry.open_session(first.session_id)
        await stage.say(early, "a prompt", "c1")
        assert (early.view().title, early.view().title_source) == ("given at creation", "user")
        assert [record.title for record in on_disk(early) if isinstance(record, Title)] == []
        state = stage.crashed(tmp_path / "later")
    async with scripted_server(tmp_path, state=state, run=2) as stage:
        again = await stage.opened(session.session_id)
        await stage.say(again, "yet another", "c3")
        assert (again.view().title, again.view().title_source) == ("the user's title", "user")
        listed = {view.session_id: view.title for view in await stage.registry.list_sessions()}
        assert listed[session.session_id] == "the user's title"


async def test_automatic_title_comes_once_with_the_first_prompt(tmp_path: Path) -> None:
    """Row K3: The automatic title is durable with the first prompt. A title that the user removed does not come
    back."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        await stage.say(session, "/help", "c0")
        assert session.view().title_source == "none"
        await stage.say(session, "  first line \nsecond", "c1")
        assert (session.view().title, session.view().title_source) == ("first line", "auto")
        assert kinds(session)[kinds(session).index("title") - 1] == "user"
        view = await session_settings.rename(session, " ")
        assert (view.title, view.title_source) == ("", "none")
        await stage.say(session, "not a title", "c2")
        assert session.view().title == ""


async def test_rename_is_bounded_works_in_a_turn_and_needs_ownership(tmp_path: Path) -> None:
    """Row S3: A rename is notified once, is bounded [I13], works beside a running turn, and is refused in a process
    that does not own the session."""
    gate = Gate()
    async with scripted_server(tmp_path, [gate]) as stage:
        session = await stage.session()
        await stage.send(session, "one", "c1")
        await gate.wait_reached()
        epoch = session.epoch
        await session_settings.rename(session, "x" * TITLE_CHARS_MAX)
        assert session.epoch == epoch
        titles = [one.session.title for one in stage.editor.told if isinstance(one, SessionNotification)]
        assert titles[-1] == "x" * TITLE_CHARS_MAX
        with pytest.raises(Refused) as refused:
            await session_settings.rename(session, "x" * (TITLE_CHARS_MAX + 1))
        assert field_errors(refused) == [{"path": "$.title", "message": f"longer than {TITLE_CHARS_MAX} characters"}]
        assert await refusal_in_other_process(stage, tmp_path, session) == "notOwner"
        assert session.view().title == "x" * TITLE_CHARS_MAX


async def test_rename_keeps_unresolved_effects(tmp_path: Path) -> None:
    """Row B8: A rename changes nothing about an unresolved effect."""
    async with scripted_server(tmp_path, asks(call("doubtful")), tools=[UNCERTAIN_TOOL]) as stage:
        session = await stage.session()
        await stage.say(session)
        before = session.snapshot().calls
        await session_settings.rename(session, "new")
        assert len(before) == 1
        assert session.snapshot().calls == before


# Deletion (rows S3, B8).


async def test_delete_removes_the_session_everywhere(tmp_path: Path) -> None:
    """Row S3: The session's folder is gone, no list holds it, its id is unknown, and no notification of it follows."""
    async with scripted_server(tmp_path) as stage:
        session, other = await stage.session(), await stage.session()
        await stage.say(session, "write", "c1")
        count_before = len(stage.editor.told)
        await stage.registry.delete(session.session_id, force=False)
        assert not session_exists(session)
        assert [view.session_id for view in await stage.registry.list_sessions()] == [other.session_id]
        for refused_call in (
            stage.registry.open(session.session_id, 1),
            stage.registry.delete(session.session_id, True),
        ):
            with pytest.raises(Refused) as refused:
                await refused_call
            assert refused.value.kind == "unknownSession"
        assert [one for one in stage.editor.told[count_before:] if isinstance(one, SessionNotification)] == []


async def test_delete_cancels_the_running_turn_first(tmp_path: Path) -> None:
    """Rows S2, S3: A running turn is cancelled first, and whoever waits for it gets its end."""
    gate = Gate()
    async with scripted_server(tmp_path, [gate]) as stage:
        session = await stage.session()
        accepted = await stage.send(session, "one", "c1")
        await gate.wait_reached()
        reasons: list[str] = []

        async def wait() -> None:
            reasons.append((await session.feed.wait_until_ended(accepted.turn_id)).reason)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.lowlevel.checkpoint()
            await stage.registry.delete(session.session_id, force=False)
        assert reasons == ["closed"]
        assert not session_exists(session)


async def test_delete_with_unresolved_effects_needs_force(tmp_path: Path) -> None:
    """Row B8: The server refuses with what is uncertain and changes nothing. With force the session is deleted, and
    its diagnostics with it."""
    async with scripted_server(tmp_path, asks(call("doubtful")), says("2"), tools=[UNCERTAIN_TOOL]) as stage:
        session = await stage.session()
        await stage.say(session)
        with pytest.raises(Refused) as refused:
            await stage.registry.delete(session.session_id, force=False)
        assert refused.value.kind == "recoveryRequired"
        uncertain: Any = refused.value.more["uncertain"]
        assert uncertain[0]["attemptId"] == session.snapshot().calls[0].attempt_id
        assert (await stage.say(session, "go on", "c2")).reason == "done"
        await stage.registry.delete(session.session_id, force=True)
        assert not session_exists(session)
        last = [one.snapshot for one in stage.editor.told if isinstance(one, RecoveryNotification)][-1]
        assert (last.session_id, last.calls) == (session.session_id, ())


async def test_delete_that_leaves_an_effect_uncertain_is_refused(tmp_path: Path) -> None:
    """Row B8: If the end of the turn leaves an effect uncertain, nothing is deleted, and the session works on."""
    gate = Gate()

    async def lost(running: CallContext) -> ToolOutcome:
        try:
            await gate.passed()
        except anyio.get_cancelled_exc_class():
            pass  # nobody knows how it ended
        return await outcome_unknown(running)

    slow = ScriptedTool("slow", lost, "opaque")
    async with scripted_server(tmp_path, asks(call("slow")), says("2"), tools=[slow]) as stage:
        session = await stage.session()
        await stage.send(session, "one", "c1")
        await gate.wait_reached()
        with pytest.raises(Refused) as refused:
            await stage.registry.delete(session.session_id, force=False)
        assert refused.value.kind == "recoveryRequired"
        assert session_exists(session)
        assert (await stage.say(session, "go on", "c2")).reason == "done"


async def test_delete_that_the_disk_refuses_changes_nothing(tmp_path: Path) -> None:
    """Row J7: The server refuses with one clear sentence, and the session is as it was."""

    def removes(operation: Operation) -> bool:
        return operation.verb == "unlink" and operation.target.endswith("journal.jsonl")

    disk = GatedDisk(removes, PermissionError(13, "Permission denied"), held=False)
    async with scripted_server(tmp_path, disk=disk) as stage:
        session = await stage.session()
        with pytest.raises(Refused) as refused:
            await stage.registry.delete(session.session_id, force=False)
        assert refused.value.kind == "journalBroken"
        assert "Make the state directory writable" in refused.value.message
        assert (await stage.say(session, "one", "c1")).reason == "done"


# Export (row G5).


async def test_export_holds_messages_calls_and_attachments(tmp_path: Path) -> None:
    """Row G5: Both exports hold what was said, called and attached, as it is shown. Nothing breaks the fences of the
    Markdown, and the JSON can be parsed."""
    content = "```\nfenced\n"
    async with scripted_server(tmp_path, asks(write("a.md", content), text="I write."), says("Done.")) as stage:
        session = await stage.session()
        sent = Prompt("write it", (FileAttachment("b.txt"),))
        accepted = await prompt_queue.submit(session, session.epoch, "c1", sent)
        await stage.ended(session, accepted.turn_id)
        await stage.say(session, "/help", "c2")
        text = session_settings.export_text(session, "markdown")
        assert text.startswith("# write it\n\n")
        assert "\n## You · " in text
        assert "\n\nwrite it\n\n- attached: b.txt\n" in text
        assert "\n### write_file: a.md: returned\n\n````json\n" in text
        order = [text.index(part) for part in ("I write.", "a.md: returned", "Done.", "/help: this list")]
        assert order == sorted(order)
        found = json.loads(session_settings.export_text(session, "json"))
        assert (found["format"], found["session"]["sessionId"]) == (1, session.session_id)
        assert [message["role"] for message in found["messages"]] == [
            "user", "assistant", "assistant", "user", "assistant",
        ]  # fmt: skip
        assert found["messages"][0]["attachments"] == [{"kind": "file", "path": "b.txt"}]
        assert json.loads(found["messages"][1]["calls"][0]["arguments"])["content"] == content


# The queue (row S4).


async def test_edited_queue_entry_keeps_its_place_and_runs_as_edited(tmp_path: Path) -> None:
    """Row S4, case 76: The new text takes the same place, is durable and notified. The turn runs with the new text."""
    gate = Gate()
    async with scripted_server(tmp_path, [gate, *says("1")], says("2"), says("3")) as stage:
        session = await stage.session()
        sent = [await stage.send(session, text, text) for text in ("one", "two", "three")]
        left = await prompt_queue.edit_queue(session, "two", "TWO", False)
        assert [item.text for item in left] == ["TWO", "three"]
        assert [
            notification.queue for notification in stage.editor.told if isinstance(notification, QueueNotification)
        ][-1] == left
        assert [record.text for record in on_disk(session) if isinstance(record, Queue)] == ["two", "three", "TWO"]
        gate.go.set()
        for each in sent:
            await stage.ended(session, each.turn_id)
        assert [record.text for record in on_disk(session) if isinstance(record, User)] == ["one", "TWO", "three"]
        again = await stage.send(session, "two", "two")
        assert again.duplicate, "the server knows the prompt by the text as sent"


async def test_removed_queue_entry_never_runs(tmp_path: Path) -> None:
    """Row S4: The prompt never runs, whoever waits for it gets its end, and it is not in the queue after a crash."""
    gate = Gate()
    async with scripted_server(tmp_path, [gate, *says("1")]) as stage:
        session = await stage.session()
        await stage.send(session, "one", "one")
        second = await stage.send(session, "two", "two")
        assert await prompt_queue.edit_queue(session, "two", None, True) == ()
        assert (await stage.ended(session, second.turn_id)).reason == "cancelled"
        assert prompt_queue.status_of(session, "two").reason == "cancelled"
        state = stage.crashed(tmp_path / "later")
        gate.go.set()
        await until(lambda: not session.view().busy)
        assert len(stage.model.requests) == 1
    async with scripted_server(tmp_path, state=state, run=2) as stage:
        assert (await stage.registry.open(session.session_id, 9)).queue == ()


@pytest.mark.parametrize(
    ("name", "text", "remove", "path"),
    [
        ("two", None, False, "$.text"),
        ("two", "new", True, "$.text"),
        ("two", "", False, "$.text"),
        ("two", " \n", False, "$.text"),
        ("two", "x" * (PROMPT_BYTES_MAX + 1), False, "$.text"),
        ("aside", "/help", False, "$.aside"),
        ("one", "new", False, "$.clientMessageId"),
        ("nobody", None, True, "$.clientMessageId"),
    ],
)
async def test_invalid_queue_edit_is_refused_and_changes_nothing(
    tmp_path: Path, name: str, text: str | None, remove: bool, path: str
) -> None:
    """Row S4: The server refuses neither or both of text and removal, a text that could not be sent, and a running
    or unknown prompt. The queue is as it was."""
    gate = Gate()
    async with scripted_server(tmp_path, [gate]) as stage:
        session = await stage.session()
        await stage.send(session, "one", "one")
        await stage.send(session, "two", "two")
        await prompt_queue.submit(session, session.epoch, "aside", Prompt("quick", aside=True))
        await gate.wait_reached()
        with pytest.raises(Refused) as refused:
            await prompt_queue.edit_queue(session, name, text, remove)
        assert [error["path"] for error in field_errors(refused)] == [path]
        assert [item.text for item in session.queue()] == ["two", "quick"]


# Models (row P1).


class OfferingModels:
    """`ports.Providers` that offers the given models, or raises the given error."""

    def __init__(self, offers: Sequence[OfferedModel] | ProviderError) -> None:
        self.offers = offers
        self.asked: list[tuple[str, str]] = []
        self.model = ScriptedModel()

    def __call__(self, provider: str, name: str) -> OfferingModels:
        self.asked.append((provider, name))
        return self

    def ask(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        return self.model.ask(request)

    def connect(self, settings: Callable[[], Settings], secret: Callable[[str], Awaitable[str | None]] | None) -> None:
        raise AssertionError("connected by the edge alone")

    async def list_models(self, provider: str) -> Sequence[OfferedModel]:
        if isinstance(self.offers, ProviderError):
            raise self.offers
        return self.offers

    async def learn_window(self, provider: str, name: str) -> int | None:
        return None

    async def check(self, candidate: ModelCandidate) -> ModelCheck:
        return ModelCheck(True, f"{candidate.provider} works.")

    async def diagnose(self, provider: str, name: str) -> Sequence[str]:
        return ()

    async def close(self) -> None:
        pass


PRACTICE = OfferedModel("practice", "practice")
CHOSEN = Settings(model=ModelName("openai", "large"))


async def test_model_list_holds_practice_model_and_chosen_provider(tmp_path: Path) -> None:
    """docs/protocol.md, model/list: The list holds the practice model always, and what the provider of the settings
    offers."""
    offers = [OfferedModel("openai", "large", 1000), OfferedModel("openai", "small")]
    async with scripted_server(tmp_path, models=OfferingModels(offers), settings=CHOSEN) as stage:
        assert await list_models(stage.registry.context) == (PRACTICE, *offers)
    async with scripted_server(tmp_path, models=OfferingModels(offers), run=2) as stage:
        assert await list_models(stage.registry.context) == (PRACTICE,), "no other provider is asked"


async def test_model_list_of_a_silent_provider_holds_the_chosen_name(tmp_path: Path) -> None:
    """docs/protocol.md, model/list: If the provider does not answer, the list holds the chosen name, and the user
    gets the provider's sentence."""
    trouble = OfferingModels(ProviderError("Nobody answers at the address."))
    async with scripted_server(tmp_path, models=trouble, settings=CHOSEN) as stage:
        assert await list_models(stage.registry.context) == (PRACTICE, OfferedModel("openai", "large"))
        assert stage.editor.messages == ["Nobody answers at the address."]


async def test_model_check_asks_the_provider_and_changes_nothing(tmp_path: Path) -> None:
    """P7: the check goes to the provider of its params, whatever the settings say; without providers it says so."""
    async with scripted_server(tmp_path, models=OfferingModels([]), settings=CHOSEN) as stage:
        context = stage.registry.context
        before = context.settings
        assert await check_model(context, ModelCandidate("vllm")) == ModelCheck(True, "vllm works.")
        assert context.settings == before
    async with scripted_server(tmp_path, run=2) as stage:
        assert not (await check_model(stage.registry.context, ModelCandidate("vllm"))).ok


async def test_chosen_model_counts_from_next_request_and_after_restart(tmp_path: Path) -> None:
    """docs/protocol.md, session/setModel: The choice counts from the next request on, is recorded once, and survives
    a restart. An unknown provider is refused with its field."""
    models = OfferingModels([])
    async with scripted_server(tmp_path, models=models) as stage:
        session = await stage.session()
        await stage.say(session, "one", "c1")
        view = await session_settings.set_model(session, "openai", "large")
        assert view.model == ModelName("openai", "large")
        await session_settings.set_model(session, "openai", "large")
        assert [record for record in on_disk(session) if isinstance(record, ModelSet)] == [
            ModelSet(provider="openai", name="large")
        ]
        await stage.say(session, "two", "c2")
        assert models.asked == [("practice", "practice"), ("openai", "large")]
        with pytest.raises(Refused) as refused:
            await session_settings.set_model(session, "nobody", "large")
        assert refused.value.kind == "invalidParams"
        assert [error["path"] for error in field_errors(refused)] == ["$.provider"]
        notified_models = [one.session.model for one in stage.editor.told if isinstance(one, SessionNotification)]
        assert notified_models[-1] == ModelName("openai", "large")
        state = stage.crashed(tmp_path / "later")
    async with scripted_server(tmp_path, state=state, run=2, models=models) as stage:
        again = await stage.opened(session.session_id)
        assert again.view().model == ModelName("openai", "large")


# Checkpoints and usage (rows W8, U1).


async def test_checkpoints_are_the_turns_that_changed_files(tmp_path: Path) -> None:
    """Rows W8, G6: The oldest comes first, each with its prompt and the files that really changed. A turn that
    changed none, a refused write and a slash command are not among them."""
    async with scripted_server(
        tmp_path,
        asks(write("a.txt", "1")), says("1"),
        says("only words"),
        asks(write("a.txt", "2"), call("move_file", **{"from": "b.txt", "to": "c.txt"})), says("3"),
        asks(write("d.txt", "4")), says("4"),
        editor=ScriptedEditor("once", "once", "once", "reject"),
    ) as stage:  # fmt: skip
        (stage.root / "b.txt").write_text("b")
        session = await stage.session()
        for name in ("first", "second", "third", "fourth"):
            await stage.say(session, name, name)
        await stage.say(session, "/help", "c9")
        found = await session_settings.checkpoints(session)
        assert [(turn.prompt, turn.files) for turn in found] == [
            ("first", (ChangedFile("a.txt", "created"),)),
            ("third", (ChangedFile("a.txt", "modified"), ChangedFile("c.txt", "moved", "b.txt"))),
        ]
        assert [turn.turn_id for turn in found] == [
            prompt_queue.status_of(session, name).turn_id for name in ("first", "third")
        ]
        state = stage.crashed(tmp_path / "later")
    async with scripted_server(tmp_path, state=state, run=2) as stage:
        assert await session_settings.checkpoints(await stage.opened(session.session_id)) == found


async def test_usage_without_a_request_is_zero_and_complete(tmp_path: Path) -> None:
    """Row U1: All counts are zero, and nothing is missing from them."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        view = session_settings.usage(session)
        assert (view.billed.input, view.billed.output, view.context, view.complete) == (0, 0, 0, True)
