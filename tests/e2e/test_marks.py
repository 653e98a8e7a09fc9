"""Diagnostics, code actions and lenses of an uncertain effect, as a bare LSP client sees them (row A8, wire.md).

`tests/e2e/test_recovery_checks.py` has a diagnostic for each check; here is what is offered at it, and when.
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

from tests.support.killed_server import shipped
from tests.support.recovered import ASK_MESSAGE, PRESENT, Client, Json, Lives, lives_in, only
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
def lives(tmp_path: Path) -> Iterator[Lives]:
    with lives_in(tmp_path) as found:
        found.place.write("a.txt", "old\n")
        yield found


def doubtful(lives: Lives, **more: Any) -> tuple[str, Client]:
    """An uncertain write whose file somebody changed in its second line."""
    session_id = lives.die(WRITE, PRESENT)
    lives.place.write("a.txt", SAVED)
    client = lives.start(**more)
    client.squiggle("a.txt", "uncertain-write")
    return session_id, client


def at(line: int, character: int = 0) -> Json:
    place = {"line": line, "character": character}
    return {"start": place, "end": place}


def inspected(client: Client, session_id: str) -> Json:
    """Inspect, and wait until the marks have followed."""
    looked = client.inspected(session_id, only(client.snapshot(session_id))["attemptId"])
    client.wait_for(lambda: len(client.lenses("a.txt")) == len(TITLES) or None, 10)
    return looked


@pytest.mark.parametrize(("encoding", "width"), [("utf-8", 9), ("utf-16", 6), ("utf-32", 5)])
def test_the_range_is_the_whole_line_in_the_client_s_units(lives: Lives, encoding: str, width: int) -> None:
    """wire.md: the whole of the first line that differs; positions follow the negotiated encoding."""
    _, client = doubtful(lives, capabilities={"general": {"positionEncodings": [encoding]}})
    found = client.squiggle("a.txt", "uncertain-write")["range"]
    assert found == {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": width}}


def test_titles_and_what_they_carry(lives: Lives) -> None:
    """wire.md: Inspect alone before an inspection, then one quick fix for each offered action, word for word; each
    carries what was shown, and its diagnostic; lenses likewise."""
    session_id, client = doubtful(lives)
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
    assert all(lens["range"] == client.squiggle("a.txt", "uncertain-write")["range"] for lens in lenses)


def test_what_was_settled_by_a_check(lives: Lives) -> None:
    """B3, wire.md: at a `checked-write` there is Inspect, and nothing that decides again."""
    lives.die(WRITE, PRESENT)
    client = lives.start()
    client.squiggle("a.txt", "checked-write")
    assert [action["title"] for action in client.code_actions("a.txt")] == ["Steadyhand: Inspect"]


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
def test_only_is_honoured(lives: Lives, only_kinds: list[str], offered: bool) -> None:
    """wire.md: kinds are hierarchical; an empty list asks for nothing in particular."""
    _, client = doubtful(lives)
    assert bool(client.code_actions("a.txt", only=only_kinds)) is offered


def test_where_they_are_offered(lives: Lives) -> None:
    """wire.md: the asked range meets the diagnostic, or `context.diagnostics` holds it, with or without its data."""
    session_id, client = doubtful(lives)
    lives.place.write("b.txt", "another\n")
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


def test_a_code_action_decides(lives: Lives) -> None:
    """A8: Inspect, then Confirm, as an editor runs them; nobody is asked, since an inspection was shown."""
    session_id, client = doubtful(lives)
    (inspect,) = client.code_actions("a.txt")
    assert client.run(inspect["command"])["inspection"]["check"] == "conflict"
    client.wait_for(lambda: len(client.code_actions("a.txt")) == len(TITLES) or None, 10)
    confirm = client.code_actions("a.txt")[1]
    assert client.run(confirm["command"])["snapshot"]["settled"][0]["settled"] == "user_confirmed"
    client.squiggle("a.txt", None)
    assert client.code_actions("a.txt") == client.lenses("a.txt") == []
    assert not [message for message in client.messages if message.get("method") == ASK_MESSAGE]
    assert lives.having(session_id, "settlement")


def test_a_stale_code_action_decides_nothing(lives: Lives) -> None:
    """A9, [I8]: one that was offered before something else was decided is refused, not guessed at."""
    session_id, client = doubtful(lives)
    inspected(client, session_id)
    confirm, reject = client.code_actions("a.txt")[1:3]
    client.run(reject["command"])
    refused = client.refusal(lambda: client.run(confirm["command"]))
    assert refused.data["kind"] == "staleSnapshot"
    assert lives.having(session_id, "settlement") == []


def test_the_place_follows_a_save(lives: Lives) -> None:
    """A8: after the person saved the file in the editor the mark stands where it differs now."""
    _, client = doubtful(lives)
    document = {"uri": (lives.place.workspace / "a.txt").as_uri()}
    client.notify(
        "textDocument/didOpen", {"textDocument": {**document, "languageId": "text", "version": 1, "text": SAVED}}
    )
    lives.place.write("a.txt", "one\ntwo\nthree\nfour\n")
    client.notify("textDocument/didSave", {"textDocument": document})
    client.wait_for(lambda: client.squiggle("a.txt", "uncertain-write")["range"]["start"]["line"] == 3 or None, 10)


def test_the_uri_is_the_client_s_own(lives: Lives) -> None:
    """A8: the session was created by a client that spells the folder in another way; the diagnostic comes for the URI
    that this client has open."""
    lives.place.write("a.txt", SAVED)
    lives.die(WRITE, PRESENT)
    lives.place.write("a.txt", SAVED)
    spelled = lives.place.uri.replace("workspace", "%77orkspace")
    client = lives.start(folders=[spelled])
    told = client.notification("textDocument/publishDiagnostics", 20)
    assert told["uri"] == f"{spelled}/a.txt"
    document = {"textDocument": {"uri": lives.place.uri + "/a.txt"}}
    assert client.request("textDocument/codeLens", document), "and is found under the other spelling too"


def test_a_file_in_doubt_twice(lives: Lives) -> None:
    """A8: the first effect was waived for a second one on the same file, which then became uncertain itself: there is
    one mark, and it is the second's."""
    session_id, client = doubtful(lives)
    assert client.shut_down() == 0
    client = lives.start(PRESENT)
    looked = inspected(client, session_id)
    turn = client.ask_turn('write a.txt with "two\\n"', sessionId=session_id)
    client.answer_to(client.question(), "Continue without knowing")
    assert client.wait_exit(20) < 0
    assert client.answers(turn) == []
    lives.place.write("a.txt", "something else\n")
    client = lives.start()
    client.squiggle("a.txt", "uncertain-write")
    later = only(client.snapshot(session_id))
    assert later["attemptId"] != only(looked["snapshot"])["attemptId"], "the waived one is not marked again"


# --- a client somebody else wrote -----------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_pytest_lsp_s_client_sees_it(lives: Lives) -> None:
    """A8: with the capabilities of a real editor, and lsprotocol's own reading of everything that comes."""
    lives.die(WRITE, PRESENT)
    lives.place.write("a.txt", SAVED)
    command, environment = shipped(lives.place.state)
    client = make_test_lsp_client()
    uri = (lives.place.workspace / "a.txt").as_uri()
    with anyio.fail_after(40):
        await client.start_io(command[0], *command[1:], env={**os.environ, **environment})
        try:
            await client.initialize_session(
                types.InitializeParams(
                    capabilities=client_capabilities("neovim"),
                    workspace_folders=[types.WorkspaceFolder(uri=lives.place.uri, name="work")],
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
