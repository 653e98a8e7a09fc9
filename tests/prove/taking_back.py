"""Scenarios in which a user takes changes back: an undo, a rewind of files and conversation, a revised prompt.

The log says what was answered: `("undone", count)`, `("rewound", turn)`, `("revised", turn)` (rows V4, G4, S8).
"""

from __future__ import annotations

from contextlib import suppress

from steadyhand.domain.errors import Refused
from steadyhand.session.changes import review
from steadyhand.session.changes.review import Selection
from steadyhand.session.changes.rewind import rewind
from steadyhand.session.service.revise import revise
from tests.prove.simulated_server import Scenario, SimulatedServer, many

CHANGING = "\n".join(
    [
        f'write new.txt with "{many("new")}"',
        f'write old.txt with "{many("changed")}"',
        "replace one with two in edited.txt",
    ]
)
MOVING = "move old.txt to older.txt\ndelete edited.txt"


async def _undone(server: SimulatedServer) -> None:
    """Two turns are undone: files that were made, changed, moved and removed."""
    for number, text in enumerate((CHANGING, MOVING)):
        await server.turn(text, f"p{number}")
        session = await server.main_session()
        done = await review.undo(session, session.epoch, Selection(every=True))
        if done.left == () and all(hunk.state == "undone" for file in done.files for hunk in file.hunks):
            undos = [one for one in session.ledger.attempts.values() if one.review_of is not None]
            server.disk.mark(("undone", len(undos)))


async def _rewound(server: SimulatedServer) -> None:
    """Files and conversation go back to before a turn of three files; then that rewind is undone."""
    await server.turn("show notes.txt", "p1")
    await server.turn(CHANGING, "p2")
    session = await server.main_session()
    target = list(session.ledger.turns)[1]
    for _ in range(2):
        done = await rewind(session, session.epoch, target, "both")
        server.disk.mark(("rewound", done.undo))
        target = done.undo


async def _revised(server: SimulatedServer) -> None:
    """A prompt whose turn changed a file is replaced, and the new one changes another."""
    await server.turn(f'write old.txt with "{many("changed")}"', "p1")
    session = await server.main_session()
    assert session.epoch is not None
    target = next(iter(session.ledger.turns))
    done = await revise(session, session.epoch, target, "p2", f'write new.txt with "{many("new")}"')
    server.disk.mark(("revised", done.turn_id))
    with suppress(Refused):
        await server.ended(session, done.turn_id)


TAKEN_BACK = (Scenario("undone", _undone), Scenario("rewound", _rewound), Scenario("revised", _revised))
