"""`steadyhand jobs …`: background commands that a crash left, listed and ended without an editor or a model (row E5).

A session that nobody owns is opened as by an editor, which notes what is gone. One that somebody owns is read as it
stands; its jobs are stopped there, by `/jobs stop` in its chat.
"""

from __future__ import annotations

from steadyhand.cli.flags import Flags
from steadyhand.cli.terminal import Terminal
from steadyhand.cli.verbs import id_digits_min
from steadyhand.core.refusal import Refused
from steadyhand.session import shelf
from steadyhand.session.glimpse import glimpse, owned_text
from steadyhand.session.house import House
from steadyhand.session.job_list import ListedJob, listed_jobs, shown_job, stop_listed
from steadyhand.session.owner import Owner


async def jobs(house: House, flags: Flags, terminal: Terminal) -> int:
    """`stop` gives 1 if something of it still runs."""
    found = await _found(house)
    if flags.deed == "stop":
        return await _stop(found, flags, terminal)
    if flags.json:
        terminal.answer({"jobs": [job for _, listed in found for job in listed]})
        return 0
    lines = [f"{shown_job(job)}, {_where(owner)}" for owner, listed in found for job in listed]
    terminal.say("\n".join(lines) if lines else "No background command runs.")
    return 0


async def _stop(found: list[tuple[Owner, tuple[ListedJob, ...]]], flags: Flags, terminal: Terminal) -> int:
    given = (flags.id or "").lower()
    if len(given) < id_digits_min:
        raise Refused("notOffered", f"Give at least {id_digits_min} digits of the ID.")
    meant = [(owner, job) for owner, listed in found for job in listed if job.job_id.startswith(given)]
    if len(meant) != 1:
        which = "No" if not meant else "More than one"
        raise Refused("notOffered", f"{which} background command begins with that ID; see `steadyhand jobs`.")
    owner, job = meant[0]
    if (owned := owned_text(owner)) is not None:
        raise Refused("notOwner", owned)
    stopped = await stop_listed(owner, job.job_id)
    if flags.json:
        terminal.answer({"jobId": job.job_id, "ended": stopped.ended})
    else:
        terminal.say(stopped.text)
    return 0 if stopped.ended else 1


async def _found(house: House) -> list[tuple[Owner, tuple[ListedJob, ...]]]:
    """Every session with a job that has no end, with its jobs; one that cannot be read fails alone (row S6)."""
    world = house.world
    found: list[tuple[Owner, tuple[ListedJob, ...]]] = []
    for session_id in await world.in_thread(shelf.names, world):
        try:
            summary = await world.in_thread(shelf.summary, world, session_id)
            if summary is None or not summary.open_jobs:
                continue
            seen = await glimpse(house, session_id)
            owner = seen if owned_text(seen) else await house.owner(session_id)
        except (OSError, Refused):
            continue
        if listed := await listed_jobs(owner):
            found.append((owner, listed))
    return found


def _where(owner: Owner) -> str:
    return owned_text(owner) or f"session “{owner.name()}”"
