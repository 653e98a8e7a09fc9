"""Stories: each `*.txt` here is read as documentation and played, line by line, on a house with the practice model.

    # …                                 what the story shows; the first paragraph cites rows and cases
    mode MODE                           of the session
    file NAME: TEXT                     somebody writes a file, also while a question is open
    file NAME is: TEXT                  what is on disk now; `file NAME is not there`
    file NAME is gone                   somebody removes it
    link NAME: TARGET                   somebody makes one; `link NAME is: TARGET`
    command CMD: WORDS                  what a command does: `prints TEXT`, `exits N`, `hangs`, `writes NAME`,
                                        `outlives` (the kill of the server)
    retry is on                         as by the setting, in this life and those that follow
    hold before "KIND" is recorded      the disk stops there, so that a kill can fall into that moment
    hold before NAME is replaced        or `moved`, `removed`
    it is held                          that moment has come
    model: TOOL {JSON}                  what the model calls when it is asked next, one line after the other; ATTEMPT,
                                        INSPECTION and JOB, here and in a prompt, are those of the story
    you: TEXT                           a prompt; `\\n` parts its lines
    you stop                            the running turn; `you resume` the queue; `you close` the session
    asked TITLE -> ANSWER               the question that is open; ANSWER: once, session, reject NOTE, waive, nothing, …
    asked TITLE                         it stays open; for TITLE the tool's name is enough
    the model asks: TEXT -> ANSWER      its question to the person
    kill                                the process is gone; a new one opens the session
    answer: TEXT                        the turn ends, and its text holds TEXT
    ends: REASON                        the turn ends so
    changed: NAME, …                    the files it really changed; `changed: nothing`
    call TITLE: STATE                   the last call of that title
    reply: TEXT                         the reply of the call named last holds TEXT
    plan: TEXT (STATE), …               what the model shows of its plan
    told: TEXT                          a notice to model and person holds TEXT
    offered: ACTION, …                  what can be done about the uncertain effect now; `offered: nothing`
    queue: TEXT, …                      what waits; `(paused)` behind it; `queue: nothing`
    uncertain: TITLE, …                 `uncertain: nothing`
    settled: TITLE = WORD
    shown: TEXT                         a message to the person holds TEXT
    ran: CMD, …                         the commands that were really started, in all lives

Everything else fails: a story that is not understood proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import attrs
import pytest

from steadyhand.adapters.model_practice import PracticeModel
from steadyhand.core.environment import attempt_mark_name
from steadyhand.core.model import CallProposed, Finish, ModelRequest, StreamPart, TextPart
from steadyhand.core.questions import UserQuestion
from steadyhand.core.record import Notice, Settlement
from steadyhand.core.settings import Settings
from steadyhand.core.show import call_view, last_text
from steadyhand.core.told import TurnEvent
from steadyhand.core.views import CallView, PlanTold
from steadyhand.ports import Finished, Survivor
from steadyhand.session import prompts
from steadyhand.session.owner import Owner
from tests.support.disks import Operation
from tests.support.fakes import FakeProcesses, Script
from tests.support.scripted import GatedDisk, Park, ScriptedEditor, Stage, on_disk, staged, until

STORIES = sorted(Path(__file__).parent.glob("*.txt"))
questions_max = 20


def listed(text: str) -> list[str]:
    return [] if text == "nothing" else text.split(", ")


class StoryModel:
    """Calls what the story says, one call an answer, and is the practice model otherwise."""

    def __init__(self, calls: list[str], spelled: Callable[[str], str]) -> None:
        self.calls = calls
        self.spelled = spelled
        self.called = False

    async def ask(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        if self.calls:
            tool, _, arguments = self.calls.pop(0).partition(" ")
            self.called = True
            yield CallProposed(tool, self.spelled(arguments))
            yield Finish("calls")
        elif self.called:
            self.called = False
            yield TextPart("That is it.")
            yield Finish("stop")
        else:
            async for part in PracticeModel().ask(request):
                yield part


class StoryEditor(ScriptedEditor):
    """Also asked by the model itself."""

    def __init__(self, *parks: Park) -> None:
        super().__init__(*parks)
        self.asked: UserQuestion | None = None
        self.answered = anyio.Event()
        self.answer = ""

    async def ask_user(self, question: UserQuestion) -> str | None:
        self.asked = question
        await self.answered.wait()
        return self.answer


@attrs.define(eq=False)
class Life:
    """One process of the story."""

    stage: Stage
    owner: Owner
    disk: GatedDisk
    parks: list[Park]
    asked: int = 0


class Player:
    """Plays the lines of one story."""

    def __init__(self, folder: Path, lives: AsyncExitStack) -> None:
        self.folder = folder
        self.lives = lives
        self.all: list[Life] = []
        self.processes: list[FakeProcesses] = []
        self.scripts: dict[str, Script] = {}
        self.outliving: set[str] = set()
        self.calls: list[str] = []
        self.settings = Settings()
        self.holds: Callable[[Operation], bool] = lambda _: False
        self.turn: str | None = None
        self.call: CallView | None = None

    @property
    def now(self) -> Life:
        return self.all[-1]

    async def begin(self) -> None:
        """The first life, and each after a kill."""
        number = len(self.all) + 1
        state = self.now.stage.crashed(self.folder / f"life{number}") if self.all else None
        parks = [Park() for _ in range(questions_max)]
        disk = GatedDisk(self.holds)
        processes = FakeProcesses(self.scripts, environment={"PATH": "/usr/bin:/bin"})
        processes.survivors_of = self.left_over()
        model = StoryModel(self.calls, self.spelled)
        self.processes.append(processes)
        stage = await self.lives.enter_async_context(
            staged(
                self.folder,
                editor=StoryEditor(*parks),
                disk=disk,
                processes=processes,
                state=state,
                life=number,
                models=lambda provider, name: model,
                settings=self.settings,
            )
        )
        self.lives.callback(disk.go.set)
        owner = await stage.opened(self.now.owner.session_id) if self.all else await stage.session()
        self.all.append(Life(stage, owner, disk, parks))

    def left_over(self) -> dict[str, Sequence[Survivor] | None]:
        """What still runs after a kill, by its mark."""
        runs = [run for processes in self.processes for run in processes.runs if run.command in self.outliving]
        found = enumerate(runs, 4001)
        return {run.environment[attempt_mark_name]: [Survivor(pid, "then", run.command)] for pid, run in found}

    def spelled(self, arguments: str) -> str:
        """With the ids of the story in the place of their words."""
        uncertain, jobs = self.now.owner.ledger.uncertain(), list(self.now.owner.ledger.jobs)
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
            (r"file (\S+): (.*)", self.put),
            (r"file (\S+) is: (.*)", self.is_there),
            (r"file (\S+) is not there", self.is_not_there),
            (r"file (\S+) is gone", self.remove),
            (r"link (\S+): (.*)", self.put_link),
            (r"link (\S+) is: (.*)", self.link_is),
            (r"it is held", self.come_to_rest),
            (r"retry is on", self.switch_retry_on),
            (r"model: (\w+ \{.*\})", self.will_call),
            (r"the model asks: (.+?) -> (.*)", self.answer_model),
            (r"command (.+?): (.*)", self.set_command),
            (r'hold before "(\w+)" is recorded', self.hold_record),
            (r"hold before (\S+) is (replaced|moved|removed)", self.hold_deed),
            (r"you: (.*)", self.say),
            (r"you (stop|resume|close)", self.press),
            (r"asked (.+?)(?: -> (.*))?", self.answer),
            (r"kill", self.come_to_rest),
            (r"answer: (.*)", self.answered),
            (r"ends: (\w+)", self.ends),
            (r"changed: (.*)", self.changed),
            (r"call (.+): (\w+)", self.call_is),
            (r"reply: (.*)", self.reply_is),
            (r"plan: (.*)", self.plan_is),
            (r"told: (.*)", self.told),
            (r"offered: (.*)", self.offered),
            (r"queue: (.*)", self.queue_is),
            (r"uncertain: (.*)", self.uncertain_is),
            (r"settled: (.+) = (\w+)", self.settled_is),
            (r"shown: (.*)", self.shown),
            (r"ran: (.*)", self.ran),
        ]

    # What happens.

    async def set_mode(self, mode: str) -> None:
        await self.now.owner.set_mode(mode)  # type: ignore[arg-type]  # a wrong word fails the story

    async def put(self, name: str, text: str) -> None:
        path = self.now.stage.root / name
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
                    path = self.now.stage.root / name
                    script.effect = lambda _, path=path: path.write_text("x") and None
                case _:
                    pytest.fail(f"a command cannot do this: {word}")
        self.scripts[command] = script
        self.processes[-1].scripts[command] = script

    async def hold_record(self, kind: str) -> None:
        self.now.disk.matches = lambda operation: kind in operation.kinds

    async def hold_deed(self, name: str, deed: str) -> None:
        def is_it(operation: Operation) -> bool:
            match deed:
                case "replaced":
                    verbs = ("exchange", "rename", "rename_new")
                    return operation.verb in verbs and operation.target.endswith(f"-> {name}")
                case "moved":
                    return operation.verb == "rename_to" and operation.target.startswith(f"{name} ->")
                case _:
                    return operation.verb == "rename_new" and operation.target.startswith(f"{name} ->")

        self.now.disk.matches = is_it

    async def remove(self, name: str) -> None:
        (self.now.stage.root / name).unlink()

    async def put_link(self, name: str, target: str) -> None:
        (self.now.stage.root / name).symlink_to(target)

    async def switch_retry_on(self) -> None:
        self.settings = attrs.evolve(self.settings, retry=True)
        self.now.stage.house.world.settings = self.settings

    async def will_call(self, call: str) -> None:
        self.calls.append(call)

    async def answer_model(self, question: str, answer: str) -> None:
        editor = self.now.stage.editor
        assert isinstance(editor, StoryEditor)
        await until(lambda: editor.asked is not None)
        assert editor.asked is not None
        assert editor.asked.question == question
        editor.answer = answer
        editor.answered.set()

    async def say(self, text: str) -> None:
        self.turn = (await self.now.stage.send(self.now.owner, self.spelled(text))).turn_id

    async def press(self, what: str) -> None:
        owner = self.now.owner
        match what:
            case "stop":
                await self.come_to_rest()
                assert await prompts.cancel(owner, None), "no turn runs"
            case "resume":
                assert owner.epoch is not None
                await prompts.resume(owner, owner.epoch)
            case _:
                await self.now.stage.house.close(owner.session_id)
                self.now.owner = await self.now.stage.opened(owner.session_id)

    async def answer(self, title: str, answer: str) -> None:
        park = self.now.parks[self.now.asked]
        question = await park.wait_any()
        assert title in (question.title, question.tool)
        if answer:
            self.now.asked += 1
            option, _, note = answer.partition(" ")
            park.answer_with(None if option == "nothing" else option, note or None)

    async def come_to_rest(self) -> None:
        """Wait until the turn is held, asks, or runs a command that hangs."""
        life = self.now
        hanging = [script.started for script in self.scripts.values() if script.hangs and script.started]
        await until(
            lambda: (
                life.disk.reached.is_set()
                or life.parks[life.asked].gate.reached.is_set()
                or any(event.is_set() for event in hanging)
            )
        )

    # What is so.

    async def is_there(self, name: str, text: str) -> None:
        assert self.now.stage.content(name) == text

    async def is_not_there(self, name: str) -> None:
        assert self.now.stage.content(name) is None

    async def answered(self, text: str) -> None:
        assert self.turn is not None
        await self.now.stage.ended(self.now.owner, self.turn)
        assert text in last_text(self.now.owner.ledger, self.turn)

    async def ends(self, reason: str) -> None:
        assert self.turn is not None
        assert (await self.now.stage.ended(self.now.owner, self.turn)).reason == reason

    async def changed(self, names: str) -> None:
        assert self.turn is not None
        ended = await self.now.stage.ended(self.now.owner, self.turn)
        assert [change.path for change in ended.changed] == listed(names)

    async def call_is(self, title: str, state: str) -> None:
        with anyio.move_on_after(3):
            await until(lambda: (found := self.last_call(title)) is not None and found.state == state)
        self.call = self.last_call(title)
        assert self.call is not None, "no call has that title"
        assert self.call.state == state

    def last_call(self, title: str) -> CallView | None:
        owner = self.now.owner
        views = [call_view(call, owner.live, owner.ground.root) for call in owner.ledger.calls.values()]
        return next((view for view in reversed(views) if view.title == title), None)

    async def reply_is(self, text: str) -> None:
        assert self.call is not None
        assert self.call.reply is not None
        assert text in self.call.reply.text

    async def plan_is(self, items: str) -> None:
        events = [told.event for told in self.now.stage.editor.told if isinstance(told, TurnEvent)]
        plans = [event for event in events if isinstance(event, PlanTold)]
        assert [f"{item.text} ({item.state})" for item in plans[-1].items] == listed(items)

    async def told(self, text: str) -> None:
        notices = [record.text for record in on_disk(self.now.owner) if isinstance(record, Notice)]
        assert any(text in notice for notice in notices), notices

    async def offered(self, actions: str) -> None:
        snapshot = self.now.owner.snapshot()
        assert [action for view in (*snapshot.calls, *snapshot.settled) for action in view.actions] == listed(actions)

    async def link_is(self, name: str, target: str) -> None:
        assert str((self.now.stage.root / name).readlink()) == target

    async def queue_is(self, texts: str) -> None:
        found = [item.text + (" (paused)" if item.paused else "") for item in self.now.owner.queue()]
        assert found == listed(texts)

    async def uncertain_is(self, titles: str) -> None:
        assert [attempt.title for attempt in self.now.owner.ledger.uncertain()] == listed(titles)

    async def settled_is(self, title: str, word: str) -> None:
        attempts = self.now.owner.ledger.attempts
        found = [
            (attempts[record.attempt_id].title, record.settled)
            for record in on_disk(self.now.owner)
            if isinstance(record, Settlement)
        ]
        assert (title, word) in found, found

    async def shown(self, text: str) -> None:
        assert any(text in message for message in self.now.stage.editor.messages()), self.now.stage.editor.messages()

    async def ran(self, commands: str) -> None:
        assert [run.command for processes in self.processes for run in processes.runs] == listed(commands)


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.anyio
@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
async def test_story(tmp_path: Path, path: Path) -> None:
    """Each story comes true, line by line; what it proves stands in its own first lines."""
    async with AsyncExitStack() as lives:
        player = Player(tmp_path, lives)
        await player.begin()
        for number, line in enumerate(lines_of(path), 1):
            if line.strip() and not line.startswith("#"):
                try:
                    with anyio.fail_after(10):
                        await player.play(line.strip())
                except (AssertionError, TimeoutError) as failed:
                    raise AssertionError(f"{path.name}:{number}: {line.strip()}\n{failed}") from failed
                if line.strip() == "kill":  # a life is begun outside of any limit, which it outlives
                    await player.begin()


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_every_story_says_what_it_shows(path: Path) -> None:
    """A story begins with what it shows and the rows or cases it proves, and expects something."""
    text = path.read_text(encoding="utf-8")
    head = text.split("\n\n")[0]
    assert all(line.startswith("# ") for line in head.splitlines())
    assert re.search(r"\b[A-Z]\d+\b|case \d+", head)
    words = "answer|ends|changed|reply|queue|uncertain|settled|shown|told|plan|offered|ran"
    expectations = re.findall(rf"^(?:{words}|call .*|file .* is.*|link .* is.*)", text, re.M)
    assert len(expectations) >= 3


def test_there_are_stories() -> None:
    """An empty folder would prove nothing."""
    assert len(STORIES) >= 10
