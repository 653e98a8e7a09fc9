"""Journals for tests: a short notation for a history, its bytes, and what is made of it.

Ids are made from names (`ident("write")`), so that a test can say which call it means. `journal` gives the bytes of
records, `ledger_of` their fold, `verdicts` what is said of each call when the session is opened.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from steadyhand.domain.ledger.ledger import Ledger, fold
from steadyhand.domain.ledger.state import ToolCall
from steadyhand.domain.records.identity import sha256
from steadyhand.domain.records.record import (
    Assistant,
    EffectClass,
    Epoch,
    Evidence,
    FileChange,
    Intent,
    ModelName,
    Notice,
    Outcome,
    Permission,
    Proposed,
    Record,
    Result,
    Scope,
    SessionHeader,
    Started,
    Steer,
    Taken,
    Told,
    ToolResult,
    User,
)
from steadyhand.domain.recovery.tables import Reached, classify
from steadyhand.domain.views.sentences import outcome_of
from steadyhand.journal.format import FIRST_PREV, read_journal, write_lines

AT = "2026-01-02T03:04:05.678Z"
READING_TOOLS = frozenset({"read_file"})
DID_NOT_RUN = frozenset({"refused", "not_started", "interrupted_before_execution", "interrupted"})


def ident(name: str) -> str:
    """The id of that name."""
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def attempt_id(call: str) -> str:
    """The id of a call's attempt."""
    return ident(f"attempt of {call}")


def digest(content: str) -> str:
    return sha256(content.encode())


# Bytes.


def journal(records: Iterable[Record]) -> bytes:
    """The bytes of a healthy journal."""
    content, _, _ = write_lines(tuple(records), 1, FIRST_PREV, AT)
    return content


def lines(content: bytes) -> list[bytes]:
    """Its lines, each with its line end."""
    return content.splitlines(keepends=True)


def whole_records(content: bytes) -> list[dict[str, Any]]:
    """The records that are whole. A kill can tear only the last line, and an incomplete JSON object is invalid."""
    lines = content.split(b"\n")
    records = [json.loads(line) for line in lines[:-1]]
    with contextlib.suppress(ValueError):
        records.append(json.loads(lines[-1]))
    return records


def ledger_of(content: bytes) -> Ledger:
    """What an opening reads of these bytes."""
    loaded = read_journal(content)
    return fold(loaded.records, loaded.breaks, torn_starts=loaded.torn_starts)


# History.


def begun() -> list[Record]:
    """The first records of every session."""
    return [
        SessionHeader(
            session_id=ident("session"),
            mode="ask",
            model=ModelName("practice", "practice"),
            created_by="0.1",
            workspace="file:///home/me/project",
        ),
        Epoch(epoch=ident("epoch 1"), pid=4711, host="host", boot="boot"),
    ]


def prompt(turn: str, text: str = "do it", command: bool = False) -> User:
    return User(
        turn_id=ident(turn),
        message_id=ident(f"prompt of {turn}"),
        client_message_id=f"client-{turn}",
        text=text,
        command=command,
    )


def proposes(turn: str, *calls: str, tool: str = "write_file", arguments: str = "{}", text: str = "") -> Assistant:
    """An answer with calls; a call named `look…` is a read."""
    asked = tuple(
        Proposed(
            call_id=ident(call),
            tool="read_file" if call.startswith("look") else tool,
            arguments=arguments,
            provider_id=f"c{number}",
        )
        for number, call in enumerate(calls)
    )
    return Assistant(
        turn_id=ident(turn),
        message_id=ident(f"answer with {'+'.join(calls)} in {turn}"),
        text=text,
        calls=asked,
        finish="calls",
    )


def says(turn: str, text: str) -> Assistant:
    return Assistant(turn_id=ident(turn), message_id=ident(f"answer {text}"), text=text, finish="stop")


def intends(
    call: str, turn: str = "turn", effect: EffectClass = "writes_files", scope: Scope | None = None, tool: str = ""
) -> Intent:
    tool = tool or ("read_file" if effect == "reads" else "write_file")
    where = Scope((f"/home/me/project/{call}.txt",)) if scope is None else scope
    return Intent(
        attempt_id=attempt_id(call),
        call_id=ident(call),
        turn_id=ident(turn),
        tool=tool,
        title=f"{tool} {call}.txt",
        effect=effect,
        arguments_digest=digest("{}"),
        scope=where,
        key=digest(f"key of {call}"),
        occurrence=0,
    )


def starts(call: str) -> Started:
    evidence = Evidence(
        path=f"{call}.txt",
        resolved=f"/home/me/project/{call}.txt",
        existed=True,
        before=digest("old"),
        before_bytes=3,
        intended=digest("new"),
        intended_bytes=3,
        temporary=f".{call}.tmp",
        checkpoint=digest("old"),
    )
    return Started(attempt_id=attempt_id(call), call_id=ident(call), evidence=(evidence,))


def ends(call: str, outcome: Outcome = "returned", turn: str = "turn", reason: str | None = None) -> Result:
    changed = (FileChange(path=f"{call}.txt", change="modified", before=digest("old"), after=digest("new"), bytes=3),)
    files = changed if outcome == "returned" else ()
    return Result(
        attempt_id=attempt_id(call),
        call_id=ident(call),
        turn_id=ident(turn),
        outcome=outcome,
        reason=reason,
        files=files,
    )


def verdict(call: str, outcome: Outcome, turn: str = "turn") -> Result:
    """A result as recovery records it."""
    return Result(attempt_id=attempt_id(call), call_id=ident(call), turn_id=ident(turn), outcome=outcome, by="recovery")


def replies(
    call: str, outcome: Outcome = "returned", text: str = "done", turn: str = "turn", admitted: bool = True
) -> ToolResult:
    attempt = attempt_id(call) if admitted else None
    return ToolResult(
        turn_id=ident(turn),
        call_id=ident(call),
        outcome=outcome,
        text=text,
        bytes=len(text.encode()),
        attempt_id=attempt,
    )


def allows(call: str, answer: str = "once") -> Permission:
    assert answer in ("once", "session", "reject")
    return Permission(attempt_id=attempt_id(call), call_id=ident(call), answer=answer, tool="write_file")  # type: ignore[arg-type]  # asserted above


def notice(text: str, turn: str | None = None) -> Notice:
    return Notice(message_id=ident(f"notice {text}"), text=text, turn_id=ident(turn) if turn else None)


def told(text: str, turn: str | None = None, after: str | None = None) -> Told:
    """A stored message. `after`: the name of the answer that was being given."""
    return Told(
        message_id=ident(f"told {text}"),
        text=text,
        from_="review",
        turn_id=ident(turn) if turn else None,
        after=ident(after) if after else None,
    )


def steer(name: str, turn: str = "turn", text: str | None = None) -> Steer:
    """A text for a turn, sent as the client message `name`."""
    return Steer(
        turn_id=ident(turn), message_id=ident(f"steer {name}"), client_message_id=name, text=text or f"text of {name}"
    )


def taken(name: str, turn: str = "turn", after: str = "answer") -> Taken:
    """The taking of that text by the next request."""
    return Taken(client_message_id=name, turn_id=ident(turn), after=ident(after))


def ran(call: str, turn: str = "turn") -> list[Record]:
    """A write that was allowed, ran and returned."""
    return [intends(call, turn), allows(call), starts(call), ends(call, turn=turn), replies(call, turn=turn)]


def looked(call: str, turn: str = "turn", text: str = "content") -> list[Record]:
    """A read that returned."""
    return [intends(call, turn, "reads"), replies(call, text=text, turn=turn)]


def crashed_while_writing() -> list[Record]:
    """The history of one turn: a read, a write that ran, one that was denied, and one that was running at the crash."""
    return [
        *begun(),
        prompt("turn", "change three files"),
        proposes("turn", "look", "made", "denied", "running", "later"),
        *looked("look"),
        *ran("made"),
        intends("denied"),
        allows("denied", "reject"),
        ends("denied", "refused", reason="denied"),
        replies("denied", "refused", "The user said no."),
        intends("running"),
        allows("running"),
        starts("running"),
    ]


# Verdicts.


def verdict_on(call: ToolCall) -> Outcome:
    """What an opening says of one call: its recorded end, else the verdict of the classify table."""
    outcome, _ = outcome_of(call)
    if outcome is not None:
        return outcome
    attempt = call.attempt
    reached: Reached = "proposed" if attempt is None else "started" if attempt.stage == "started" else "intent"
    reads = call.tool in READING_TOOLS if attempt is None else attempt.effect == "reads"
    broken = call.broken if attempt is None else attempt.broken
    said = classify(reached, reads, broken, call.reply is not None)
    if said is not None:
        return said
    assert call.reply is not None, "a call without a verdict has its reply"
    return call.reply.outcome


def verdicts(ledger: Ledger) -> dict[str, Outcome]:
    """Call id → what is said of it."""
    return {call.call_id: verdict_on(call) for call in ledger.calls.values()}


def may_have_run(ledger: Ledger) -> set[str]:
    """The calls with an effect that are not said not to have run; reads change nothing (row C7)."""
    return {
        call_id
        for call_id, outcome in verdicts(ledger).items()
        if outcome not in DID_NOT_RUN and ledger.calls[call_id].tool not in READING_TOOLS
    }


def damaged_at(content: bytes, at: int, byte: int) -> bytes:
    return content[:at] + bytes([byte]) + content[at + 1 :]


def flips(content: bytes, at: int) -> Sequence[bytes]:
    """The content with one byte damaged, in each of four ways: a low bit, the high bit, zero, a line end."""
    there = content[at]
    return [damaged_at(content, at, byte) for byte in sorted({there ^ 1, there ^ 0x80, 0, 0x0A} - {there})]
