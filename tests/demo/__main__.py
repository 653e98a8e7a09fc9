"""`make demo`: kill the server at seven bad moments, and compare what it says afterwards with the files.

Each scene asks for one effect that would be visible twice (a line appended to a file), lets the server die in it,
starts it again, and compares what it says with what is on disk. Then the work goes on. At the end there is a table; the
exit code is 0 only if every row of it agrees. The demo needs no editor, no key, no network, and writes only into a
temporary folder.

To add a scene, write a function from a `Run` to a `Row` and add it to `SCENES`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from tests.demo.harness import (
    FILES,
    Json,
    ServerRun,
    Shop,
    calls_of,
    confinement_of,
    line_chars,
    notices_of,
    say,
    title,
)

started_s_max = 15.0
look_again_s = 0.02


@attrs.frozen
class Row:
    """What the table says of one effect. `times`: how many times it is on disk at the end. `agrees`: everything is
    right."""

    effect: str
    times: int
    said: str
    true: str
    agrees: bool


SETTLED = {
    "no": "settles nothing by itself",
    "checked_absent": "settles it by looking at the file",
    "checked_present": "settles it by looking at the file",
}
SAID = {
    "checked_absent": "it is not there",
    "checked_present": "it is there",
    "conflict": "neither old nor new: you decide",
    "unknown": "unknown: it may have run",
}
"""The server's word → the words of the table."""


@attrs.define
class Run:
    """The project and its one session, through all process runs of the server."""

    shop: Shop
    session: str = ""

    def killed(self, prompt: str, **fault: object) -> None:
        """Ask for something and let the server die in it, at the given fault."""
        with ServerRun(self.shop, fault) as server:
            if not self.session:
                self.session = server.create()
            else:
                server.open(self.session)
            say("You ask:", prompt)
            server.begin(self.session, prompt)
            number = server.died()
        say("Then:", f"the server is killed (signal {number}).")

    def reopened(self, server: ServerRun) -> Json:
        """The session as the next server shows it."""
        opened = server.open(self.session)
        call = calls_of(opened)[-1]
        say(
            "Started again:",
            f"it calls “{call['title']}” {call['state']}, and {SETTLED.get(call.get('settled', 'no'), 'settles it')}.",
        )
        if "settled" in call:
            say("In the chat:", notices_of(opened)[-1])
        return call


def before_the_file_is_replaced(run: Run) -> Row:
    """Nothing has happened, and that is provable; so asking again is safe."""
    title("1  Killed just before a file is replaced")
    name, line = "CHANGES.md", "- The shop sells cake."
    prompt = f'append "{line}" to {name}'
    run.killed(prompt, verb="exchange", target=name)
    there = run.shop.count(name, line)
    say("On disk:", f"{name} has the line {times(there)}.")
    with ServerRun(run.shop) as server:
        call = run.reopened(server)
        say("At the file:", server.hint(name, "checked-write"))
        again = run.shop.count(name, line)
        say("You ask again:", prompt)
        server.ask(run.session, prompt)
        last = run.shop.count(name, line)
        say("On disk:", f"{name} has the line {times(last)}.")
    settled = str(call.get("settled", call["state"]))
    agrees = settled == "checked_absent" and (there, again, last) == (0, 0, 1)
    true = f"it was there {times(there)}; asked again, {times(last)}"
    return Row(f"a line for {name}", last, SAID.get(settled, settled), true, agrees)


def after_the_file_was_replaced(run: Run) -> Row:
    """It has happened, although it could not be recorded; the file proves it."""
    title("2  Killed after a file was replaced, before that could be recorded")
    name, line = "TODO.md", "- Count the cups."
    run.killed(f'append "{line}" to {name}', verb="write", carries="result")
    there = run.shop.count(name, line)
    say("On disk:", f"{name} has the line {times(there)}.")
    with ServerRun(run.shop) as server:
        call = run.reopened(server)
        say("At the file:", server.hint(name, "checked-write"))
        answer = server.ask(run.session, f"show {name}")
        say("The work goes on:", f"show {name}: {answer['text'].splitlines()[-1]}.")
    last = run.shop.count(name, line)
    settled = str(call.get("settled", call["state"]))
    agrees = settled == "checked_present" and (there, last) == (1, 1) and answer["reason"] == "done"
    return Row(f"a line for {name}", last, SAID.get(settled, settled), f"it was there {times(there)}", agrees)


def while_somebody_else_saves(run: Run) -> Row:
    """Neither old nor new: the server guesses nothing, the user decides."""
    title("3  Killed after a file was replaced, while another program saves it too")
    name, line, other = "NOTES.md", "- Cake is 4.", "- Saved by another program."
    path = run.shop.folder / name
    someone = [sys.executable, "-c", f"open({str(path)!r}, 'a').write({other + chr(10)!r})"]
    run.killed(f'append "{line}" to {name}', verb="write", carries="result", run=someone)
    there, theirs = run.shop.count(name, line), run.shop.count(name, other)
    say("On disk:", f"{name} has the line {times(there)}, and the line of the other program {times(theirs)}.")
    with ServerRun(run.shop) as server:
        call = run.reopened(server)
        say("At the file:", server.hint(name, "uncertain-write"))
        say("The light bulb:", " · ".join(server.offers(run.shop, name)))
        attempt = {"sessionId": run.session, "attemptId": call["attemptId"]}
        found = server.command("recovery.inspect", **attempt)["inspection"]
        say("You choose Inspect:", found["text"])
        say("Now it offers:", " · ".join(server.offers(run.shop, name)))
        server.command("recovery.confirm", **attempt, inspectionId=found["inspectionId"])
        say("You choose Confirm:", f"and the hint is {'gone' if name not in server.hints() else 'still there'}.")
        answer = server.ask(run.session, f'append "- Both were kept." to {name}')
        say("The work goes on:", f"another line for {name}: {answer['text'].splitlines()[-1]}.")
    last = run.shop.count(name, line)
    kept = run.shop.count(name, other) == 1 and run.shop.count(name, "- Both were kept.") == 1
    check = str(found.get("check", call["state"]))
    agrees = call["state"] == "unknown" and check == "conflict" and (there, last) == (1, 1) and kept
    true = f"it was there {times(there)}, the line of the other program {times(theirs)}"
    return Row(f"a line for {name}", last, SAID.get(check, check), true, agrees)


def killed_in_a_command(run: Run, name: str, line: str) -> int:
    """A command adds the line, and the server is killed while the command runs; how many times the file has the
    line."""
    command = f"echo '{line}' >> {name}; sleep 1"
    with ServerRun(run.shop) as server:
        server.open(run.session)
        say("You ask:", f"run {command}")
        server.begin(run.session, f"run {command}")
        _until(lambda: run.shop.count(name, line) > 0)
        server.client.process.kill()
        say("Then:", f"the server is killed (signal {server.died()}).")
    return run.shop.count(name, line)


def during_a_command(run: Run) -> Row:
    """A command leaves no proof; it stays unknown, holds back what could conflict, and is never repeated."""
    title("4  Killed during a command")
    name, line = "deliveries.txt", "12 cups"
    there = killed_in_a_command(run, name, line)
    say("On disk:", f"{name} has the line {times(there)}.")
    prompt = 'append "- Ask for cups." to TODO.md'
    questions: list[str] = []

    def decide(question: str, offered: list[str]) -> str:
        questions.append(question)
        say("It asks first:", question)
        say("It offers:", " · ".join(offered))
        say("You choose:", "Continue without knowing")
        return "Continue without knowing"

    with ServerRun(run.shop) as server:
        call = run.reopened(server)
        say("The sandbox:", confinement_of(call))
        server.answering(decide)
        say("You ask:", prompt)
        answer = server.ask(run.session, prompt)
        say("The work goes on:", f"{answer['text'].splitlines()[-1]}.")
    last = run.shop.count(name, line)
    agrees = (
        call["state"] == "unknown"
        and (there, last) == (1, 1)
        and len(questions) == 1
        and run.shop.count("TODO.md", "- Ask for cups.") == 1
    )
    return Row("a command", last, SAID.get(str(call["state"]), "?"), f"it had run {times(there)}", agrees)


def rejected_and_restored(run: Run) -> Row:
    """A conflict can be rejected, restored to the content before, and the restore can be undone."""
    title("5  Rejected, restored, and the restore undone")
    name, line, other = "CHANGES.md", "- Cups are blue.", "- A stranger's line."
    path = run.shop.folder / name
    before = path.read_bytes()
    someone = [sys.executable, "-c", f"open({str(path)!r}, 'a').write({other + chr(10)!r})"]
    run.killed(f'append "{line}" to {name}', verb="write", carries="result", run=someone)
    found_there = path.read_bytes()
    with ServerRun(run.shop) as server:
        call = run.reopened(server)
        attempt = {"sessionId": run.session, "attemptId": call["attemptId"]}
        seen = server.command("recovery.inspect", **attempt)["inspection"]["inspectionId"]
        server.command("recovery.reject", **attempt, inspectionId=seen)
        say("You choose Reject:", server.hint(name, "uncertain-write"))
        say("It still offers:", " · ".join(server.offers(run.shop, name)))
        server.command("recovery.restore", **attempt, inspectionId=seen)
        restored = path.read_bytes() == before
        say("You choose Restore:", f"the file is {'as before, byte for byte' if restored else 'NOT as before'}.")
        said = server.told("/recovery restore ")
        undo = said.partition("/recovery restore ")[2].split()[0]
        server.ask(run.session, f"/recovery inspect {undo}")
        server.ask(run.session, f"/recovery restore {undo}")
        undone = path.read_bytes() == found_there
        say("You undo that:", f"the file is {'as it was found' if undone else 'NOT as it was found'}.")
    last = run.shop.count(name, line)
    agrees = call["state"] == "unknown" and restored and undone and last == 1
    return Row(f"a line for {name}", last, SAID["conflict"], "restored and undone, byte for byte", agrees)


def retried(run: Run) -> Row:
    """An effect that is proved absent, and that no process can still cause, may be retried: the same intention,
    once."""
    title("6  Retried, because it is certain that it did not happen")
    name, line = "NOTES.md", "- Spoons are free."
    run.killed(f'append "{line}" to {name}', verb="exchange", target=name)
    there = run.shop.count(name, line)
    say("On disk:", f"{name} has the line {times(there)}.")
    with ServerRun(run.shop, retry=True) as server:
        call = run.reopened(server)
        attempt = {"sessionId": run.session, "attemptId": call["attemptId"]}
        seen = server.command("recovery.inspect", **attempt)["inspection"]
        say("You choose Inspect:", seen["text"])
        say("Now it offers:", " · ".join(server.offers(run.shop, name)))
        server.command("recovery.retry", **attempt, inspectionId=seen["inspectionId"])
        say("You choose Retry:", notices_of(server.open(run.session))[-1])
    last = run.shop.count(name, line)
    say("On disk:", f"{name} has the line {times(last)}.")
    agrees = call.get("settled") == "checked_absent" and (there, last) == (0, 1)
    true = f"it was there {times(there)}; retried, once"
    return Row(f"a line for {name}", last, SAID["checked_absent"], true, agrees)


def waived(run: Run) -> Row:
    """Another command; this time the user continues without knowing, by the command of the code action."""
    title("7  Waived: continued without knowing")
    name, line = "deliveries.txt", "9 plates"
    there = killed_in_a_command(run, name, line)
    with ServerRun(run.shop) as server:
        call = run.reopened(server)
        attempt = {"sessionId": run.session, "attemptId": call["attemptId"]}
        seen = server.command("recovery.inspect", **attempt)["inspection"]
        say("You choose Inspect:", seen["text"])
        left = server.command("recovery.waive", **attempt, inspectionId=seen["inspectionId"])["snapshot"]["calls"]
        say("You choose Waive:", notices_of(server.open(run.session))[-1])
        answer = server.ask(run.session, f"show {name}")
        say("The work goes on:", f"show {name}: {answer['text'].splitlines()[-1]}.")
    last = run.shop.count(name, line)
    agrees = call["state"] == "unknown" and (there, last, left) == (1, 1, []) and answer["reason"] == "done"
    return Row("another command", last, SAID.get(str(call["state"]), "?"), f"it had run {times(there)}", agrees)


SCENES: tuple[Callable[[Run], Row], ...] = (
    before_the_file_is_replaced,
    after_the_file_was_replaced,
    while_somebody_else_saves,
    during_a_command,
    rejected_and_restored,
    retried,
    waived,
)


def times(count: int) -> str:
    return {0: "0 times", 1: "once", 2: "twice"}.get(count, f"{count} times")


def table(rows: Sequence[Row]) -> None:
    """The effect, how many times it happened, what was said, what was true."""
    title("What was said and what was true")
    heads = ("effect", "happened", "said after the restart", "true at that moment", "")
    cells = [
        (row.effect, times(row.times), row.said, row.true, "agrees" if row.agrees else "DISAGREES") for row in rows
    ]
    widths = [max(len(line[column]) for line in (heads, *cells)) for column in range(len(heads))]
    for line in (heads, tuple("─" * width for width in widths), *cells):
        print("   " + "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip())


def _until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + started_s_max
    while not done():
        if time.monotonic() > end:
            raise TimeoutError("the command did not begin")
        time.sleep(look_again_s)


def main() -> int:
    """0 only if every row agrees and nothing happened twice."""
    begun = time.monotonic()
    print("Steadyhand, killed at seven bad moments. What it says afterwards is compared with your files.\n")
    with tempfile.TemporaryDirectory(prefix="steadyhand-demo-") as base:
        run = Run(Shop.laid_out(Path(base)))
        say("The project:", f"a tea shop of {len(FILES)} small files in a temporary folder.")
        say(
            "The model:", "the built-in practice model. It does what the prompt says and calls tools as any model does."
        )
        rows = [scene(run) for scene in SCENES]
    table(rows)
    good = all(row.agrees and row.times <= 1 for row in rows)
    verdict = "Every row agrees, and nothing happened twice." if good else "A row above does NOT agree."
    print(f"\n{verdict} ({time.monotonic() - begun:.0f} s)"[:line_chars])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
