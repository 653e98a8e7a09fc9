"""What of a file is under review (row V4), by histories of one path."""

from __future__ import annotations

import pytest

from steadyhand.domain.changes.chain import SessionChanges, chain_of, changes_of
from steadyhand.domain.changes.review import Reviewed, hunk_id_of, reviewed
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.record import Review, ReviewOf, SparedChange
from tests.domain.changes.test_chain import PATH, attempt


def step(before: str | None, after: str | None, tool: str = "write_file") -> Attempt:
    """An attempt from one content to another."""
    return attempt(f"{tool} {before} {after}", (PATH, before, after), tool=tool)


def keep(base: str | None) -> Review:
    return Review(path=PATH, base=base)


def changes(name: str, *events: Attempt | Review) -> SessionChanges:
    return changes_of(name, events)


def review(now: str | None, own: SessionChanges, *others: SessionChanges) -> Reviewed:
    found = reviewed(own.session_id, chain_of(PATH, [own, *others], now), [own, *others])
    assert found is not None
    return found


def states(found: Reviewed) -> list[str]:
    return [hunk.state for hunk in found.hunks]


def test_review_compares_with_the_content_before_the_first_change() -> None:
    """V4: two changes are one hunk from the first content to the last one, named by a digest of both."""
    found = review("b", changes("s", step("x", "a"), step("a", "b")))
    assert (found.base, found.last, found.change, states(found)) == ("x", "b", "modified", ["new"])
    assert found.hunks[0].hunk_id == hunk_id_of(PATH, "x", "b")
    assert len(found.hunks[0].hunk_id) == 32
    created, deleted = review("a", changes("s", step(None, "a"))), review(None, changes("s", step("x", None)))
    assert (created.change, deleted.change) == ("created", "deleted")


def test_review_of_a_kept_change_begins_anew() -> None:
    """V4: what is kept is listed as kept; the next change is compared with it."""
    kept = review("a", changes("s", step("x", "a"), keep("a")))
    assert (states(kept), kept.is_open) == (["kept"], False)
    later = review("b", changes("s", step("x", "a"), keep("a"), step("a", "b")))
    assert (later.base, later.last, states(later)) == ("a", "b", ["kept", "new"])


def test_review_of_an_undone_change_has_nothing_new_until_it_comes_back() -> None:
    """V4, A5: an undo brings the base back; an undo that is itself restored makes the same hunk new again."""
    undone = review("x", changes("s", step("x", "a"), step("a", "x", "undo")))
    assert (states(undone), undone.is_open) == (["undone"], False)
    back = review("a", changes("s", step("x", "a"), step("a", "x", "undo"), step("x", "a", "restore")))
    assert (back.base, back.last, states(back)) == ("x", "a", ["new"])
    again = review("b", changes("s", step("x", "a"), step("a", "x", "undo"), step("x", "b")))
    assert (again.base, states(again)) == ("x", ["undone", "new"])


def test_review_counts_what_the_user_took_back_as_no_change() -> None:
    """V4: a restore or a rewind to the base or to older content leaves nothing to review; one to a content in
    between leaves the rest.
    """
    for tool in ("restore", "rewind"):
        assert states(review("x", changes("s", step("x", "a"), step("a", "x", tool)))) == []
        older = review("x", changes("s", step("x", "a"), keep("a"), step("a", "b"), step("b", "x", tool)))
        assert not older.is_open
        between = review("a", changes("s", step("x", "a"), step("a", "b"), step("b", "a", tool)))
        assert (between.base, between.last, states(between)) == ("x", "a", ["new"])
        alone = review("x", changes("s", step("theirs", "x", tool)))
        assert not alone.is_open


def test_review_after_somebody_elses_change_says_that_it_is_gone() -> None:
    """V4, V5: the present content is not ours, so the change cannot be found in it; it can still be kept."""
    own = changes("s", step("x", "a"))
    found = review("theirs", own)
    assert (found.base, found.last, states(found)) == ("x", "a", ["gone"])
    assert found.hunks[0].hunk_id == review("a", own).hunks[0].hunk_id
    assert states(review("theirs", changes("s", step("x", "a"), keep("a")))) == ["kept"]
    on_top = review("b", changes("s", step("x", "a"), step("theirs", "b")))
    assert (on_top.base, on_top.last, states(on_top)) == ("theirs", "b", ["new"])


@pytest.mark.parametrize("own_first", [True, False])
def test_review_beside_another_session_takes_only_what_stands_on_its_own(own_first: bool) -> None:
    """V4: another session's change on top belongs to the same difference, one below it does not."""
    if own_first:
        found = review("b", changes("s", step("x", "a")), changes("t", step("a", "b")))
        assert (found.base, found.last, states(found)) == ("x", "b", ["new"])
    else:
        found = review("b", changes("s", step("a", "b")), changes("t", step("x", "a")))
        assert (found.base, found.last, states(found)) == ("a", "b", ["new"])


def test_review_ends_by_what_was_kept_in_its_own_session_alone() -> None:
    """V4: what the user kept in another session is still under review here."""
    own = changes("s", step("x", "a"))
    kept_there = review("b", own, changes("t", step("a", "b"), keep("b")))
    assert (kept_there.base, kept_there.last, states(kept_there)) == ("x", "b", ["new"])


def test_review_of_what_was_kept_with_another_sessions_change_stays_kept() -> None:
    """V4: the user kept "b", which holds a change of another session; what that session adds later is its own, and
    only the next change here is compared, with the content before it.
    """
    own = changes("s", step("x", "a"), keep("b"))
    assert not review("b", own, changes("t", step("a", "b"))).is_open
    assert not review("c", own, changes("t", step("a", "b"), step("b", "c"))).is_open
    more = changes("s", step("x", "a"), keep("b"), step("c", "d"))
    found = review("d", more, changes("t", step("a", "b"), step("b", "c")))
    assert (found.base, found.last, found.links[0].before) == ("c", "d", "c")


def undo_of_hunks(before: str, after: str, *ids: str, spared: tuple[str, str] | None = None) -> Attempt:
    """An undo of hunks of lines; `spared`: our content before and after, where somebody else changed the file."""
    made = step(before, after, "undo")
    theirs = None if spared is None else SparedChange(before=spared[0], after=spared[1])
    made.review_of = ReviewOf(path=PATH, base=after, hunks=ids, partial=True, spared=theirs)
    return made


def resolved(found: Reviewed) -> list[tuple[str, str]]:
    return [(one.hunk_id, one.state) for one in found.resolved]


def test_review_of_a_kept_hunk_compares_the_rest_with_a_new_base() -> None:
    """V4: to keep a hunk moves the base to a content that the file never had; the rest stays under review, until it
    is kept or the undo of the rest leads to that base."""
    part = Review(path=PATH, base="x+1", hunks=("1",), partial=True)
    found = review("a", changes("s", step("x", "a"), part))
    assert (found.base, found.last, resolved(found)) == ("x+1", "a", [("1", "kept")])
    more = Review(path=PATH, base="x+1+2", hunks=("2",), partial=True)
    found = review("b", changes("s", step("x", "a"), part, more, step("a", "b")))
    assert (found.base, found.last, resolved(found)) == ("x+1+2", "b", [("1", "kept"), ("2", "kept")])
    whole = Review(path=PATH, base="a", hunks=("3",))
    found = review("a", changes("s", step("x", "a"), part, whole))
    assert (found.is_open, resolved(found)) == (False, [("1", "kept"), ("3", "kept")])
    rest = review("x+1", changes("s", step("x", "a"), part, undo_of_hunks("a", "x+1", "2")))
    assert (rest.is_open, resolved(rest)) == (False, [("1", "kept"), ("2", "undone")])


def test_review_of_an_undone_hunk_goes_on_until_the_base_is_back() -> None:
    """V4, A5: the undo of a hunk is a change of ours; a restore of it makes the hunk new again."""
    own = (step("x", "a"), undo_of_hunks("a", "a-1", "1"))
    found = review("a-1", changes("s", *own))
    assert (found.base, found.last, resolved(found)) == ("x", "a-1", [("1", "undone")])
    back = review("a", changes("s", *own, step("a-1", "a", "restore")))
    assert (back.base, back.last, resolved(back)) == ("x", "a", [])
    done = review("x", changes("s", *own, undo_of_hunks("a-1", "x", "2")))
    assert (done.is_open, resolved(done)) == (False, [("1", "undone"), ("2", "undone")])


def test_undo_of_a_hunk_to_older_content_leaves_the_rest_under_review() -> None:
    """V4: the file has, without one hunk, a content that it had before the kept one; the other hunk is not decided."""
    own = changes("s", step("old", "x"), keep("x"), step("x", "a"), undo_of_hunks("a", "old", "1"))
    found = review("old", own)
    assert (found.base, found.last) == ("x", "old")
    assert [hunk.state for hunk in found.open_hunks] == ["new"]


def test_review_of_a_hunk_undone_below_somebody_elses_change_knows_the_rest() -> None:
    """V4, V5: the file has the person's change and an undo on top; our content is that of the undo without theirs."""
    own = (step("x", "a"), undo_of_hunks("a+mine", "a+mine-1", "1", spared=("a", "a-1")))
    found = review("a+mine-1", changes("s", *own))
    assert (found.base, found.last, found.is_present) == ("x", "a-1", False)
    assert resolved(found) == [("1", "undone")]
    back = review("a+mine", changes("s", *own, step("a+mine-1", "a+mine", "restore")))
    assert (back.base, back.last, back.is_present, resolved(back)) == ("x", "a", False, [])
    later = review("b", changes("s", *own, step("a+mine-1", "b")))
    assert (later.base, later.last, later.is_present) == ("a+mine-1", "b", True)
    every = (*own, undo_of_hunks("a+mine-1", "x+mine", "2", spared=("a-1", "x")))
    done = review("x+mine", changes("s", *every))
    assert (done.is_open, resolved(done)) == (False, [("1", "undone"), ("2", "undone")])


def test_review_claims_nothing_that_somebody_wrote_between_two_changes_of_ours() -> None:
    """V4, V5: the person changed "a", we changed theirs, and they changed ours: only our last change is compared."""
    found = review("theirs 2", changes("s", step("x", "a"), step("theirs", "b")))
    assert (found.base, found.last, found.is_present) == ("theirs", "b", False)


def test_hunk_that_was_undone_uncertainly_is_not_called_undone() -> None:
    """V4: a hunk is undone when the attempt is known to have happened."""
    doubtful = attempt("doubtful", (PATH, "a", "a-1"), outcome="unknown", tool="undo")
    doubtful.review_of = ReviewOf(path=PATH, base="a-1", hunks=("1",), partial=True)
    assert resolved(review("a-1", changes("s", step("x", "a"), doubtful))) == []
