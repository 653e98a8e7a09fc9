"""The truth about changes that a user takes back, read from the raw records: undo, rewind, revise (rows V4, G4, S8)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

Json = dict[str, Any]
PROGRESS = re.compile(r"Rewind: (\d+) of (\d+) files are done\.")


def unanswered(records: Sequence[Json], undone: int, rewound: Collection[str], revised: Collection[str]) -> list[str]:
    """One sentence for each answer that the records do not hold."""
    told = sum(record["kind"] == "told" and record.get("from") == "review" for record in records)
    stored = {record["turnId"] for record in records if record["kind"] == "rewind"}
    replacing = {record["turnId"] for record in records if record["kind"] == "user" and record.get("replaces")}
    found = []
    if told < undone:
        found.append("an answered undo is not told to the model")
    if not set(rewound) <= stored:
        found.append("an answered rewind is not stored")
    if not set(revised) <= replacing:
        found.append("an answered revision is not stored as one")
    return found


def broken_orders(records: Sequence[Json]) -> list[str]:
    """One sentence for each promise that the order of the records breaks."""
    found = []
    undoing: set[str] = set()
    rewinding: dict[str, str] = {}  # attempt → turn of its rewind
    happened: set[str] = set()
    over: set[str] = set()  # turns of rewinds that are recorded
    told = 0
    for record in records:
        attempt = str(record.get("attemptId"))
        match record["kind"]:
            case "intent":
                if record.get("reviewOf"):
                    undoing.add(attempt)
                if record.get("rewindOf"):
                    rewinding[attempt] = record["turnId"]
                if rewinding.get(attempt) in over:
                    found.append("a rewind goes on after it was recorded")
            case "result" if record["outcome"] == "returned":
                happened.add(attempt)
            case "settlement" if record["settled"] in ("checked_present", "user_confirmed"):
                happened.add(attempt)
            case "told" if record.get("from") == "review":
                told += 1
                if told > len(undoing & happened):
                    found.append("the model is told of an undo that has not happened")
            case "rewind":
                over.add(record["turnId"])
            case _:
                pass
    return found


def wrong_progress(records: Sequence[Json], digests: Mapping[str, str]) -> list[str]:
    """Compare what a notice says of a rewind that was cut off with the files. `digests`: path → what is there now."""
    notices = [record for record in records if record["kind"] == "notice" and PROGRESS.search(record.get("text", ""))]
    if not notices:
        return []
    latest = notices[-1]
    attempts = {
        record["attemptId"]
        for record in records
        if record["kind"] == "intent" and record.get("rewindOf") and record["turnId"] == latest.get("turnId")
    }
    evidence = [
        one
        for record in records
        if record["kind"] == "started" and record["attemptId"] in attempts
        for one in record.get("evidence", [])
    ]
    back = sum(digests.get(one["resolved"]) == one.get("intended") for one in evidence)
    said = PROGRESS.search(latest["text"])
    assert said is not None
    return [] if int(said[1]) == back else ["a rewind that was cut off counts its files wrong"]
