"""The order of records in a journal: retries, restores, background commands and settlements by the model.

It is part of the truth (tests/prove/truth.py), and like it reads the raw records alone, with no code of the product.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
UNCERTAIN = frozenset({"unknown", "unknown_after_restart"})


def broken_orders(records: list[Json]) -> list[str]:
    """One sentence for each promise that the records break."""
    return [*_redone(records), *_settled_by_model(records), *_jobs(records)]


def _redone(records: list[Json]) -> list[str]:
    """A retry is the same intention under another attempt, for which the old one is superseded; a restore is reported
    as done only after it was done (rows A5, F2, N2, [I10])."""
    found = []
    intents: dict[str, Json] = {}
    done: set[str] = set()  # attempts that are known to have happened
    given_up: dict[str, str] = {}
    for record in records:
        attempt = str(record.get("attemptId"))
        match record["kind"]:
            case "intent":
                intents[attempt] = dict(record)
                old = intents.get(record.get("retryOf", ""))
                if old is not None and any(old[name] != record[name] for name in ("key", "scope", "argumentsDigest")):
                    found.append("a retry is not the same intention")
            case "started":
                # It may have waited for the same intention, which is done by now: then it has another key.
                intents.get(attempt, {}).update({"key": record["key"]} if "key" in record else {})
                old_id = intents.get(attempt, {}).get("retryOf")
                if old_id is not None and given_up.get(old_id) != attempt:
                    found.append("a retry started before the old attempt was superseded")
            case "result" if record["outcome"] == "returned" or record.get("check") == "satisfied":
                done.add(attempt)
            case "settlement":
                settled = record["settled"]
                if settled in ("checked_present", "user_confirmed", "model_confirmed"):
                    done.add(attempt)
                if settled == "superseded":
                    given_up[attempt] = record["supersededBy"]
                    if record["supersededBy"] not in intents:
                        found.append("an attempt is superseded by one that is not recorded")
                restores = (one for one in done if intents.get(one, {}).get("restoreOf") == attempt)
                if settled == "restored" and not any(restores):
                    found.append("an attempt is called restored and no restore has happened")
            case _:
                pass
    return found


def _settled_by_model(records: list[Json]) -> list[str]:
    """A settlement by the model is an effect with its own start (row B5)."""
    tools = {record["attemptId"]: record["tool"] for record in records if record["kind"] == "intent"}
    begun = False
    found = []
    for record in records:
        begun = begun or (record["kind"] == "started" and tools.get(record["attemptId"]) == "settle_effect")
        if record["kind"] == "settlement" and record["by"] == "model" and not begun:
            found.append("the model settled an effect without its own start")
    return found


def _jobs(records: list[Json]) -> list[str]:
    """A background command has its start, and is no uncertain effect once the start has returned (row E5)."""
    started: set[str] = set()
    jobs: set[str] = set()
    found = []
    for record in records:
        attempt = str(record.get("attemptId"))
        match record["kind"]:
            case "started":
                started.add(attempt)
            case "job":
                jobs.add(attempt)
                if attempt not in started:
                    found.append("a background command runs without a start")
            case "result" if attempt in jobs and record.get("by") is None and record["outcome"] in UNCERTAIN:
                found.append("a background command that was started is called uncertain")
            case _:
                pass
    return found
