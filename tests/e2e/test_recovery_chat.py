"""The chat lines of recovery: `/recovery`, and `/recovery ACTION [ID]` (wire.md; rows B4, A8)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.recovered import PRESENT, Client, Lives, lives_in, only
from tests.support.systems import linux_only

pytestmark = linux_only


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    with lives_in(tmp_path) as found:
        found.place.write("a.txt", "old\n")
        yield found


def doubtful(lives: Lives, count: int = 1) -> tuple[Client, str, list[str]]:
    """A client, a session, and its uncertain attempts, oldest first."""
    session_id = lives.die("write a.txt with new", PRESENT)
    lives.place.write("a.txt", "somebody's\n")
    client = lives.start()
    for number in range(1, count):
        client.snapshot(session_id)
        assert client.shut_down() == 0
        lives.die(f"write f{number}.txt with new", PRESENT, session_id=session_id)
        lives.place.write(f"f{number}.txt", "somebody's\n")
        client = lives.start()
    attempts = [call["attemptId"] for call in client.snapshot(session_id)["calls"]]
    assert len(attempts) == count
    return client, session_id, attempts


def say(client: Client, session_id: str, line: str) -> str:
    """The answer to a line; its turn ends well whatever it was."""
    ended = client.say(line, sessionId=session_id)
    assert ended["reason"] == "done"
    assert ended["changed"] == []
    return str(ended["text"])


def test_the_list(lives: Lives) -> None:
    """wire.md: number, first 8 digits, title, check, actions; no model is asked."""
    client, session_id, (first, second) = doubtful(lives, 2)
    assert say(client, session_id, "/recovery").splitlines() == [
        f"1. {first[:8]} write_file: a.txt: conflict (inspect)",
        f"2. {second[:8]} write_file: f1.txt: conflict (inspect)",
    ]
    assert len(lives.having(session_id, "usage")) == 2, "those of the two killed turns"


def test_nothing_is_uncertain(lives: Lives) -> None:
    """wire.md: the lines are answered in words where there is nothing to decide."""
    client = lives.start()
    session_id = client.own("session/create")["sessionId"]
    for line in ("/recovery", "/recovery confirm", "/recovery inspect abcd"):
        assert say(client, session_id, line) == "Nothing is uncertain."


@pytest.mark.parametrize(("action", "settled"), [("confirm", "user_confirmed"), ("waive", "waived"), ("reject", None)])
def test_the_same_line_again_acts(lives: Lives, action: str, settled: str | None) -> None:
    """wire.md: without an inspection it inspects and says the finding; the same line again acts on it."""
    client, session_id, (attempt_id,) = doubtful(lives)
    line = f"/recovery {action} {attempt_id[:4]}"
    said = say(client, session_id, line)
    assert "neither as it was before nor as intended" in said
    assert "This speaks of the file now" in said
    assert f"/recovery {action} again" in said
    assert lives.having(session_id, "settlement") == lives.having(session_id, "reject") == []
    assert "write_file: a.txt" in say(client, session_id, line)
    if settled is None:
        assert only(client.snapshot(session_id))["state"] == "rejected"
    else:
        (record,) = lives.having(session_id, "settlement")
        assert (record["settled"], record["by"]) == (settled, "user")


def test_inspect_looks_each_time(lives: Lives) -> None:
    """wire.md: inspect never decides."""
    client, session_id, _ = doubtful(lives)
    assert "neither" in say(client, session_id, "/recovery inspect")
    lives.place.write("a.txt", "new")
    assert "has the intended content now" in say(client, session_id, "/recovery inspect")
    assert only(client.snapshot(session_id))["state"] == "unknown"


def test_the_file_changed_between_the_two_lines(lives: Lives) -> None:
    """A5: the second line settles nothing and says what is found now; the third acts on that."""
    client, session_id, _ = doubtful(lives)
    say(client, session_id, "/recovery confirm")
    lives.place.write("a.txt", "new")
    said = say(client, session_id, "/recovery confirm")
    assert said.startswith("Not done:")
    assert "has the intended content now" in said
    say(client, session_id, "/recovery confirm")
    assert [record["settled"] for record in lives.having(session_id, "settlement")] == ["checked_present"]


def test_which_one_is_meant(lives: Lives) -> None:
    """wire.md: a unique beginning of 4 or more digits, or the whole; left out when there is just one."""
    client, session_id, (first, second) = doubtful(lives, 2)
    said = say(client, session_id, "/recovery waive")
    assert "There are 2" in said
    assert first[:8] in said
    assert second[:8] in said
    assert "at least 4" in say(client, session_id, f"/recovery waive {first[:3]}")
    assert "No uncertain effect" in say(client, session_id, "/recovery waive zzzz")
    assert lives.having(session_id, "inspection") == []
    for given in (second[:4].upper(), second):
        say(client, session_id, f"/recovery waive {given}")
    assert only(client.snapshot(session_id))["attemptId"] == first
    assert first[:8] in say(client, session_id, "/recovery")


def test_an_ambiguous_beginning(lives: Lives) -> None:
    """wire.md: more than one begins so: nothing is done, and the list is said."""
    client, session_id, (first, second) = doubtful(lives, 2)
    assert client.shut_down() == 0
    path = lives.place.session(session_id) / "journal.jsonl"
    twin = first[:6] + ("0" if first[6] != "0" else "1") + second[7:]
    path.write_bytes(_resealed(path.read_bytes().replace(second.encode(), twin.encode())))
    client = lives.start()
    said = say(client, session_id, f"/recovery waive {first[:6]}")
    assert "More than one" in said
    assert first[:8] in said
    assert twin[:8] in said
    assert lives.having(session_id, "inspection") == []
    assert "/recovery waive again" in say(client, session_id, f"/recovery waive {first[:7]}")


def _resealed(content: bytes) -> bytes:
    """The same lines with right checksums, as docs/journal-format.md says."""
    import zlib

    lines, before = [], b"00000000"
    for line in content.splitlines():
        rest = line[len(b'{"sum":"00000000",') :]
        rest = b'"prev":"' + before + rest[len(b'"prev":"00000000') :]
        before = b"%08x" % zlib.crc32(rest)
        lines.append(b'{"sum":"' + before + b'",' + rest + b"\n")
    return b"".join(lines)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("/recovery undo", "Say /recovery"),
        ("/recovery confirm 1234 5678", "Say /recovery"),
        ("/recovery retry", "Retry is switched off"),
        ("/help", "/recovery"),
    ],
)
def test_lines_that_do_nothing(lives: Lives, line: str, says: str) -> None:
    """wire.md: what cannot be done is said in words, and nothing is inspected for it."""
    client, session_id, _ = doubtful(lives)
    assert says in say(client, session_id, line)
    assert lives.having(session_id, "inspection") == lives.having(session_id, "settlement") == []


def test_beside_a_running_turn(lives: Lives) -> None:
    """A3, B4: while a turn runs and is not parked the line is answered at once, and refused."""
    session_id = lives.die("write a.txt with new", PRESENT)
    lives.place.write("a.txt", "somebody's\n")
    go, reached = lives.place.base / "go", lives.place.base / "reached"
    wait = ["/bin/sh", "-c", f"touch '{reached}'; until [ -e '{go}' ]; do sleep 0.02; done"]
    client = lives.start({"verb": "create", "target": "b.txt", "run": wait, "then": "go on"})
    turn = client.ask_turn("write b.txt with b", sessionId=session_id)
    client.wait_for(lambda: True if reached.exists() else None, 20)
    assert say(client, session_id, "/recovery inspect") == "Not done: A turn is running; wait for it or stop it."
    assert "1. " in say(client, session_id, "/recovery")
    go.touch()
    assert client.command_result("ask", turn)["reason"] == "done"


def test_what_is_settled_is_listed(lives: Lives) -> None:
    """B3: settled is not hidden, until the next turn of the person's own starts."""
    session_id = lives.die("write a.txt with new", PRESENT)
    client = lives.start()
    client.squiggle("a.txt", "checked-write")
    assert "checked_present (inspect)" in say(client, session_id, "/recovery")
