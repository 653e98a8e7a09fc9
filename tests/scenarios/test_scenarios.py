"""Scenarios: each `*.txt` here is documentation and a test. The test plays it line by line on a server in this process,
with the practice model.

    # …                                 what the scenario shows; the first paragraph cites rows and cases
    mode MODE                           sets the mode of the session
    file NAME: TEXT                     another program writes the file, also while a question is open
    file NAME is: TEXT                  the file on disk has this content now; `file NAME is not there`
    file NAME is gone                   another program removes the file
    link NAME: TARGET                   another program makes the link; `link NAME is: TARGET`
    command CMD: WORDS                  what the command does: `prints TEXT`, `exits N`, `hangs`, `writes NAME`,
                                        `outlives` (the kill of the server)
    retry is on                         the setting is on, in this process and those that follow
    this system confines by KIND        what its sandbox is: `bubblewrap`, `landlock` or `nothing`; at first it is off
    the sandbox is MODE                 the setting `sandbox.mode`
    hold before "KIND" is recorded      the disk stops there, so that a kill can come at that moment
    hold before NAME is replaced        or `moved`, `removed`
    it is held                          waits until the disk has stopped
    model: TOOL {JSON}                  what the model calls when it is asked next, one line after the other; ATTEMPT,
                                        INSPECTION and JOB, here and in a prompt, stand for the ids of the scenario
    you: TEXT                           sends a prompt; `\\n` separates its lines
    you steer: TEXT                     sends a text for the turn that was sent last
    you stop                            stops the running turn; `you resume` the queue; `you close` the session;
                                        `you fork` it: what follows is about the fork
    asked TITLE -> ANSWER               answers the open question; ANSWER: once, session, reject NOTE, waive, nothing, …
    asked TITLE                         the question stays open; for TITLE the tool's name is enough
    the model asks: TEXT -> ANSWER      answers the model's question to the user
    kill                                the process is killed; a new one opens the session
    answer: TEXT                        the turn ends, and its text contains TEXT
    ends: REASON                        the turn ends with this reason
    changed: NAME, …                    the files that the turn really changed; `changed: nothing`
    call TITLE: STATE                   the state of the last call of that title
    reply: TEXT                         the reply of the call named last contains TEXT
    plan: TEXT (STATE), …               the plan that the model shows
    told: TEXT                          a notice to model and user contains TEXT
    offered: ACTION, …                  the actions that the uncertain effect offers now; `offered: nothing`
    the model is asked: TEXT, …         the last request: the texts of the user, and the state of each reply
    queue: TEXT, …                      the queued prompts; `(paused)` after a paused one; `queue: nothing`
    uncertain: TITLE, …                 the uncertain effects; `uncertain: nothing`
    settled: TITLE = WORD               the effect is settled with this word
    shown: TEXT                         a message to the user contains TEXT
    ran: CMD, …                         the commands that really started, in all processes
    confined by KIND                    what confined the command that started last; `confined by nothing`
    seen changed: NAME, …               the files that changed while commands of the turn ran; `seen changed: nothing`

Any other line fails: a scenario that is not understood proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import attrs
import pytest

from steadyhand.adapters.models.practice import PracticeModel
from steadyhand.domain.model.messages import (
    AssistantMessage,
    CallProposed,
    Finish,
    ModelRequest,
    StreamPart,
    TextPart,
    UserMessage,
)
from steadyhand.domain.permissions.child_environment import ATTEMPT_MARK_NAME
from steadyhand.domain.records.record import Notice, Settlement
from steadyhand.domain.settings import SandboxSettings, Settings
from steadyhand.domain.views.questions import UserQuestion
from steadyhand.domain.views.render import answer_text, call_view
from steadyhand.domain.views.types import CallView, PlanChanged, TurnEvent
from steadyhand.ports.processes import Finished, OrphanProcess
from steadyhand.ports.sandbox import SandboxKind, SandboxStatus
from steadyhand.session.service import prompt_queue
from steadyhand.session.service.fork import fork
from steadyhand.session.service.steer import steer
from steadyhand.session.session import Session
from steadyhand.tools.contract import NOT_CONFINED
from tests.support.editor import Park, ScriptedEditor
from tests.support.fakes import FakeProcesses, Script
from tests.support.faults import GatedDisk, Operation
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.session_state import on_disk
from tests.support.waiting import until

SCENARIOS = sorted(Path(__file__).parent.glob("*.txt"))
questions_max = 20


def split_list(text: str) -> list[str]:
    return [] if text == "nothing" else text.split(", ")


class ScenarioModel:
    """Makes the calls of the scenario, one call an answer, and is the practice model otherwise."""

    def __init__(
        self, calls: list[str], replace_ids: Callable[[str], str], requests: list[ModelRequest] | None = None
    ) -> None:
        self.calls = calls
        self.requests = requests if requests is not None else []
        self.replace_ids = replace_ids
        self.called = False

    async def ask(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        self.requests.append(request)
        if self.calls:
            tool, _, arguments = self.calls.pop(0).partition(" ")
            self.called = True
            yield CallProposed(tool, self.replace_ids(arguments))
            yield Finish("calls")
        elif self.called:
            self.called = False
            yield TextPart("That is it.")
            yield Finish("stop")
        else:
            async for part in PracticeModel().ask(request):
                yield part


class ScenarioEditor(ScriptedEditor):
    """An editor that the model itself can ask."""

    def __init__(self, *parks: Park) -> None:
        super().__init__(*parks)
        self.user_question: UserQuestion | None = None
        self.is_answered = anyio.Event()
        self.answer_text = ""

    async def ask_user(self, question: UserQuestion) -> str | None:
        self.user_question = question
        await self.is_answered.wait()
        return self.answer_text


@attrs.define(eq=False)
class ProcessRun:
    """One process of the scenario."""

    stage: InProcessServer
    session: Session
    disk: GatedDisk
    parks: list[Park]
    answered_count: int = 0


class ScenarioPlayer:
    """Plays the lines of one scenario."""

    def __init__(self, folder: Path, exit_stack: AsyncExitStack) -> None:
        self.folder = folder
        self.exit_stack = exit_stack
        self.runs: list[ProcessRun] = []
        self.processes: list[FakeProcesses] = []
        self.scripts: dict[str, Script] = {}
        self.outliving: set[str] = set()
        self.calls: list[str] = []
        self.requests: list[ModelRequest] = []
        self.settings = Settings()
        self.sandbox = NOT_CONFINED
        self.found: SandboxStatus | None = None
        self.holds: Callable[[Operation], bool] = lambda _: False
        self.turn: str | None = None
        self.call: CallView | None = None

    @property
    def current(self) -> ProcessRun:
        return self.runs[-1]

    async def start_process(self) -> None:
        """Start the first process, and the next one after each kill."""
        number = len(self.runs) + 1
        state = self.current.stage.crashed(self.folder / f"life{number}") if self.runs else None
        parks = [Park() for _ in range(questions_max)]
        disk = GatedDisk(self.holds)
        processes = FakeProcesses(self.scripts, environment={"PATH": "/usr/bin:/bin"})
        processes.survivors_of = self.survivors()
        processes.sandbox.found = self.found or processes.sandbox.found
        model = ScenarioModel(self.calls, self.replace_ids, self.requests)
        self.processes.append(processes)
        stage = await self.exit_stack.enter_async_context(
            scripted_server(
                self.folder,
                editor=ScenarioEditor(*parks),
                disk=disk,
                processes=processes,
                state=state,
                run=number,
                models=lambda provider, name: model,
                settings=self.settings,
                sandbox=self.sandbox,
            )
        )
        self.exit_stack.callback(disk.go.set)
        session = await stage.opened(self.current.session.session_id) if self.runs else await stage.session()
        self.runs.append(ProcessRun(stage, session, disk, parks))

    def survivors(self) -> dict[str, Sequence[OrphanProcess] | None]:
        """What still runs after a kill, by its mark."""
        runs = [run for processes in self.processes for run in processes.runs if run.command in self.outliving]
        found = enumerate(runs, 4001)
        return {run.environment[ATTEMPT_MARK_NAME]: [OrphanProcess(pid, "then", run.command)] for pid, run in found}

    def replace_ids(self, arguments: str) -> str:
        """The text with the ids of the scenario in the place of their words."""
        uncertain, jobs = self.current.session.ledger.uncertain(), list(self.current.session.ledger.jobs)
        if uncertain:
            arguments = arguments.replace("ATTEMPT", uncertain[0].attempt_id)
            if (latest := uncertain[0].inspection) is not None:
                arguments = arguments.replace("INSPECTION", latest.inspection_id)
        return arguments.replace("JOB", jobs[-1]) if jobs else arguments

    async def play(self, line: str) -> None:
        for pattern, act in self.lines():
            found = re.fullmatch(pattern, line)
            if found:
                await act(*(part.replace("\\n", "\n") if part else "" for part in found.groups()))
                return
        pytest.fail(f"a line nobody understands: {line}")

    def lines(self) -> list[tuple[str, Callable[..., Awaitable[None]]]]:
        return [
            (r"mode (\w+)", self.set_mode),
            (r"file (\S+): (.*)", self.write_file),
            (r"file (\S+) is: (.*)", self.check_file),
            (r"file (\S+) is not there", self.check_file_absent),
            (r"file (\S+) is gone", self.remove_file),
            (r"link (\S+): (.*)", self.create_link),
            (r"link (\S+) is: (.*)", self.check_link),
            (r"it is held", self.wait_for_pause),
            (r"retry is on", self.turn_retry_on),
            (r"this system confines by (\w+)", self.set_sandbox_kind),
            (r"the sandbox is (\w+)", self.set_sandbox_mode),
            (r"confined by (\w+)", self.check_confinement),
            (r"seen changed: (.*)", self.check_seen_changes),
            (r"model: (\w+ \{.*\})", self.queue_model_call),
            (r"the model asks: (.+?) -> (.*)", self.answer_model_question),
            (r"command (.+?): (.*)", self.set_command),
            (r'hold before "(\w+)" is recorded', self.hold_before_record),
            (r"hold before (\S+) is (replaced|moved|removed)", self.hold_before_change),
            (r"you: (.*)", self.send_prompt),
            (r"you steer: (.*)", self.steer),
            (r"the model is asked: (.*)", self.check_last_request),
            (r"you (stop|resume|close|fork)", self.act_as_user),
            (r"asked (.+?)(?: -> (.*))?", self.answer_question),
            (r"kill", self.wait_for_pause),
            (r"answer: (.*)", self.check_turn_text),
            (r"ends: (\w+)", self.check_end_reason),
            (r"changed: (.*)", self.check_changed_files),
            (r"call (.+): (\w+)", self.check_call_state),
            (r"reply: (.*)", self.check_reply),
            (r"plan: (.*)", self.check_plan),
            (r"told: (.*)", self.check_notice),
            (r"offered: (.*)", self.check_offered_actions),
            (r"queue: (.*)", self.check_queue),
            (r"uncertain: (.*)", self.check_uncertain),
            (r"settled: (.+) = (\w+)", self.check_settlement),
            (r"shown: (.*)", self.check_message),
            (r"ran: (.*)", self.check_started_commands),
        ]

    # Lines that do something.

    async def set_mode(self, mode: str) -> None:
        await self.current.session.set_mode(mode)  # type: ignore[arg-type]  # a wrong word fails the scenario

    async def write_file(self, name: str, text: str) -> None:
        path = self.current.stage.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    async def set_command(self, command: str, words: str) -> None:
        script = Script()
        for word in words.split(", "):
            match word.split(" ", 1):
                case ["prints", text]:
                    script.output = [text.encode()]
                case ["exits", code]:
                    script.finished = Finished(int(code), None, False, (), True)
                case ["hangs"]:
                    script.hangs, script.started = True, anyio.Event()
                case ["outlives"]:
                    self.outliving.add(command)
                case ["writes", name]:
                    path = self.current.stage.root / name
                    script.effect = lambda _, path=path: path.write_text("x") and None
                case _:
                    pytest.fail(f"a command cannot do this: {word}")
        self.scripts[command] = script
        self.processes[-1].scripts[command] = script

    async def hold_before_record(self, kind: str) -> None:
        self.current.disk.matches = lambda operation: kind in operation.kinds

    async def hold_before_change(self, name: str, change: str) -> None:
        def is_it(operation: Operation) -> bool:
            match change:
                case "replaced":
                    verbs = ("exchange", "rename", "rename_new")
                    return operation.verb in verbs and operation.target.endswith(f"-> {name}")
                case "moved":
                    return operation.verb == "rename_to" and operation.target.startswith(f"{name} ->")
                case _:
                    return operation.verb == "rename_new" and operation.target.startswith(f"{name} ->")

        self.current.disk.matches = is_it

    async def remove_file(self, name: str) -> None:
        (self.current.stage.root / name).unlink()

    async def create_link(self, name: str, target: str) -> None:
        (self.current.stage.root / name).symlink_to(target)

    async def turn_retry_on(self) -> None:
        self.settings = attrs.evolve(self.settings, retry=True)
        self.current.stage.registry.context.settings = attrs.evolve(self.settings, sandbox=self.sandbox)

    async def set_sandbox_kind(self, kind: str) -> None:
        kinds: dict[str, SandboxKind] = {"bubblewrap": "bubblewrap", "landlock": "landlock", "nothing": "none"}
        found = kinds[kind]
        why = "This system has no sandbox." if found == "none" else None
        self.found = SandboxStatus(found, found, is_sealable=False, landlock_abi=0, why=why)
        self.processes[-1].sandbox.found = self.found
        await self.set_sandbox_mode("auto")

    async def set_sandbox_mode(self, mode: str) -> None:
        self.sandbox = SandboxSettings(mode)  # type: ignore[arg-type]  # a wrong word fails the scenario
        context = self.current.stage.registry.context
        context.settings = attrs.evolve(context.settings, sandbox=self.sandbox)

    async def queue_model_call(self, call: str) -> None:
        self.calls.append(call)

    async def answer_model_question(self, question: str, answer: str) -> None:
        editor = self.current.stage.editor
        assert isinstance(editor, ScenarioEditor)
        await until(lambda: editor.user_question is not None)
        assert editor.user_question is not None
        assert editor.user_question.question == question
        editor.answer_text = answer
        editor.is_answered.set()

    async def send_prompt(self, text: str) -> None:
        self.turn = (await self.current.stage.send(self.current.session, self.replace_ids(text))).turn_id

    async def steer(self, text: str) -> None:
        session, turn_id = self.current.session, self.turn
        assert session.epoch is not None
        assert turn_id is not None
        await steer(session, session.epoch, turn_id, f"steer-{len(session.ledger.prompts)}", text)

    async def act_as_user(self, what: str) -> None:
        session = self.current.session
        match what:
            case "stop":
                await self.wait_for_pause()
                assert await prompt_queue.cancel(session, None), "no turn runs"
            case "resume":
                assert session.epoch is not None
                await prompt_queue.resume(session, session.epoch)
            case "fork":
                made = await fork(self.current.stage.registry, session.session_id, None, None)
                self.current.session = await self.current.stage.opened(made.session_id)
            case _:
                await self.current.stage.registry.close(session.session_id)
                self.current.session = await self.current.stage.opened(session.session_id)

    async def answer_question(self, title: str, answer: str) -> None:
        park = self.current.parks[self.current.answered_count]
        question = await park.wait_any()
        assert title in (question.title, question.tool)
        if answer:
            self.current.answered_count += 1
            option, _, note = answer.partition(" ")
            park.answer_with(None if option == "nothing" else option, note or None)

    async def wait_for_pause(self) -> None:
        """Wait until the turn is held, asks, or runs a command that hangs."""
        current = self.current
        hanging = [script.started for script in self.scripts.values() if script.hangs and script.started]
        await until(
            lambda: (
                current.disk.reached.is_set()
                or current.parks[current.answered_count].gate.reached.is_set()
                or any(event.is_set() for event in hanging)
            )
        )

    # Lines that check something.

    async def check_file(self, name: str, text: str) -> None:
        assert self.current.stage.content(name) == text

    async def check_file_absent(self, name: str) -> None:
        assert self.current.stage.content(name) is None

    async def check_turn_text(self, text: str) -> None:
        assert self.turn is not None
        await self.current.stage.ended(self.current.session, self.turn)
        assert text in answer_text(self.current.session.ledger, self.turn)

    async def check_confinement(self, kind: str) -> None:
        runs = [run for processes in self.processes for run in processes.runs]
        confinement = runs[-1].confinement
        assert ("nothing" if confinement is None else confinement.kind) == kind

    async def check_seen_changes(self, names: str) -> None:
        assert self.turn is not None
        ended = await self.current.stage.ended(self.current.session, self.turn)
        assert [seen.path for seen in ended.during or ()] == split_list(names)

    async def check_last_request(self, texts: str) -> None:
        shown = [
            message.text if isinstance(message, UserMessage) else f"({message.state})"
            for message in self.requests[-1].messages
            if not isinstance(message, AssistantMessage)
        ]
        assert shown == split_list(texts)

    async def check_end_reason(self, reason: str) -> None:
        assert self.turn is not None
        assert (await self.current.stage.ended(self.current.session, self.turn)).reason == reason

    async def check_changed_files(self, names: str) -> None:
        assert self.turn is not None
        ended = await self.current.stage.ended(self.current.session, self.turn)
        assert [change.path for change in ended.changed] == split_list(names)

    async def check_call_state(self, title: str, state: str) -> None:
        with anyio.move_on_after(30):
            await until(lambda: (found := self.last_call(title)) is not None and found.state == state)
        self.call = self.last_call(title)
        assert self.call is not None, "no call has that title"
        assert self.call.state == state

    def last_call(self, title: str) -> CallView | None:
        session = self.current.session
        views = [call_view(call, session.live, session.tool_context.root) for call in session.ledger.calls.values()]
        return next((view for view in reversed(views) if view.title == title), None)

    async def check_reply(self, text: str) -> None:
        assert self.call is not None
        assert self.call.reply is not None
        assert text in self.call.reply.text

    async def check_plan(self, items: str) -> None:
        events = [
            notification.event for notification in self.current.stage.editor.told if isinstance(notification, TurnEvent)
        ]
        plans = [event for event in events if isinstance(event, PlanChanged)]
        assert [f"{item.text} ({item.state})" for item in plans[-1].items] == split_list(items)

    async def check_notice(self, text: str) -> None:
        notices = [record.text for record in on_disk(self.current.session) if isinstance(record, Notice)]
        assert any(text in notice for notice in notices), notices

    async def check_offered_actions(self, actions: str) -> None:
        snapshot = self.current.session.snapshot()
        assert [action for view in (*snapshot.calls, *snapshot.settled) for action in view.actions] == split_list(
            actions
        )

    async def check_link(self, name: str, target: str) -> None:
        assert str((self.current.stage.root / name).readlink()) == target

    async def check_queue(self, texts: str) -> None:
        found = [item.text + (" (paused)" if item.paused else "") for item in self.current.session.queue()]
        assert found == split_list(texts)

    async def check_uncertain(self, titles: str) -> None:
        assert [attempt.title for attempt in self.current.session.ledger.uncertain()] == split_list(titles)

    async def check_settlement(self, title: str, word: str) -> None:
        attempts = self.current.session.ledger.attempts
        found = [
            (attempts[record.attempt_id].title, record.settled)
            for record in on_disk(self.current.session)
            if isinstance(record, Settlement)
        ]
        assert (title, word) in found, found

    async def check_message(self, text: str) -> None:
        assert any(text in message for message in self.current.stage.editor.messages), (
            self.current.stage.editor.messages
        )

    async def check_started_commands(self, commands: str) -> None:
        assert [run.command for processes in self.processes for run in processes.runs] == split_list(commands)


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.anyio
@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
async def test_scenario_comes_true_line_by_line(tmp_path: Path, path: Path) -> None:
    """Each line of the scenario comes true. The first lines of its file say what it proves."""
    async with AsyncExitStack() as exit_stack:
        player = ScenarioPlayer(tmp_path, exit_stack)
        await player.start_process()
        for number, line in enumerate(lines_of(path), 1):
            if line.strip() and not line.startswith("#"):
                try:
                    with anyio.fail_after(60):
                        await player.play(line.strip())
                except (AssertionError, TimeoutError) as failed:
                    raise AssertionError(f"{path.name}:{number}: {line.strip()}\n{failed}") from failed
                if line.strip() == "kill":  # the new process outlives the limit of its line
                    await player.start_process()


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario_cites_what_it_proves_and_checks_something(path: Path) -> None:
    """A scenario begins with what it shows and the rows or cases it proves, and checks at least three things."""
    text = path.read_text(encoding="utf-8")
    head = text.split("\n\n")[0]
    assert all(line.startswith("# ") for line in head.splitlines())
    assert re.search(r"\b[A-Z]\d+\b|case \d+", head)
    words = "answer|ends|changed|reply|queue|uncertain|settled|shown|told|plan|offered|ran"
    expectations = re.findall(rf"^(?:{words}|call .*|file .* is.*|link .* is.*)", text, re.M)
    assert len(expectations) >= 3


def test_scenarios_exist() -> None:
    """An empty folder would prove nothing."""
    assert len(SCENARIOS) >= 10
