"""L6: every byte of a journal flipped in three ways, a journal cut at every byte, and journals with unusual content.

A flip may reduce what the server knows, and the server has to say so: no verdict moves towards "did not run", and every
record that is gone is counted as damage or kept beside the journal. For a cut, the prefix itself is the oracle: its
whole records are read, and a call is called not run only if the prefix has no start of it, neither as a record nor as
the line that was cut (case 134).
"""

from __future__ import annotations

import errno
from collections.abc import Iterator

from steadyhand.domain.ledger.ledger import Ledger, fold
from steadyhand.domain.records.record import Epoch
from steadyhand.journal.format import read_journal, write_line
from tests.journal import second_reader
from tests.prove.simulated_server import READING, SESSION, Scenario, outcomes, reopened, seen
from tests.prove.tally import Tally
from tests.prove.truth import DID_NOT_RUN, STATE, Raw, read
from tests.support.sim_disk import Error, Fault, SimDisk, tree_of

MASKS = (0x01, 0x20, 0xFF)
nul_run_bytes = 70_000
OTHER = "f" * 32


def journals(scenario: Scenario) -> dict[str, bytes]:
    """The journal of a scenario, and how it was right after each start, with the call open."""
    disk = scenario.played()
    whole = seen(disk).journal or b""
    found = {"whole": whole}
    at = 0
    for line in whole.splitlines(keepends=True):
        at += len(line)
        if b'"kind":"started"' in line:
            found[f"open at {at}"] = whole[:at]
    return found


def verdicts(content: bytes) -> dict[str, str]:
    """Call id → what opening says of it, without a disk."""
    from steadyhand.session.recovery.open import decide

    loaded = read_journal(content)
    ledger = fold(loaded.records, loaded.breaks, torn_starts=loaded.torn_starts)
    said = {verdict.call.call_id: verdict.outcome for verdict in decide(ledger, READING)}
    return {
        call_id: said.get(call_id) or _recorded(ledger, call_id)
        for call_id, call in ledger.calls.items()
        if call.attempt is None or call.attempt.effect != "reads"  # a read is harmless, and may be read again (C7)
    }


def _recorded(ledger: Ledger, call_id: str) -> str:
    call = ledger.calls[call_id]
    if call.attempt is not None and call.attempt.result is not None:
        return call.attempt.result.outcome
    return call.reply.outcome if call.reply is not None else "none"


def flip_every_byte(scenario: Scenario, tally: Tally, part: int, parts: int, each: int = 1) -> None:
    """All journals of a scenario; `states` counts flips."""
    for name, content in journals(scenario).items():
        before = verdicts(content)
        records = {(one.seq, one.sum) for one in read_journal(content).records}
        for place in range(part, len(content), parts * each):
            for mask in MASKS:
                flipped = bytearray(content)
                flipped[place] ^= mask
                tally.states += 1
                _judge(before, records, bytes(flipped), f"{name}, byte {place} ^ {mask:#x}", tally)


def _judge(before: dict[str, str], records: set[tuple[int, str]], content: bytes, where: str, tally: Tally) -> None:
    loaded = read_journal(content)
    after = verdicts(content)
    for call_id, said in before.items():
        now = after.get(call_id)
        if said not in DID_NOT_RUN and now in DID_NOT_RUN:
            tally.violation("a flip moves a verdict towards did not run", where)
    left = {(one.seq, one.sum) for one in loaded.records}
    if not left <= records:
        tally.violation("a flip creates a record that was never written", where)
    if left != records and not loaded.damaged:
        tally.violation("an acknowledged record is dropped silently", where)


def cut_at_every_byte(scenario: Scenario, tally: Tally, part: int, parts: int, each: int = 1) -> None:
    """The session of a scenario with its journal cut, really opened."""
    disk = scenario.played()
    whole = seen(disk).journal or b""
    tree = disk.now()
    for size in range(1 + part, len(whole), parts * each):
        prefix = whole[:size]
        files = dict(tree.walk())
        files[f"{STATE}/sessions/{SESSION}/journal.jsonl"] = prefix
        tally.states += 1
        where = f"cut at {size}"
        raw = read(prefix)
        found = reopened(SimDisk(tree_of(files)), 2)
        if found is None and not raw.records:
            continue  # no record is whole: nothing was promised
        if found is None or not found.writable:
            tally.violation("a cut journal does not open", where)
        elif found.damaged:
            tally.violation("a cut is reported as damage", where)
        else:
            _prefix_is_true(found.ledger, raw, _torn_start(prefix, raw), where, tally)


def _torn_start(prefix: bytes, raw: Raw) -> set[str]:
    """The calls that the line at the cut may have started: those without an end, if the line is known as a `started`
    (row J8, case 134)."""
    named = second_reader.read(prefix).torn_start
    ended = {record["attemptId"] for kind in ("started", "result") for record in raw.of(kind)}
    waiting = [one for one in raw.of("intent") if one["effect"] != "reads" and one["attemptId"] not in ended]
    return {one["callId"] for one in waiting if named is not None and one["attemptId"].startswith(named)}


def _prefix_is_true(ledger: Ledger, raw: Raw, torn: set[str], where: str, tally: Tally) -> None:
    started = {record["callId"] for record in raw.of("started")} | torn
    proposed = {call["callId"] for record in raw.of("assistant") for call in record.get("calls", [])}
    if not proposed <= set(ledger.calls):
        tally.violation("a call of the prefix is lost", where)
    for call_id in proposed:
        said = _recorded(ledger, call_id)
        if (said in DID_NOT_RUN) == (call_id in started):
            known = {record["outcome"] for record in raw.of("tool") if record["callId"] == call_id}
            if said not in known:
                tally.violation(f"a call {'with' if call_id in started else 'without'} a start is called {said}", where)


def odd_sessions(scenario: Scenario, tally: Tally) -> None:
    """Doubled lines, NUL runs, a newer version, the journal of another session, a full or read-only disk: each session
    opens, says what it found in a sentence, and loses nothing that it could read."""
    disk = scenario.played()
    files = dict(disk.now().walk())
    path = f"{STATE}/sessions/{SESSION}/journal.jsonl"
    whole = files[path] or b""
    for name, content, expected in _odd(whole):
        tally.states += 1
        _opens(name, {**files, path: content}, expected, whole, None, tally)
    tally.states += 1
    elsewhere = {path.replace(SESSION, OTHER): content for path, content in files.items()}
    _opens("another session's journal", elsewhere, "read-only", whole, None, tally, OTHER)
    errors: tuple[Error, ...] = ("ENOSPC", "EIO")
    for error in errors:
        tally.states += 1
        open_call = whole[: whole.find(b"\n", whole.find(b'"kind":"started"')) + 1]
        fault = Fault(1, error, for_good=True)
        _opens(f"{error} everywhere", {**files, path: open_call}, "read-only", open_call, fault, tally)


def _odd(whole: bytes) -> Iterator[tuple[str, bytes, str]]:
    lines = whole.splitlines(keepends=True)
    yield "a doubled line", b"".join([*lines[:8], lines[7], *lines[8:]]), "damaged"
    yield "all lines doubled", b"".join(line + line for line in lines), "damaged"
    yield "a NUL run in the middle", b"".join([*lines[:8], bytes(nul_run_bytes), *lines[8:]]), "damaged"
    yield "a NUL run at the end", whole + bytes(nul_run_bytes), "clean"
    newer, _ = write_line(Epoch(epoch="e" * 32, pid=1, host="here"), 9999, "00000000", "2026-01-02T03:04:05.678Z")
    yield "a newer version", whole + _as_version_2(newer), "read-only"


def _as_version_2(line: bytes) -> bytes:
    import zlib

    body = line[18:-1].replace(b'"v":1', b'"v":2')
    return b'{"sum":"%08x",' % zlib.crc32(body) + body + b"\n"


def _opens(
    name: str,
    files: dict[str, bytes | None],
    expected: str,
    whole: bytes,
    fault: Fault | None,
    tally: Tally,
    session_id: str = SESSION,
) -> None:
    disk = SimDisk(tree_of(files), fault)
    before = read_journal(whole)
    try:
        found = reopened(disk, 2, session_id=session_id)
    except OSError as error:
        tally.violation(f"a session does not open: {errno.errorcode.get(error.errno or 0)}", name)
        return
    if found is None:
        tally.violation("a session is not found", name)
        return
    said = "read-only" if not found.writable else "damaged" if found.damaged else "clean"
    if said != expected:
        tally.violation(f"a session is {said} where it is {expected}", name)
    if not found.writable and not (found.why or "").strip():
        tally.violation("a read-only session does not say why", name)
    calls = set(fold(before.records, before.breaks).calls)
    if set(outcomes(found.ledger)) != calls:
        tally.violation("an unusual session loses calls", name)
