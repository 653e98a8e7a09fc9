"""What must hold in every state, whoever made it: the promises, read independently from the bytes on disk.

`Truth` is what was promised and begun by then, from the marks of the log. `broken_on_disk` judges a state as it is,
before the product has read it: nothing acknowledged is lost, each effect has its start, and whatever the journal says
of a file is true for the bytes of that file in this very state. `broken_by_recovery` judges what the product then says
and does. Both return sentences; no sentence means that all promises hold.

While a file is written in place, it may be a mix of old and new, but only then; recovery has to call such a mix
uncertain.

The reader here shares no code with the product. `counted` has what breaks no promise but is worth showing.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import attrs

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.records.record import Evidence
from tests.prove import taken_back
from tests.prove.orders import UNCERTAIN, Json, broken_orders
from tests.support.sim_disk import Entry, Tree

STATE, WORK = "/state", "/work"
MIX = "a mix"
"""Stands for any content of a file that is being written in place."""
DID_NOT_RUN = frozenset({"refused", "not_started", "interrupted_before_execution", "interrupted"})
lines_kept_max = 50_000


@attrs.define
class Truth:
    """What was promised and begun, from the marks."""

    created: bool = False
    kept: list[tuple[int, str]] = attrs.field(factory=list)  # (seq, sum) of records whose barrier returned
    ran: set[str] = attrs.field(factory=set)  # attempts whose body was entered
    answered: set[str] = attrs.field(factory=set)  # inspections that were answered
    decided: set[str] = attrs.field(factory=set)  # attempts whose decision was answered
    saving: dict[str, str] = attrs.field(factory=dict)  # path → digest of what somebody else is saving there
    theirs: dict[str, str] = attrs.field(factory=dict)  # path → digest of what somebody else saved there, durably
    undone: int = 0  # attempts of undos that were answered
    rewound: set[str] = attrs.field(factory=set)  # turns of rewinds that were answered
    revised: set[str] = attrs.field(factory=set)  # turns that replace another, as was answered
    buffers: dict[str, str] = attrs.field(factory=dict)  # path → text that the editor has

    def after(self, marks: Iterable[object]) -> Truth:
        """With these marks more."""
        found = attrs.evolve(
            self, kept=list(self.kept), ran=set(self.ran), answered=set(self.answered), decided=set(self.decided),
            saving=dict(self.saving), theirs=dict(self.theirs), rewound=set(self.rewound), revised=set(self.revised),
            buffers=dict(self.buffers),
        )  # fmt: skip
        for mark in marks:
            match mark:
                case "created":
                    found.created = True
                case ("kept", tuple(kept)):
                    found.kept += kept
                case ("ran", str(attempt)):
                    found.ran.add(attempt)
                case ("answered", str(inspection)):
                    found.answered.add(inspection)
                case ("decided", str(attempt)):
                    found.decided.add(attempt)
                case ("saving", str(path), str(digest)):
                    found.saving[path] = digest
                case ("theirs", str(path), str(digest)):
                    found.theirs[path] = digest
                case ("undone", int(count)):
                    found.undone = max(found.undone, count)
                case ("rewound", str(turn)):
                    found.rewound.add(turn)
                case ("revised", str(turn)):
                    found.revised.add(turn)
                case ("buffer", str(path), str(text)):
                    found.buffers[path] = text
                case _:
                    pass
        return found


def marks_in(log: Iterable[Entry]) -> list[object]:
    """The marks of a log, in order."""
    return [entry[1] for entry in log if entry[0] == "mark"]


def truths(log: Iterable[Entry], before: Truth | None = None) -> list[Truth]:
    """The truth after each number of marks of this log, from none on."""
    found = [before or Truth()]
    for mark in marks_in(log):
        found.append(found[-1].after([mark]))
    return found


@attrs.define
class Raw:
    """The records of a journal, as this reader finds them."""

    records: list[Json]
    sums: set[tuple[int, str]]
    damaged: int  # invalid lines, and an invalid tail

    def of(self, kind: str) -> list[Json]:
        return [record for record in self.records if record["kind"] == kind]


def read(content: bytes) -> Raw:
    """Every record with a valid checksum."""
    raw = Raw([], set(), 0)
    *lines, tail = content.split(b"\n")
    if tail.strip(b"\0"):
        lines.append(_whole(tail))
    for line in lines:
        found = _line(line)
        if found is None and (at := line.rfind(b'{"sum":"')) > 0:
            found = _line(line[at:])
            raw.damaged += found is not None
        if found is None:
            raw.damaged += 1
            continue
        raw.records.append(found)
        raw.sums.add((found["seq"], found["sum"]))
    return raw


@lru_cache(lines_kept_max)
def _line(line: bytes) -> Json | None:
    if line[:8] != b'{"sum":"' or b"%08x" % zlib.crc32(line[18:]) != line[8:16]:
        return None
    try:
        found: Json = json.loads(line)
    except ValueError:
        return None
    return found


def _whole(tail: bytes) -> bytes:
    """A record whose line end is missing or zero."""
    return tail.rstrip(b"\0")


@lru_cache(lines_kept_max)
def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@attrs.frozen
class Bytes:
    """The part of a state that the promises are about."""

    journal: bytes | None
    work: Mapping[str, bytes]  # path below the workspace's parent → bytes
    stored: Mapping[str, bytes]  # path below the session's folder → bytes


def bytes_of(tree: Tree, session_id: str) -> Bytes:
    files = {path: content for path, content in tree.walk().items() if content is not None}
    session = f"{STATE}/sessions/{session_id}/"
    return Bytes(
        files.get(session + "journal.jsonl"),
        {path: content for path, content in files.items() if path.startswith(WORK + "/")},
        {path[len(session) :]: content for path, content in files.items() if path.startswith(session)},
    )


@attrs.frozen
class Scene:
    """What a scenario is about. `first`: path → digest of the files before it. `opaque`: files that only commands
    change."""

    session_id: str
    first: Mapping[str, str]
    opaque: frozenset[str] = frozenset()
    asks: bool = False  # every effect needs a permission


def broken_on_disk(scene: Scene, truth: Truth, seen: Bytes) -> list[str]:
    """The promises that do not hold in a state as it is."""
    raw = read(seen.journal or b"")
    found = []
    if truth.created and not raw.records:
        found.append("an acknowledged session is gone")
    lost = [one for one in truth.kept if one not in raw.sums] if truth.created else []
    if lost:
        found.append("an acknowledged record is lost")
    numbers = [record["seq"] for record in raw.records]
    if numbers != sorted(set(numbers)):
        found.append("a sequence number is repeated or out of order")
    found += _files(scene, truth, raw, seen)
    found += _stored(raw, seen)
    found += _order(scene, truth, raw)
    return found


def _possible(scene: Scene, truth: Truth, raw: Raw) -> dict[str, set[str | None]]:
    """Path → the contents that are possible by what the journal says.

    While a call runs, a save of one of its paths may be at the other path.
    """
    possible: dict[str, set[str | None]] = {path: {content} for path, content in scene.first.items()}
    evidence: dict[str, list[Json]] = {}
    names = _names(raw)
    for record in raw.records:
        attempt = record.get("attemptId")
        match record["kind"]:
            case "started":
                evidence[str(attempt)] = [each for one in record.get("evidence", []) for each in _by_name(one, names)]
                paths = [one["resolved"] for one in evidence[str(attempt)]]
                saves = {truth.saving[path] for path in paths if path in truth.saving}
                for one in evidence[str(attempt)]:
                    possible.setdefault(one["resolved"], {None}).update({one.get("intended")}, saves)
                    if one.get("inPlace") or one.get("buffer"):
                        possible[one["resolved"]].add(MIX)
            case "result" | "settlement":
                for one in evidence.get(str(attempt), []):
                    if one.get("buffer") and record["kind"] == "result" and not record.get("files"):
                        if record["outcome"] not in UNCERTAIN:  # otherwise the check may be of the editor's text
                            possible[one["resolved"]] = {one.get("before")}
                        continue
                    side = _side(record) or ("before" if one.get("inPlace") and _undid(record) else None)
                    if side is not None:
                        possible[one["resolved"]] = {one.get(side)}
            case _:
                pass
    return possible


def _names(raw: Raw) -> dict[str, list[str]]:
    """Identity of a file that is written in place → its names, as the scopes say."""
    found: dict[str, list[str]] = {}
    for record in [*raw.of("intent"), *raw.of("started")]:
        scope = record.get("scope", {})
        for one in scope.get("identities", []):
            found[one] = scope["paths"]
    return found


def _by_name(one: Json, names: Mapping[str, list[str]]) -> list[Json]:
    """The evidence of one path, once for each name that the file has."""
    if not one.get("inPlace"):
        return [one]
    every = next((paths for paths in names.values() if one["resolved"] in paths), [one["resolved"]])
    return [{**one, "resolved": path} for path in every]


def _undid(record: Json) -> bool:
    """Whether a result says that nothing was changed."""
    return record["kind"] == "result" and record["outcome"] in ("failed", "stopped")


def _side(record: Json) -> str | None:
    """Whether a record says that the intended content is there, or the content before."""
    if record["kind"] == "settlement":
        return {"checked_present": "intended", "checked_absent": "before"}.get(record["settled"])
    if record.get("check") in ("satisfied", "unchanged"):
        return "intended" if record["check"] == "satisfied" else "before"
    return "intended" if record["outcome"] == "returned" and record.get("files") else None


def _files(scene: Scene, truth: Truth, raw: Raw, seen: Bytes) -> list[str]:
    found = []
    possible = _possible(scene, truth, raw)
    for path in {*possible, *scene.first} - scene.opaque:
        content = seen.work.get(path)
        now = None if content is None else digest(content)
        if now in possible.get(path, {None}) or now == truth.saving.get(path, ""):
            continue
        if content is not None and MIX in possible.get(path, ()):
            continue
        found.append("a file is not what the journal says, or was changed without a durable start")
    temporaries = _temporaries(raw)
    for path in seen.work:
        if path in possible or path in scene.first or path in scene.opaque or path in temporaries:
            continue
        if path.endswith("/.save"):  # of the simulated editor; a torn try is the editor's own file
            continue
        found.append("a file appeared without a durable start")
    ran_commands = any(record.get("mark") for record in raw.of("started"))
    if not ran_commands and any(seen.work.get(path) for path in scene.opaque):
        found.append("a command ran without a durable start")
    found += _moved(truth, raw, seen)
    for path, theirs in truth.theirs.items():
        if not any(digest(content) == theirs for content in seen.work.values()):
            found.append(f"somebody's save of {path} is lost")
    return found


def _moved(truth: Truth, raw: Raw, seen: Bytes) -> list[str]:
    """The content that the last call moves is somewhere at every moment, unless somebody else wrote over it (row
    W3)."""
    starts = [record.get("evidence", []) for record in raw.of("started")]
    if not starts or len(starts[-1]) != 2:
        return []
    start, goal = starts[-1]
    saved = {start["resolved"], goal["resolved"]} & set(truth.saving)
    moves = start.get("intended") is None and goal.get("intended") == start["before"]
    if not moves or saved or any(digest(content) == start["before"] for content in seen.work.values()):
        return []
    return ["the content that was to be moved is nowhere"]


def _temporaries(raw: Raw) -> dict[str, str]:
    """The path of every temporary file that a start names → its attempt."""
    return {
        one["resolved"].rpartition("/")[0] + "/" + one["temporary"]: record["attemptId"]
        for record in raw.of("started")
        for one in record.get("evidence", [])
        if one.get("temporary")
    }


def _stored(raw: Raw, seen: Bytes) -> list[str]:
    """What records refer to is there, and its content matches its name."""
    wanted = {
        f"checkpoints/{one['checkpoint']}"
        for record in raw.of("started")
        for one in record.get("evidence", [])
        if one.get("checkpoint")
    }
    wanted |= {f"outputs/{record['output']}" for record in raw.of("tool") if record.get("output")}
    found = [
        "a kept content that a record names is missing or damaged"
        for path in wanted
        if path not in seen.stored or digest(seen.stored[path]) != path.rpartition("/")[2]
    ]
    changing = (one for record in raw.of("started") for one in record.get("evidence", []))
    if any(one["existed"] and one["before"] != one.get("intended") and not one.get("checkpoint") for one in changing):
        found.append("a start does not keep what was there before")
    return found


def _order(scene: Scene, truth: Truth, raw: Raw) -> list[str]:
    """What may come only after something else, and only once."""
    found = []
    stood: dict[str, set[str]] = {}
    inspections: set[str] = set()
    void = _void(raw)
    undoing = {record["attemptId"] for record in raw.of("intent") if record.get("restoreOf")}
    for record in raw.records:
        if record["seq"] in void:
            continue
        kind, attempt = record["kind"], str(record.get("attemptId"))
        before = stood.setdefault(attempt, set())
        if kind in ("result", "started", "intent") and kind in before and raw.damaged == 0:
            found.append(f"an attempt has two records {kind}")
        if (
            kind == "settlement"
            and "settlement" in before
            and raw.damaged == 0
            and record["settled"] not in ("restored", "superseded")
        ):
            found.append("an attempt is settled twice")
        asks = scene.asks or (kind == "started" and attempt not in undoing and _is_in_place(record))
        if kind == "started" and asks and raw.damaged == 0 and "permission" not in before:
            found.append("something started before its permission was recorded")
        if kind == "settlement" and record["by"] != "recovery" and record.get("inspectionId") not in inspections:
            found.append("a settlement is there without the inspection it rests on")
        if kind == "inspection":
            inspections.add(record["inspectionId"])
        before.add(kind)
    if not truth.answered <= inspections:
        found.append("an answered inspection is not stored")
    decisions = {str(record.get("attemptId")) for record in [*raw.of("settlement"), *raw.of("reject")]}
    if not truth.decided <= decisions:
        found.append("an answered decision is not stored")
    started = {record["attemptId"] for record in raw.of("started")}
    if truth.created and not truth.ran <= started:
        found.append("a body ran without a durable start")
    standing = [record for record in raw.records if record["seq"] not in void]
    if raw.damaged == 0 and (raw.of("settlement") or raw.of("job")):
        found += broken_orders(standing)
    if raw.damaged == 0:
        found += taken_back.broken_orders(standing)
    if truth.created:
        found += taken_back.unanswered(raw.records, truth.undone, truth.rewound, truth.revised)
    return found


def _is_in_place(record: Json) -> bool:
    return any(one.get("inPlace") for one in record.get("evidence", []))


def _void(raw: Raw) -> set[int]:
    """Results and settlements that their writer never acknowledged, as a later record says: they do not count (J6)."""
    found: set[int] = set()
    for damage in raw.of("damage"):
        if damage.get("unacknowledged") is not None:
            doubted = range(damage["unacknowledged"], damage["seq"])
            found |= {r["seq"] for r in raw.records if r["seq"] in doubted and r["kind"] in ("result", "settlement")}
    return found


def broken_by_recovery(scene: Scene, truth: Truth, before: Bytes, after: Bytes, ledger: Ledger) -> list[str]:
    """The promises that recovery broke: what it says of each call, and what it left."""
    found = []
    raw_before, raw = read(before.journal or b""), read(after.journal or b"")
    if not raw_before.sums <= raw.sums:
        found.append("recovery lost a record")
    if ledger.refused and raw_before.damaged == 0:
        found.append("the journal holds records that are not allowed there")
    for attempt_id in truth.ran:
        attempt = ledger.attempts.get(attempt_id)
        if attempt is None or attempt.result is None or attempt.result.outcome in DID_NOT_RUN:
            found.append("a call that may have run is called not run")
    for call in ledger.calls.values():
        if (call.attempt is None and call.reply is None) or (call.attempt is not None and call.attempt.open):
            found.append("a call has no end")
    if raw.damaged == 0:
        now = {path: digest(content) for path, content in after.work.items()}
        found += taken_back.wrong_progress(raw.records, now)
    if any(one.buffer is not None for one in _evidence_called_absent(ledger)):
        found.append("an edit that may still come is called absent")
    if any(_is_called_certain(record, after, ledger) for record in raw.of("started")[-1:]):
        found.append("a half-written file is called certain")
    ended = {record["attemptId"]: record for record in raw.of("result")}
    for path, attempt_id in _temporaries(raw).items():
        result = ended.get(attempt_id)
        if path in after.work and (result is None or path.rpartition("/")[2] not in str(result.get("kept", ""))):
            found.append("a temporary file is left behind")
    for path, content in before.work.items():
        if path not in _temporaries(raw) and after.work.get(path) != content:
            found.append("recovery changed a file")
    return found


def _evidence_called_absent(ledger: Ledger) -> Iterator[Evidence]:
    """Yield the evidence of what recovery settled as absent."""
    for attempt in ledger.attempts.values():
        settled = attempt.settlement
        if settled is not None and (settled.settled, settled.by) == ("checked_absent", "recovery"):
            yield from attempt.started.evidence if attempt.started is not None else ()


def _is_called_certain(started: Json, after: Bytes, ledger: Ledger) -> bool:
    """Whether a start in place left a mix of old and new, and its attempt needs no decision."""
    for one in started.get("evidence", []):
        content = after.work.get(one["resolved"])
        is_written_over = one.get("inPlace") or one.get("buffer")
        if is_written_over and content is not None and digest(content) not in (one.get("before"), one.get("intended")):
            attempt = ledger.attempts.get(started["attemptId"])
            return attempt is None or not (
                attempt.uncertain or (attempt.settlement and attempt.settlement.by == "user")
            )
    return False


def counted(truth: Truth, before: Bytes, ledger: Ledger, damaged: int) -> Counter[str]:
    """Cases that break no promise, and are worth showing."""
    shown: Counter[str] = Counter()
    for attempt in ledger.attempts.values():
        if attempt.result and attempt.result.outcome in UNCERTAIN and attempt.attempt_id not in truth.ran:
            shown["called unknown though it did not run"] += 1
    if damaged:
        shown["power loss reported as damage"] += 1
    return shown
