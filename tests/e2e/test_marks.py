"""Diagnostics, code actions and lenses of an uncertain effect, as a plain LSP client gets them (row A8,
docs/protocol.md).

`tests/e2e/test_recovery_checks.py` has a diagnostic for each check; this file tests what is offered there, and when.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from lsprotocol import types
from pytest_lsp import client_capabilities, make_test_lsp_client

from tests.support.lsp_clients import ASK_MESSAGE, TypedClient, only
from tests.support.process_server import PRESENT, ServerProcesses, server_command, server_processes
from tests.support.raw_client import Json
from tests.support.systems import linux_only

pytestmark = linux_only

TITLES = {
    "inspect": "Steadyhand: Inspect",
    "confirm": "Steadyhand: Confirm",
    "reject": "Steadyhand: Reject (do not repeat; stays uncertain)",
    "waive": "Steadyhand: Continue without knowing",
    "restore": "Steadyhand: Restore",
}
WRITE = 'write a.txt with "one\\ntwo\\nthree\\n"'
SAVED = "one\nZWÖ 😀\nthree\n"


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as found:
        found.workspace.write("a.txt", "old\n")
        yield found


def make_uncertain(servers: ServerProcesses, **more: Any) -> tuple[str, TypedClient]:
    """An uncertain write; somebody changed the second line of its file."""
    session_id = servers.kill_in_turn(WRITE, PRESENT)
    servers.workspace.write("a.txt", SAVED)
    client = servers.start(**more)
    client.wait_diagnostic("a.txt", "uncertain-write")
    return session_id, client


def at(line: int, character: int = 0) -> Json:
    place = {"line": line, "character": character}
    return {"start": place, "end": place}


def inspected(client: TypedClient, session_id: str) -> Json:
    """Inspect, and wait until the diagnostics have followed."""
    looked = client.inspected(session_id, only(client.snapshot(session_id))["attemptId"])
    client.wait_for(lambda: len(client.lenses("a.txt")) == len(TITLES) or None, 10)
    return looked


@pytest.mark.parametrize(("encoding", "width"), [("utf-8", 9), ("utf-16", 6), ("utf-32", 5)])
def test_diagnostic_range_is_the_first_differing_line_in_the_encoding(
    servers: ServerProcesses, encoding: str, width: int
) -> None:
    """docs/protocol.md: the range is the whole first line that differs; positions use the negotiated encoding."""
    _, client = make_uncertain(servers, capabilities={"general": {"positionEncodings": [encoding]}})
    found = client.wait_diagnostic("a.txt", "uncertain-write")["range"]
    assert found == {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": width}}


def test_code_actions_carry_what_was_shown_before_and_after_inspect(servers: ServerProcesses) -> None:
    """docs/protocol.md: only Inspect before an inspection, then one quick fix for each offered action, word for word.
    Each carries what was shown, and its diagnostic; lenses do the same."""
    session_id, client = make_uncertain(servers)
    assert [action["title"] for action in client.code_actions("a.txt")] == ["Steadyhand: Inspect"]
    looked = inspected(client, session_id)
    snapshot, inspection_id = looked["snapshot"], looked["inspection"]["inspectionId"]
    actions = client.code_actions("a.txt")
    assert [action["title"] for action in actions] == list(TITLES.values())
    shown = {
        "sessionId": session_id,
        "attemptId": only(snapshot)["attemptId"],
        "runtimeEpoch": snapshot["runtimeEpoch"],
        "revision": snapshot["revision"],
    }
    for word, action in zip(TITLES, actions, strict=True):
        assert action["kind"] == "quickfix"
        assert action["diagnostics"] == client.diagnostics("a.txt")
        carried = shown if word == "inspect" else {**shown, "inspectionId": inspection_id}
        expected = {"title": TITLES[word], "command": f"steadyhand.recovery.{word}", "arguments": [carried]}
        assert action["command"] == expected
    lenses = client.lenses("a.txt")
    assert [lens["command"] for lens in lenses] == [action["command"] for action in actions]
    assert all(lens["range"] == client.wait_diagnostic("a.txt", "uncertain-write")["range"] for lens in lenses)


def test_checked_write_offers_inspect_only(servers: ServerProcesses) -> None:
    """B3, docs/protocol.md: a `checked-write` offers Inspect, and no second decision about the effect. It is known to
    have happened, so it is also a change under review, to keep or to undo (V4)."""
    servers.kill_in_turn(WRITE, PRESENT)
    client = servers.start()
    client.wait_diagnostic("a.txt", "checked-write")
    actions = client.code_actions("a.txt")
    assert [action["title"] for action in actions if "diagnostics" in action] == ["Steadyhand: Inspect"]
    assert [action["title"] for action in actions[1:]] == ["Steadyhand: Keep", "Steadyhand: Undo this change"]


@pytest.mark.parametrize(
    ("only_kinds", "offered"),
    [
        (["quickfix"], True),
        ([""], True),
        (["refactor", "quickfix"], True),
        ([], True),
        (["source"], False),
        (["refactor.extract", "source.organizeImports"], False),
        (["quickfix.steadyhand"], False),
        (["quick"], False),
    ],
)
def test_code_actions_respect_the_requested_kinds(
    servers: ServerProcesses, only_kinds: list[str], offered: bool
) -> None:
    """docs/protocol.md: kinds are hierarchical; an empty list requests nothing in particular."""
    _, client = make_uncertain(servers)
    assert bool(client.code_actions("a.txt", only=only_kinds)) is offered


def test_code_actions_are_offered_at_range_or_given_diagnostic(servers: ServerProcesses) -> None:
    """docs/protocol.md: the requested range meets the diagnostic, or `context.diagnostics` contains it, with or without
    its data."""
    session_id, client = make_uncertain(servers)
    servers.workspace.write("b.txt", "another\n")
    (mark,) = client.diagnostics("a.txt") or []
    for place in (at(1), at(1, 3), at(1, 6), {"start": at(0)["start"], "end": at(1)["start"]}):
        assert client.code_actions("a.txt", range=place), place
    assert client.code_actions("a.txt", range=at(0)) == client.code_actions("a.txt", range=at(2)) == []
    assert client.code_actions("b.txt") == client.lenses("b.txt") == []
    without = {name: value for name, value in mark.items() if name != "data"}
    for held in (mark, without):
        assert client.code_actions("a.txt", range=at(2), diagnostics=[held])
    for other in (
        {**mark, "source": "another"},
        {**mark, "data": {"sessionId": session_id, "attemptId": "f" * 32}},
        {**without, "message": "something else"},
    ):
        assert client.code_actions("a.txt", range=at(2), diagnostics=[other]) == []


def test_code_action_after_inspect_decides_without_a_question(servers: ServerProcesses) -> None:
    """A8: Inspect, then Confirm, as an editor runs them; the server asks nothing, because it showed an inspection."""
    session_id, client = make_uncertain(servers)
    (inspect,) = client.code_actions("a.txt")
    assert client.run(inspect["command"])["inspection"]["check"] == "conflict"
    client.wait_for(lambda: len(client.code_actions("a.txt")) == len(TITLES) or None, 10)
    confirm = client.code_actions("a.txt")[1]
    assert client.run(confirm["command"])["snapshot"]["settled"][0]["settled"] == "user_confirmed"
    client.wait_diagnostic("a.txt", None)
    assert client.code_actions("a.txt") == client.lenses("a.txt") == []
    assert not [message for message in client.messages if message.get("method") == ASK_MESSAGE]
    assert servers.having(session_id, "settlement")


def test_stale_code_action_is_refused(servers: ServerProcesses) -> None:
    """A9, [I8]: a code action from before another decision is refused; the server does not guess."""
    session_id, client = make_uncertain(servers)
    inspected(client, session_id)
    confirm, reject = client.code_actions("a.txt")[1:3]
    client.run(reject["command"])
    refused = client.refusal(lambda: client.run(confirm["command"]))
    assert refused.data["kind"] == "staleSnapshot"
    assert servers.having(session_id, "settlement") == []


def test_diagnostic_moves_after_a_save(servers: ServerProcesses) -> None:
    """A8: after the user saved the file in the editor, the diagnostic is at the line that differs now."""
    _, client = make_uncertain(servers)
    document = {"uri": (servers.root / "a.txt").as_uri()}
    client.notify(
        "textDocument/didOpen", {"textDocument": {**document, "languageId": "text", "version": 1, "text": SAVED}}
    )
    servers.workspace.write("a.txt", "one\ntwo\nthree\nfour\n")
    client.notify("textDocument/didSave", {"textDocument": document})
    client.wait_for(
        lambda: client.wait_diagnostic("a.txt", "uncertain-write")["range"]["start"]["line"] == 3 or None, 60
    )


def test_diagnostic_uses_the_uri_spelling_of_the_current_client(servers: ServerProcesses) -> None:
    """A8: the session was created by a client that spells the folder in another way; the diagnostic has the URI that
    this client has open."""
    servers.workspace.write("a.txt", SAVED)
    servers.kill_in_turn(WRITE, PRESENT)
    servers.workspace.write("a.txt", SAVED)
    spelled = servers.workspace.uri.removesuffix("ws") + "%77s"
    client = servers.start(folders=[spelled])
    told = client.notification("textDocument/publishDiagnostics", 20)
    assert told["uri"] == f"{spelled}/a.txt"
    document = {"textDocument": {"uri": servers.workspace.uri + "/a.txt"}}
    assert client.request("textDocument/codeLens", document), "and is found under the other spelling too"


def test_second_uncertain_effect_on_a_file_replaces_the_diagnostic(servers: ServerProcesses) -> None:
    """A8: the user waived the first effect for a second one on the same file, which then became uncertain too: there is
    one diagnostic, for the second effect."""
    session_id, client = make_uncertain(servers)
    assert client.shut_down() == 0
    client = servers.start(PRESENT)
    looked = inspected(client, session_id)
    turn = client.ask_turn('write a.txt with "two\\n"', sessionId=session_id)
    client.answer_to(client.question(), "Continue without knowing")
    assert client.wait_exit() < 0
    assert client.answers(turn) == []
    servers.workspace.write("a.txt", "something else\n")
    client = servers.start()
    client.wait_diagnostic("a.txt", "uncertain-write")
    later = only(client.snapshot(session_id))
    assert later["attemptId"] != only(looked["snapshot"])["attemptId"], "the waived one is not marked again"


# --- a client of another project -----------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_pytest_lsp_client_gets_diagnostic_and_code_action(servers: ServerProcesses) -> None:
    """A8: with the capabilities of a real editor; lsprotocol reads everything that the server sends."""
    servers.kill_in_turn(WRITE, PRESENT)
    servers.workspace.write("a.txt", SAVED)
    command, environment = server_command(servers.state)
    client = make_test_lsp_client()
    uri = (servers.root / "a.txt").as_uri()
    with anyio.fail_after(100):
        await client.start_io(command[0], *command[1:], env={**os.environ, **environment})
        try:
            await client.initialize_session(
                types.InitializeParams(
                    capabilities=client_capabilities("neovim"),
                    workspace_folders=[types.WorkspaceFolder(uri=servers.workspace.uri, name="work")],
                )
            )
            while not client.diagnostics.get(uri):  # noqa: ASYNC110  # the client keeps the last ones and tells nobody
                await anyio.sleep(0.02)
            (mark,) = client.diagnostics[uri]
            assert (mark.code, mark.severity, mark.range.start.line) == ("uncertain-write", 2, 1)
            offered = await client.text_document_code_action_async(
                types.CodeActionParams(
                    text_document=types.TextDocumentIdentifier(uri=uri),
                    range=mark.range,
                    context=types.CodeActionContext(diagnostics=[mark]),
                )
            )
            assert offered is not None
            assert [action.title for action in offered] == ["Steadyhand: Inspect"]
        finally:
            await client.shutdown_session()
