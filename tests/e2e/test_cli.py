"""The command line beside serving: sessions and recovery without an editor (B4).

The tests start the program as a user does, with nothing of an editor. Sessions come from its own `ask`, or from a
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
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import attrs
import pytest

from steadyhand.__main__ import VERBS
from steadyhand.adapters.processes import process_table
from steadyhand.cli import arguments
from steadyhand.cli.terminal import Terminal
from steadyhand_protocol import commands, methods, recovery, session, wire
from tests.support.process_server import PRESENT, ServerProcesses, server_command, server_processes
from tests.support.raw_client import Json
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
    """A user with a shell in the workspace of some servers."""

    servers: ServerProcesses

    def start(self, *words: str, **streams: Any) -> subprocess.Popen[bytes]:
        program, environment = server_command(self.servers.state)
        return subprocess.Popen(
            [*program[: program.index("--state-dir")], *words],
            env={**os.environ, **environment, "STEADYHAND_STATE_DIR": str(self.servers.state)},
            cwd=self.servers.root,
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
        """Run with a terminal as stdin, into which the answers are typed beforehand."""
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
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as found:
        found.workspace.write("a.txt", "old\n")
        yield found


@pytest.fixture
def shell(servers: ServerProcesses) -> Shell:
    return Shell(servers)


def fits(shape: Any, value: Any) -> Any:
    """Assert that the value has the strict type of the protocol, and return it."""
    assert wire.unstructure(wire.structure(shape, value)) == value
    return value


def conflict(servers: ServerProcesses) -> tuple[str, str]:
    """An interrupted write whose file somebody else changed afterwards: (session, attempt). No process holds the
    session."""
    session_id = servers.kill_in_turn(WRITE, PRESENT)
    servers.workspace.write("a.txt", "somebody's\n")
    (started,) = servers.having(session_id, "started")
    return session_id, started["attemptId"]


@contextmanager
def refusing_provider() -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """A provider that refuses every request for good, so that none is repeated: (address, requests so far)."""
    asked: list[tuple[str, Any]] = []

    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            asked.append((self.path, json.loads(body)))
            answer = json.dumps({"error": {"message": "no such key"}}).encode()
            self.send_response(401)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *values: Any) -> None:
            """stderr belongs to pytest."""

    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1", asked
        finally:
            server.shutdown()
            serving.join()


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
def test_invalid_flags_exit_with_2_and_usage_on_stderr(shell: Shell, words: list[str]) -> None:
    """docs/protocol.md: exit code 2, the usage on stderr, nothing on stdout."""
    ran = shell.run(*words)
    assert (ran.code, ran.out) == (2, "")
    assert "usage: steadyhand" in ran.err


def test_help_lists_every_verb_and_the_exit_codes(shell: Shell) -> None:
    """The verbs are those of the dispatcher; the help names the exit codes."""
    assert arguments.VERBS == VERBS
    assert all(verb in shell.run("--help").out for verb in VERBS)
    assert "128 + n for signal n" in shell.run("ask", "--help").out


@pytest.mark.parametrize("words", [["--json", "list"], ["list", "--json"], ["--json"]])
def test_recovery_flags_may_come_before_or_after_the_action(words: list[str]) -> None:
    """`recovery` alone lists; the position of `--json` does not matter."""
    found = arguments.parse_arguments(["recovery", *words])
    assert (found.subcommand, found.is_json) == ("list", True)


# --- reading --------------------------------------------------------------------------------------------------------


def test_empty_state_directory_lists_nothing(shell: Shell) -> None:
    """S3: an empty state directory is no error."""
    assert shell.run("sessions") == Ran(0, "There are no sessions.\n", "")
    assert shell.run("sessions", "--json").json == {"sessions": []}
    assert shell.run("recovery").out == "Nothing is uncertain.\n"


def test_sessions_show_and_export_change_no_byte(shell: Shell) -> None:
    """S3, G5: a session is listed, shown and exported, as text and in the shapes of the protocol; reading changes no
    byte."""
    asked = fits(commands.AskResult, shell.run("ask", "say hello", "--json").json)
    session_id = asked["sessionId"]
    listed = fits(session.SessionListResult, shell.run("sessions", "--json").json)
    assert [one["sessionId"] for one in listed["sessions"]] == [session_id]
    row = shell.run("sessions").out
    assert row.startswith(session_id[:8])
    assert row.rstrip().endswith(f"say hello  {shell.servers.root}")
    before = shell.servers.workspace.journal(session_id)
    shown = fits(session.SessionOpenResult, shell.run("show", session_id[:6], "--json", "--tail", "1").json)
    assert [one["role"] for one in shown["messages"]] == ["assistant"]
    assert shown["more"] is True
    assert "hello" in shell.run("show", session_id).out
    text = shell.run("export", session_id).out
    assert text.startswith("# say hello\n")
    assert fits(session.SessionExportResult, shell.run("export", session_id, "--json").json)["text"] == text
    assert json.loads(shell.run("export", session_id, "--format", "json").out)["format"] == 1
    assert shell.servers.workspace.journal(session_id) == before


def test_show_reads_a_session_that_an_editor_holds(shell: Shell) -> None:
    """J11: the session is shown while an editor holds it, names its lock holder, and the editor is not disturbed."""
    client = shell.servers.start()
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
        (["ask", " "], "The text is empty, so there is nothing to ask."),
    ],
)
def test_refusal_exits_with_1_and_one_sentence(shell: Shell, words: list[str], said: str) -> None:
    """Exit code 1, one sentence on stderr; with --json an error with its kind on stdout."""
    ran = shell.run(*words)
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert said in shell.run(*words, "--json").json["error"]["message"]


def test_settings_come_from_flags_then_environment_then_defaults(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/protocol.md: flags win over the environment, the environment over the default; an invalid flag exits with 2,
    an invalid variable gives one sentence."""
    chosen = ["--provider", "compatible", "--model", "x", "--base-url"]
    nowhere = [*chosen, "http://127.0.0.1:1/v1"]
    found = shell.run("doctor", "--json", *nowhere, "--api-key-env", "MINE").json
    assert found["model"] == {"provider": "compatible", "name": "x"}
    assert "MINE" in found["provider"][0]["text"]
    assert "cannot be reached" in shell.run("doctor", *nowhere).out
    with refusing_provider() as (address, asked):
        ran = shell.run("ask", "hello", *chosen, address)
    assert ran.code == 1
    assert "does not accept the key" in ran.err
    assert [(path, body["model"]) for path, body in asked] == [("/v1/chat/completions", "x")]
    monkeypatch.setenv("STEADYHAND_MODEL_PROVIDER", "ollama")
    monkeypatch.setenv("STEADYHAND_COST_CAP", "lots")
    ran = shell.run("ask", "say hi", "--setting", "model.provider=practice", "--json")
    assert (ran.code, ran.json["reason"]) == (0, "done")
    assert "STEADYHAND_COST_CAP is not a number" in ran.err
    ran = shell.run("ask", "say more", "--session", ran.json["sessionId"])
    assert ran.code == 0, "a session keeps its own model"
    for bad in (["--setting", "nothing=1"], ["--setting", "mode"], ["--setting", "mode=fast"]):
        ran = shell.run("ask", "hello", *bad)
        assert (ran.code, ran.out) == (2, "")
        assert "--setting" in ran.err


def test_doctor_names_withheld_variables_without_their_values(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """E1: the doctor names the variables that children do not get, and never shows a value; the editor's doctor says
    the same."""
    monkeypatch.setenv("DEPLOY_TOKEN", "correct-horse")
    found = fits(commands.DoctorResult, shell.run("doctor", "--json").json)
    assert found["paths"]["state"] == str(shell.servers.state)
    assert any("DEPLOY_TOKEN" in note for note in found["notes"])
    ran = shell.run("doctor")
    assert "Session locks work." in ran.out
    assert "DEPLOY_TOKEN" in ran.out
    assert "correct-horse" not in ran.out + json.dumps(found)
    assert any("DEPLOY_TOKEN" in note for note in shell.servers.start().command("doctor")["notes"])


# --- ask ------------------------------------------------------------------------------------------------------------


def test_ask_runs_a_turn_here_and_continues_a_session(shell: Shell) -> None:
    """P5, G6: a turn in this process; the answer is on stdout, what really changed is on stderr; a session can be
    continued."""
    ran = shell.run("ask", WRITE, "--mode", "auto")
    assert ran.code == 0
    assert ran.out == "done: 1 of 1\n"
    assert "modified: a.txt" in ran.err
    assert shell.servers.workspace.files()["a.txt"] == "new\n"
    (session_id,) = shell.servers.sessions()
    assert shell.run("ask", "show a.txt", "--session", session_id[:8]).code == 0
    assert len(shell.servers.having(session_id, "user")) == 2
    assert shell.servers.having(session_id, "ended")[-1]["reason"] == "done"


def test_ask_without_a_terminal_refuses_permission(shell: Shell) -> None:
    """G2: without an answer there is no permission."""
    ran = shell.run("ask", WRITE)
    assert "not_answered" in ran.out
    assert shell.servers.workspace.files()["a.txt"] == "old\n"


@pytest.mark.parametrize(("typed", "content"), [("1\n", "new\n"), ("3\n", "old\n"), ("yes\n9\n\n", "old\n")])
def test_ask_at_a_terminal_takes_the_number_of_an_option(shell: Shell, typed: str, content: str) -> None:
    """G2: the user answers by number; a number that is not offered is asked again, and gives no permission in the
    end."""
    ran = shell.typed(typed, "ask", WRITE)
    assert ran.code == 0
    assert "1. Allow once" in ran.err
    assert shell.servers.workspace.files()["a.txt"] == content


def test_interrupt_cancels_the_turn_and_its_command(shell: Shell) -> None:
    """G8, case 98: the cancel is recorded, the command is ended, the exit code is 130."""
    process = shell.start("ask", "run echo up > up.txt; sleep 300", "--mode", "auto")
    client = shell.servers
    try:
        up = client.workspace.root / "up.txt"
        _until(up.exists)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=run_s_max)
    finally:
        process.kill()
    assert process.returncode == 128 + signal.SIGINT
    (session_id,) = client.sessions()
    assert client.having(session_id, "ended")[-1]["reason"] == "cancelled"
    (started,) = client.having(session_id, "started")
    assert process_table.find_survivors(started["attemptId"]) == []


def test_closed_stdout_loses_only_the_answer(shell: Shell) -> None:
    """E4: a closed pipe ends nothing but the answer."""
    ours, theirs = os.pipe()
    os.close(ours)
    process = shell.start("ask", f"say one\n{WRITE}", "--mode", "auto", stdout=theirs)
    os.close(theirs)
    _, err = process.communicate(timeout=run_s_max)
    assert process.returncode in (0, 1)
    assert b"Traceback" not in err
    assert shell.servers.workspace.files()["a.txt"] == "new\n"


def test_uncertain_effect_holds_back_a_call_of_ask(shell: Shell) -> None:
    """B1, B4, case 122: an uncertain effect of another session in the same folder holds the call back; the refusal
    names this command line, and the exit code says that a decision is missing."""
    _, attempt_id = conflict(shell.servers)
    ran = shell.run("ask", 'write a.txt with "mine\\n"', "--mode", "auto", "--json")
    assert ran.code == 3
    assert "see `recovery list`" in ran.err
    assert "recovery_required" in ran.json["text"]
    _, reply = shell.servers.having(ran.json["sessionId"], "tool")  # the file is read first (row V3)
    assert f"`steadyhand recovery inspect {attempt_id[:8]}`" in reply["text"]
    assert shell.servers.workspace.files()["a.txt"] == "somebody's\n"
    assert shell.run("recovery", "waive", attempt_id[:8], "--yes").code == 0
    assert shell.run("ask", 'write a.txt with "mine\\n"', "--mode", "auto").code == 0
    assert shell.servers.workspace.files()["a.txt"] == "mine\n"


def test_uncertain_effect_holds_back_ask_in_the_same_folder_by_a_link(shell: Shell) -> None:
    """Cases 163, 164: the folder is given through a link. The first effect waits for the doubts of that folder."""
    _, attempt_id = conflict(shell.servers)
    link = shell.servers.workspace.base / "link"
    os.symlink(shell.servers.root, link)
    ran = shell.run("ask", 'write a.txt with "mine\\n"', "--workspace", str(link), "--mode", "auto", "--json")
    assert "recovery_required" in ran.json["text"]
    _, reply = shell.servers.having(ran.json["sessionId"], "tool")  # the file is read first (row V3)
    assert attempt_id in reply["text"]
    assert shell.servers.workspace.files()["a.txt"] == "somebody's\n"


def test_terminal_shows_control_characters_as_symbols() -> None:
    """E4: the terminal shows control characters as symbols."""
    out = io.StringIO()
    Terminal(out, io.StringIO(), None).write_line("a\x1b[2Jb\x9bc")
    assert out.getvalue() == "a␛[2Jb\\u009bc\n"


# --- recovery -------------------------------------------------------------------------------------------------------


def test_recovery_lists_and_inspects_by_id_prefix(shell: Shell) -> None:
    """B4, A4: recovery finds uncertain effects of all sessions without an editor; every action takes the first digits
    of an id."""
    session_id, attempt_id = conflict(shell.servers)
    assert shell.run("recovery", "list").out.startswith(f"{attempt_id[:8]}  write_file: a.txt: conflict, session ")
    printed = shell.run("recovery", "list", "--json").json
    counted = fits(recovery.Statistics, printed.pop("statistics")[session_id])
    assert (counted["unknown"], counted["byPerson"]) == (1, 0)
    listed = fits(recovery.RecoveryListResult, printed)
    assert [one["attemptId"] for one in listed["uncertain"]] == [attempt_id]
    assert shell.run("recovery", "list", "--session", session_id, "--json").json["uncertain"] == listed["uncertain"]
    looked = fits(recovery.ResolveResult, shell.run("recovery", "inspect", attempt_id[:4], "--json").json)
    assert looked["inspection"]["check"] == "conflict"
    said = shell.run("recovery", "inspect", attempt_id).out
    assert "neither" in said
    assert "-somebody's" in said


@pytest.mark.parametrize(
    ("action", "left", "settled"),
    [("confirm", 0, "user_confirmed"), ("waive", 0, "waived"), ("reject", 1, None)],
)
def test_recovery_decision_rests_on_its_own_inspection(
    shell: Shell, action: str, left: int, settled: str | None
) -> None:
    """B4, A3: a decision makes its own inspection, which is stored and shown."""
    session_id, attempt_id = conflict(shell.servers)
    ran = shell.run("recovery", action, attempt_id[:8], "--yes", "--json")
    assert ran.code == 0
    done = fits(recovery.ResolveResult, ran.json)
    assert len(done["snapshot"]["calls"]) == left
    assert "neither" in ran.err
    found = shell.servers.having(session_id, "settlement")
    assert [one["settled"] for one in found] == ([settled] if settled else [])
    assert all(one["by"] == "user" for one in found)
    assert len(shell.servers.having(session_id, "inspection")) == 1
    assert bool(shell.servers.having(session_id, "reject")) is (action == "reject")


def test_recovery_restores_and_refuses_a_disabled_retry(shell: Shell) -> None:
    """A5: restore brings back the content before; a retry that is switched off is refused before anything is
    inspected."""
    session_id, attempt_id = conflict(shell.servers)
    refused = shell.run("recovery", "retry", attempt_id, "--yes", "--json")
    assert (refused.code, refused.json["error"]["kind"]) == (1, "retryDisabled")
    assert shell.servers.having(session_id, "inspection") == []
    allowed = shell.run("recovery", "retry", attempt_id, "--yes", "--json", "--setting", "recovery.retry=true")
    assert (allowed.code, allowed.json["error"]["kind"]) == (1, "retryUnsafe"), "on, and not proved absent"
    done = fits(recovery.ResolveResult, shell.run("recovery", "restore", attempt_id, "--yes", "--json").json)
    assert done["snapshot"]["calls"] == []
    assert shell.servers.workspace.files()["a.txt"] == "old\n"


@pytest.mark.parametrize(("typed", "code"), [("1\n", 0), ("2\n", 1), ("\x04", 1)])
def test_recovery_decision_at_a_terminal_needs_a_yes(shell: Shell, typed: str, code: int) -> None:
    """A3: the finding is shown; without a yes nothing is decided."""
    session_id, attempt_id = conflict(shell.servers)
    ran = shell.typed(typed, "recovery", "confirm", attempt_id)
    assert ran.code == code
    assert "neither" in ran.err
    assert len(shell.servers.having(session_id, "settlement")) == (1 if code == 0 else 0)


def test_recovery_decision_without_terminal_needs_the_yes_flag(shell: Shell) -> None:
    """A3: without a terminal and without `--yes` the finding is shown and nothing is decided."""
    session_id, attempt_id = conflict(shell.servers)
    ran = shell.run("recovery", "confirm", attempt_id)
    assert ran.code == 1
    assert "neither" in ran.err
    assert "--yes" in ran.err
    assert shell.servers.having(session_id, "settlement") == []


def test_recovery_list_settles_what_the_check_proves(shell: Shell) -> None:
    """B3: `recovery` opens the session as an editor does, and settles what the check proves; a second run finds
    nothing."""
    session_id = shell.servers.kill_in_turn(WRITE, PRESENT)
    assert "checked_present" in shell.run("recovery").out
    assert shell.run("recovery").out == "Nothing is uncertain.\n"
    assert [one["settled"] for one in shell.servers.having(session_id, "settlement")] == ["checked_present"]


def test_recovery_leaves_decisions_to_the_lock_holder(shell: Shell) -> None:
    """J11: while an editor holds the session, it is listed with its lock holder, and this process decides nothing."""
    session_id, attempt_id = conflict(shell.servers)
    client = shell.servers.start()
    client.opened(session_id)
    listed = shell.run("recovery", "list")
    assert attempt_id[:8] in listed.out
    assert f"process {client.process.pid}" in listed.out
    ran = shell.run("recovery", "waive", attempt_id, "--yes")
    assert (ran.code, ran.out) == (1, "")
    assert f"process {client.process.pid}" in ran.err
    assert shell.servers.having(session_id, "settlement") == []
    assert client.snapshot(session_id)["calls"][0]["attemptId"] == attempt_id


def test_recovery_ends_surviving_processes_and_settles_nothing(shell: Shell) -> None:
    """E5: the command line also ends what the command of a killed server left running; it settles nothing."""
    client = shell.servers.start()
    client.ask_turn("run setsid sleep 300 & echo up > up.txt; sleep 300")
    client.wait_for(lambda: True if (shell.servers.root / "up.txt").exists() else None, 20)
    client.process.kill()
    client.wait_exit()
    (session_id,) = shell.servers.sessions()
    (started,) = shell.servers.having(session_id, "started")
    attempt_id = started["attemptId"]
    try:
        assert "still running: process" in shell.run("recovery", "inspect", attempt_id).out
        ended: Json = shell.run("recovery", "end-survivors", attempt_id, "--yes", "--json").json
        fits(recovery.EndSurvivorsResult, ended)
        assert ended["ended"] >= 2
        assert ended["left"] == 0
        assert process_table.find_survivors(attempt_id) == []
        assert attempt_id[:8] in shell.run("recovery").out
    finally:
        for one in process_table.find_survivors(attempt_id) or ():
            process_table.signal_process(one.pid, one.started, signal.SIGKILL)


def test_recovery_actions_match_the_commands_of_the_protocol() -> None:
    """docs/protocol.md: the command line can decide what the commands can."""
    actions = {action.replace("end-survivors", "endSurvivors") for action in arguments._RECOVERY}
    assert {f"steadyhand.recovery.{action}" for action in actions} <= set(methods.COMMANDS_BY_NAME)


def _until(look: Any) -> None:
    """Wait until the condition holds; a file sends no event when it appears."""
    done = threading.Event()
    for _ in range(run_s_max * 20):
        if look():
            return
        done.wait(0.05)
    raise AssertionError("it did not come")
