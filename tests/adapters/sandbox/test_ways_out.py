"""Every way out of a sandbox, as root and as an ordinary user: what stops it (rows O1, O2, O4).

The table is `ways_out.WAYS`. docs/sandbox.md shows it to people, and the last test compares the two.
"""

from typing import Any

import pytest

from tests.adapters.sandbox.boxes import USERS, drive, require_bubblewrap, require_landlock
from tests.adapters.sandbox.ways_out import REACHED, ROOT, STOPPED, USER, WAYS
from tests.architecture.test_docs import read
from tests.support.markdown import table_after
from tests.support.systems import linux_only

pytestmark = linux_only

COLUMNS = ("bubblewrap", "bubblewrap alone", "Landlock alone", "a reading command", "no sandbox")
SHOWN = {STOPPED: "stopped", REACHED: "possible", ROOT: "possible for root", USER: "possible for an ordinary user"}


def expected(column: int) -> dict[str, str]:
    """Name → verdict, of one column."""
    return {way.name: way.verdict(column) for way in WAYS}


def differing(tried: dict[str, Any], wanted: dict[str, str], uid: int) -> list[str]:
    """The ways that ended otherwise than the table says."""
    passes = (REACHED, ROOT if uid == 0 else USER)
    return [
        f"{name}: {outcome}, expected {wanted[name]}"
        for name, outcome in tried["outcomes"].items()
        if (outcome == REACHED) != (wanted[name] in passes)
    ]


@pytest.mark.parametrize("uid", USERS)
def test_bubblewrap_stops_what_the_table_says(uid: int) -> None:
    """Row O1: bubblewrap with Landlock and the filter. Nothing outside changes, no program outside hears anything, and
    no environment of outside is read (case 142); all ways of the table are tried."""
    require_bubblewrap()
    require_landlock()
    tried = drive(uid, "ways", "bubblewrap")
    assert differing(tried, expected(0), uid) == []
    assert tried["changed"] == []
    assert set(tried["outcomes"]) == {way.name for way in WAYS}


@pytest.mark.parametrize("uid", USERS)
def test_bubblewrap_alone_stops_what_the_table_says(uid: int) -> None:
    """Row O1: on a system without Landlock and without a filter; what is left, each part of bubblewrap does alone."""
    require_bubblewrap()
    tried = drive(uid, "ways", "bare")
    assert differing(tried, expected(1), uid) == []


@pytest.mark.parametrize("uid", USERS)
def test_landlock_alone_stops_what_the_table_says(uid: int) -> None:
    """Row O1, Landlock alone: what it stops and what it does not."""
    require_landlock()
    tried = drive(uid, "ways", "landlock")
    assert differing(tried, expected(2), uid) == []


@pytest.mark.parametrize("uid", USERS)
def test_a_reading_command_changes_nothing(uid: int) -> None:
    """Row O2: by Landlock, a reading command writes nothing, inside the workspace neither, and has no socket."""
    require_landlock()
    tried = drive(uid, "reading", "landlock")
    assert differing(tried, expected(3), uid) == []
    assert set(tried["changed"]) <= {"victim"}  # its priority


@pytest.mark.parametrize("uid", USERS)
def test_a_reading_command_in_bubblewrap_changes_nothing(uid: int) -> None:
    """Row O2: where Landlock is missing, bubblewrap with all mounts read-only and no network."""
    require_bubblewrap()
    tried = drive(uid, "reading", "bubblewrap")
    reached = {name for name, outcome in tried["outcomes"].items() if outcome == REACHED}
    assert reached <= {"lock a file outside", "take a lease on a file outside"}
    assert tried["changed"] == []


@pytest.mark.parametrize("uid", USERS)
def test_without_a_sandbox_the_ways_are_open(uid: int) -> None:
    """The same ways without a sandbox: most get through, so the tests above do not pass for another reason."""
    tried = drive(uid, "ways", "none")
    assert differing(tried, expected(4), uid) == []


def test_page_shows_the_table() -> None:
    """docs/sandbox.md lists every way with what these tests found, in the same order."""
    shown = [
        tuple(row[column] for column in ("way", *COLUMNS))
        for row in table_after(read("sandbox.md"), "What each sandbox stops")
    ]
    assert shown == [(way.name, *(SHOWN[way.verdict(column)] for column in range(5))) for way in WAYS]
