"""The command line beside serving: the way in and the way out without any editor (B4).

The program is started as a person starts it, with nothing of an editor; sessions come from its own `ask`, or from a
server that was killed in the middle of a write.
"""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from steadyhand.__main__ import VERBS
from steadyhand.adapters import process_list
from steadyhand.cli import flags
from steadyhand.cli.terminal import Terminal
from steadyhand_protocol import commands, methods, recovery, session, wire
from tests.support.killed_server import shipped
from tests.support.recovered import PRESENT, Json, Lives, lives_in
from tests.support.systems import linux_only

pytestmark = linux_only

run_s_max = 60
WRITE = 'write a.txt with "new\\n"'


@attrs.frozen
class Ran:
    """How one run of the program ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@attrs.frozen
class Shell:
    """A person in the workspace of some lives."""

    lives: Lives

    def start(self, *words: str, **streams: Any) -> subprocess.Popen[bytes]:
        program, environment = shipped(self.lives.place.state)
        return subprocess.Popen(
            [*program[: program.index("--state-dir")], *words],
            env={**os.environ, **environment, "STEADYHAND_STATE_DIR": str(self.lives.place.state)},
            cwd=self.lives.place.workspace,
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
        )

    def run(self, *words: str) -> Ran:
        process = self.start(*words)
        try:
            out, err = process.communicate(timeout=run_s_max)
        finally:
            process.kill()
        return Ran(process.returncode, out.decode(), err.decode())

    def typed(self, answers: str, *words: str) -> Ran:
        """With a terminal as stdin, into which the answers are typed beforehand."""
        ours, theirs = pty.openpty()
        process = self.start(*words, stdin=theirs)
        os.close(theirs)
        os.write(ours, answers.encode())
        try:
            out, err = process.communicate(timeout=run_s_max)
        finally:
            process.kill()
            os.close(ours)
        return Ran(process.returncode, out.decode(), err.decode())


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    with lives_in(tmp_path) as found:
        found.place.write("a.txt", "old\n")
        yield found


@pytest.fixture
def shell(lives: Lives) -> Shell:
    return Shell(lives)


def fits(shape: Any, value: Any) -> Any:
    """It is of the wire's strict shape."""
    assert wire.unstructure(wire.structure(shape, value)) == value
    return value


def conflict(lives: Lives) -> tuple[str, str]:
    """A write that was cut off, over which somebody else wrote: (session, attempt), nobody has it open."""
    session_id = lives.die(WRITE, PRESENT)
    lives.place.write("a.txt", "somebody's\n")
    (started,) = lives.having(session_id, "started")
    return session_id, started["attemptId"]


# --- flags ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["sessions", "--nonsense"],
        ["show"],
        ["export", "1234", "--format", "pdf"],
        ["show", "1234", "--tail", "-1"],
        ["ask"],
        ["ask", "x", "--mode", "yolo"],
        ["recovery", "undo", "1234"],
        ["recovery", "confirm"],
        ["recovery", "inspect", "1234", "--yes"],
        ["nonsense"],
    ],
)
def test_bad_flags(shell: Shell, words: list[str]) -> None:
    """wire.md: exit 2, the usage on stderr, nothing on stdout."""
    ran = shell.run(*words)
    assert (ran.code, ran.out) == (2, "")
    assert "usage: steadyhand" in ran.err


def test_help(shell: Shell) -> None:
    """The verbs are those of the dispatch; the exit codes are told."""
    assert flags.VERBS == VERBS
    assert all(verb in shell.run("--help").out for verb in VERBS)
    assert "128 + n for signal n" in shell.run("ask", "--help").out


@pytest.mark.parametrize("words", [["--json", "list"], ["list", "--json"], ["--json"]])
def test_shared_flags_stand_before_or_behind_a_deed(words: list[str]) -> None:
    """`recovery` alone lists; where `--json` stands does not matter."""
    found = flags.read(["recovery", *words])
    assert (found.deed, found.json) == ("list", True)


# --- looking --------------------------------------------------------------------------------------------------------


def test_nothing_yet(shell: Shell) -> None:
    """S3: an empty state directory is no trouble."""
    assert shell.run("sessions") == Ran(0, "There are no sessions.\n", "")
    assert shell.run("sessions", "--json").json == {"sessions": []}
    assert shell.run("recovery").out == "Nothing is uncertain.\n"


def test_sessions_and_one_of_them(shell: Shell) -> None:
    """S3, G5: listed, shown and exported, in words and in the wire's shapes; looking changes no byte."""
    asked = fits(commands.AskResult, shell.run("ask", "say hello", "--json").json)
    session_id = asked["sessionId"]
    listed = fits(session.SessionListResult, shell.run("sessions", "--json").json)
    assert [one["sessionId"] for one in listed["sessions"]] == [session_id]
    row = shell.run("sessions").out
    assert row.startswith(session_id[:8])
    assert row.rstrip().endswith(f"say hello  {shell.lives.place.workspace}")
    before = shell.lives.place.journal(session_id)
    shown = fits(session.SessionOpenResult, shell.run("show", session_id[:6], "--json", "--tail", "1").json)
    assert [one["role"] for one in shown["messages"]] == ["assistant"]
    assert shown["more"] is True
    assert "hello" in shell.run("show", session_id).out
    text = shell.run("export", session_id).out
    assert text.startswith("# say hello\n")
    assert fits(session.SessionExportResult, shell.run("export", session_id, "--json").json)["text"] == text
    assert json.loads(shell.run("export", session_id, "--format", "json").out)["format"] == 1
    assert shell.lives.place.journal(session_id) == before


def test_a_session_that_somebody_has_is_looked_at_all_the_same(shell: Shell) -> None:
    """J11: it is shown while an editor has it, and that editor is not disturbed; who has it is said."""
    client = shell.lives.start()
    session_id = client.own("session/create")["sessionId"]
    client.say("say hello", sessionId=session_id)
    ran = shell.run("show", session_id)
    assert ran.code == 0
    assert "hello" in ran.out
    assert f"process {client.process.pid}" in ran.err
    shown = shell.run("show", session_id, "--json").json
    assert shown["session"]["readOnly"]["owner"]["pid"] == client.process.pid
    refused = shell.run("ask", "say more", "--session", session_id, "--json")
    assert refused.code == 1
    assert refused.json["error"]["kind"] == "notOwner"
    assert f"process {client.process.pid}" in refused.err
    assert client.say("say again", sessionId=session_id)["text"].startswith("again")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "123"], "at least 4 digits"),
        (["show", "ffff"], "No session begins with that ID"),
        (["export", "f" * 32], "No session begins with that ID"),
        (["recovery", "inspect", "fff"], "at least 4 digits"),
        (["recovery", "waive", "ffff", "--yes"], "No uncertain effect begins with that ID"),
        (["ask", "x", "--workspace", "nowhere"], "there is no folder"),
        (["ask", " "], "There is nothing to ask: the text is empty."),
    ],
)
def test_what_is_refused(shell: Shell, words: list[str], said: str) -> None:
    """Exit 1, one sentence on stderr; with --json an error with its kind on stdout."""
    ran = shell.run(*words)
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert said in shell.run(*words, "--json").json["error"]["message"]


def test_settings_reach_a_command(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """wire.md: flags before the environment before the default; a bad flag is exit 2, a bad variable one sentence."""
    nowhere = ["--provider", "compatible", "--model", "x", "--base-url", "http://127.0.0.1:1/v1"]
    found = shell.run("doctor", "--json", *nowhere, "--api-key-env", "MINE").json
    assert found["model"] == {"provider": "compatible", "name": "x"}
    assert "MINE" in found["provider"][0]["text"]
    ran = shell.run("ask", "hello", *nowhere)
    assert ran.code == 1
    assert "cannot be reached" in ran.err
    monkeypatch.setenv("STEADYHAND_MODEL_PROVIDER", "ollama")
    monkeypatch.setenv("STEADYHAND_COST_CAP", "lots")
    ran = shell.run("ask", "say hi", "--setting", "model.provider=practice", "--json")
    assert (ran.code, ran.json["reason"]) == (0, "done")
    assert "STEADYHAND_COST_CAP is not a number" in ran.err
    ran = shell.run("ask", "say more", "--session", shell.run("sessions", "--json").json["sessions"][0]["sessionId"])
    assert ran.code == 0, "a session keeps its own model"
    for bad in (["--setting", "nothing=1"], ["--setting", "mode"], ["--setting", "mode=fast"]):
        ran = shell.run("ask", "hello", *bad)
        assert (ran.code, ran.out) == (2, "")
        assert "--setting" in ran.err


def test_doctor(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """E1: what children are not given is named, and its value never shown; the editor's doctor says the same."""
    monkeypatch.setenv("DEPLOY_TOKEN", "correct-horse")
    found = fits(commands.DoctorResult, shell.run("doctor", "--json").json)
    assert found["paths"]["state"] == str(shell.lives.place.state)
    assert any("DEPLOY_TOKEN" in note for note in found["notes"])
    ran = shell.run("doctor")
    assert "Owner locks hold." in ran.out
    assert "DEPLOY_TOKEN" in ran.out
    assert "correct-horse" not in ran.out + json.dumps(found)
    assert any("DEPLOY_TOKEN" in note for note in shell.lives.start().command("doctor")["notes"])


# --- ask ------------------------------------------------------------------------------------------------------------


def test_ask_works_in_the_folder_and_goes_on(shell: Shell) -> None:
    """P5, G6: a turn here and now; the answer on stdout, what was really changed on stderr; a session goes on."""
    ran = shell.run("ask", WRITE, "--mode", "auto")
    assert ran.code == 0
    assert ran.out == "done: 1 of 1\n"
    assert "modified: a.txt" in ran.err
    assert shell.lives.place.files()["a.txt"] == "new\n"
    (session_id,) = shell.lives.sessions()
    assert shell.run("ask", "show a.txt", "--session", session_id[:8]).code == 0
    assert len(shell.lives.having(session_id, "user")) == 2
    assert shell.lives.having(session_id, "ended")[-1]["reason"] == "done"


def test_without_a_terminal_nobody_is_asked(shell: Shell) -> None:
    """G2: no answer is no permission."""
    ran = shell.run("ask", WRITE)
    assert "not_answered" in ran.out
    assert shell.lives.place.files()["a.txt"] == "old\n"


@pytest.mark.parametrize(("typed", "content"), [("1\n", "new\n"), ("3\n", "old\n"), ("yes\n9\n\n", "old\n")])
def test_a_terminal_is_asked(shell: Shell, typed: str, content: str) -> None:
    """G2: by number; what is not offered is asked again, and is no permission in the end."""
    ran = shell.typed(typed, "ask", WRITE)
    assert ran.code == 0
    assert "1. Allow once" in ran.err
    assert shell.lives.place.files()["a.txt"] == content


def test_an_interrupt_cancels_the_turn(shell: Shell) -> None:
    """G8, case 98: recorded, its command ended, exit 130."""
    process = shell.start("ask", "run echo up > up.txt; sleep 300", "--mode", "auto")
    client = shell.lives
    try:
        up = client.place.workspace / "up.txt"
        _until(up.exists)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=run_s_max)
    finally:
        process.kill()
    assert process.returncode == 128 + signal.SIGINT
    (session_id,) = client.sessions()
    assert client.having(session_id, "ended")[-1]["reason"] == "cancelled"
    (started,) = client.having(session_id, "started")
    assert process_list.survivors(started["attemptId"]) == []


def test_nobody_reads_the_answer(shell: Shell) -> None:
    """E4: a closed pipe ends nothing but the answer."""
    ours, theirs = os.pipe()
    os.close(ours)
    process = shell.start("ask", f"say one\n{WRITE}", "--mode", "auto", stdout=theirs)
    os.close(theirs)
    _, err = process.communicate(timeout=run_s_max)
    assert process.returncode in (0, 1)
    assert b"Traceback" not in err
    assert shell.lives.place.files()["a.txt"] == "new\n"


def test_what_is_uncertain_holds_back_here_too(shell: Shell) -> None:
    """B1, B4: another session's doubt in the same folder; the refusal names this very way out."""
    _, attempt_id = conflict(shell.lives)
    ran = shell.run("ask", 'write a.txt with "mine\\n"', "--mode", "auto", "--json")
    assert "recovery_required" in ran.json["text"]
    (reply,) = shell.lives.having(ran.json["sessionId"], "tool")
    assert f"`steadyhand recovery inspect {attempt_id[:8]}`" in reply["text"]
    assert shell.lives.place.files()["a.txt"] == "somebody's\n"
    assert shell.run("recovery", "waive", attempt_id[:8], "--yes").code == 0
    shell.run("ask", 'write a.txt with "mine\\n"', "--mode", "auto")
    assert shell.lives.place.files()["a.txt"] == "mine\n"


def test_what_a_model_writes_moves_no_cursor() -> None:
    """E4: control characters are pictures."""
    out = io.StringIO()
    Terminal(out, io.StringIO(), None).say("a\x1b[2Jb\x9bc")
    assert out.getvalue() == "a␛[2Jb\\u009bc\n"


# --- recovery -------------------------------------------------------------------------------------------------------


def test_list_and_inspect(shell: Shell) -> None:
    """B4, A4: found without an editor, over all sessions, with the first digits that the other words take."""
    session_id, attempt_id = conflict(shell.lives)
    assert shell.run("recovery", "list").out.startswith(f"{attempt_id[:8]}  write_file: a.txt: conflict, session ")
    listed = fits(recovery.RecoveryListResult, shell.run("recovery", "list", "--json").json)
    assert [one["attemptId"] for one in listed["uncertain"]] == [attempt_id]
    assert shell.run("recovery", "list", "--session", session_id, "--json").json["uncertain"] == listed["uncertain"]
    looked = fits(recovery.ResolveResult, shell.run("recovery", "inspect", attempt_id[:4], "--json").json)
    assert looked["inspection"]["check"] == "conflict"
    said = shell.run("recovery", "inspect", attempt_id).out
    assert "neither" in said
    assert "-somebody's" in said


@pytest.mark.parametrize(
    ("deed", "left", "settled"),
    [("confirm", 0, "user_confirmed"), ("waive", 0, "waived"), ("reject", 1, None)],
)
def test_a_decision(shell: Shell, deed: str, left: int, settled: str | None) -> None:
    """B4, A3: it rests on a look of its own, which is stored and shown."""
    session_id, attempt_id = conflict(shell.lives)
    ran = shell.run("recovery", deed, attempt_id[:8], "--yes", "--json")
    assert ran.code == 0
    done = fits(recovery.ResolveResult, ran.json)
    assert len(done["snapshot"]["calls"]) == left
    assert "neither" in ran.err
    found = shell.lives.having(session_id, "settlement")
    assert [one["settled"] for one in found] == ([settled] if settled else [])
    assert all(one["by"] == "user" for one in found)
    assert len(shell.lives.having(session_id, "inspection")) == 1
    assert bool(shell.lives.having(session_id, "reject")) is (deed == "reject")


def test_restore_and_retry(shell: Shell) -> None:
    """A5: the content before comes back; a retry that is switched off is refused before anything is looked at."""
    session_id, attempt_id = conflict(shell.lives)
    refused = shell.run("recovery", "retry", attempt_id, "--yes", "--json")
    assert (refused.code, refused.json["error"]["kind"]) == (1, "retryDisabled")
    assert shell.lives.having(session_id, "inspection") == []
    allowed = shell.run("recovery", "retry", attempt_id, "--yes", "--json", "--setting", "recovery.retry=true")
    assert (allowed.code, allowed.json["error"]["kind"]) == (1, "retryUnsafe"), "on, and not proved absent"
    done = fits(recovery.ResolveResult, shell.run("recovery", "restore", attempt_id, "--yes", "--json").json)
    assert done["snapshot"]["calls"] == []
    assert shell.lives.place.files()["a.txt"] == "old\n"


@pytest.mark.parametrize(("typed", "code"), [("1\n", 0), ("2\n", 1), ("\x04", 1)])
def test_a_decision_at_a_terminal(shell: Shell, typed: str, code: int) -> None:
    """A3: the finding is shown, and nothing is decided without a yes."""
    session_id, attempt_id = conflict(shell.lives)
    ran = shell.typed(typed, "recovery", "confirm", attempt_id)
    assert ran.code == code
    assert "neither" in ran.err
    assert len(shell.lives.having(session_id, "settlement")) == (1 if code == 0 else 0)


def test_a_decision_needs_a_yes(shell: Shell) -> None:
    """A3: with nobody to ask and without `--yes` the finding is shown and nothing is decided."""
    session_id, attempt_id = conflict(shell.lives)
    ran = shell.run("recovery", "confirm", attempt_id)
    assert ran.code == 1
    assert "neither" in ran.err
    assert "--yes" in ran.err
    assert shell.lives.having(session_id, "settlement") == []


def test_what_a_check_proves_settles_itself(shell: Shell) -> None:
    """B3: looking opens it as an editor does; a second look finds nothing."""
    session_id = shell.lives.die(WRITE, PRESENT)
    assert "checked_present" in shell.run("recovery").out
    assert shell.run("recovery").out == "Nothing is uncertain.\n"
    assert [one["settled"] for one in shell.lives.having(session_id, "settlement")] == ["checked_present"]


def test_who_owns_it_decides(shell: Shell) -> None:
    """J11: while an editor has it, it is listed with its owner, and no decision is taken here."""
    session_id, attempt_id = conflict(shell.lives)
    client = shell.lives.start()
    client.opened(session_id)
    listed = shell.run("recovery", "list")
    assert attempt_id[:8] in listed.out
    assert f"process {client.process.pid}" in listed.out
    ran = shell.run("recovery", "waive", attempt_id, "--yes")
    assert (ran.code, ran.out) == (1, "")
    assert f"process {client.process.pid}" in ran.err
    assert shell.lives.having(session_id, "settlement") == []
    assert client.snapshot(session_id)["calls"][0]["attemptId"] == attempt_id


def test_end_survivors(shell: Shell) -> None:
    """E5: what a killed server's command left running is ended from here too; it settles nothing."""
    client = shell.lives.start()
    client.ask_turn("run setsid sleep 300 & echo up > up.txt; sleep 300")
    client.wait_for(lambda: True if (shell.lives.place.workspace / "up.txt").exists() else None, 20)
    client.process.kill()
    client.wait_exit()
    (session_id,) = shell.lives.sessions()
    (started,) = shell.lives.having(session_id, "started")
    attempt_id = started["attemptId"]
    try:
        assert "still lives: process" in shell.run("recovery", "inspect", attempt_id).out
        ended: Json = shell.run("recovery", "end-survivors", attempt_id, "--yes", "--json").json
        fits(recovery.EndSurvivorsResult, ended)
        assert ended["ended"] >= 2
        assert ended["left"] == 0
        assert process_list.survivors(attempt_id) == []
        assert attempt_id[:8] in shell.run("recovery").out
    finally:
        for one in process_list.survivors(attempt_id) or ():
            process_list.signal_exactly(one.pid, one.started, signal.SIGKILL)


def test_the_names_of_deeds_are_those_of_the_commands() -> None:
    """wire.md: what the command line can decide is what the commands can."""
    deeds = {deed.replace("end-survivors", "endSurvivors") for deed in flags._RECOVERY}
    assert {f"steadyhand.recovery.{deed}" for deed in deeds} <= set(methods.COMMANDS_BY_NAME)


def _until(look: Any) -> None:
    """Wait until something is so; a file tells nobody that it is there."""
    done = threading.Event()
    for _ in range(run_s_max * 20):
        if look():
            return
        done.wait(0.05)
    raise AssertionError("it did not come")
