"""Whose content a file has (row V5): examples, and random histories of several sessions and of somebody else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.changes import chain as chains
from steadyhand.domain.changes.chain import SessionChanges, chain_of, changes_of
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.record import Evidence, Outcome, Result, Review, Scope, Settled, Settlement, Started

PATH = "/w/a.txt"
Change = tuple[str, "str | None", "str | None"]


def attempt(
    name: str,
    *changes: Change,
    outcome: Outcome | None = "returned",
    settled: Settled | None = None,
    tool: str = "write_file",
) -> Attempt:
    """An attempt that took each path from one content to another. `outcome` None: it has no result."""
    ids: dict[str, Any] = {"attempt_id": name, "call_id": f"call {name}"}
    evidence = tuple(
        Evidence(path=path, resolved=path, existed=before is not None, before=before, intended=after)
        for path, before, after in changes
    )
    scope = Scope(paths=tuple(path for path, _, _ in changes))
    made = Attempt(name, ids["call_id"], "turn", tool, name, "writes_files", scope, "")
    made.started = Started(**ids, evidence=evidence)
    made.stage = "started" if outcome is None else "uncertain" if outcome.startswith("unknown") else "certain"
    if outcome is not None:
        made.result = Result(**ids, turn_id="turn", outcome=outcome)
    if settled is not None:
        made.settlement, made.stage = Settlement(**ids, settled=settled, by="user"), "closed"
    return made


def session(name: str, *events: Attempt | Review) -> SessionChanges:
    return changes_of(name, events)


def names(now: str | None, *sessions: SessionChanges, path: str = PATH) -> list[str]:
    """The attempts of the chain, oldest first; each joint and the end of the chain are checked."""
    found = chain_of(path, sessions, now)
    assert_sound(found.links, now)
    return [link.attempt_id for link in found.links]


def assert_sound(links: Sequence[chains.Link], now: str | None) -> None:
    if links:
        assert links[-1].after == now
    for earlier, later in pairwise(links):
        assert earlier.after == later.before


def test_chain_of_one_session_reaches_back_to_the_first_change() -> None:
    """V5: each attempt links the content before it to the one after it; what is there now is the last one's."""
    own = session("s", attempt("1", (PATH, "x", "a")), attempt("2", (PATH, "a", "b")))
    assert names("b", own) == ["1", "2"]
    assert chain_of(PATH, [own], "b").oldest == "x"
    assert names("a", own) == [], "content that an earlier attempt left is not ours: somebody put it back"
    assert names("somebody's", own) == []
    assert names(None, own) == []


def test_chain_that_somebody_interrupted_reaches_back_to_their_content() -> None:
    """V5: the difference that no attempt explains is somebody else's, and the chain ends there."""
    own = session("s", attempt("1", (PATH, "x", "a")), attempt("2", (PATH, "theirs", "b")))
    assert names("b", own) == ["2"]
    assert chain_of(PATH, [own], "b").oldest == "theirs"


def test_chain_joins_sessions_where_the_content_before_is_the_others_after() -> None:
    """V5: two sessions in turn on one file are one chain, whatever the order in which they are given."""
    first = session("s", attempt("1", (PATH, None, "a")), attempt("3", (PATH, "b", "c")))
    second = session("t", attempt("2", (PATH, "a", "b")), attempt("4", (PATH, "c", "d")))
    assert names("d", first, second) == names("d", second, first) == ["1", "2", "3", "4"]
    assert chain_of(PATH, [first, second], "d").oldest is None


def test_chain_with_repeated_contents_is_the_longest_one() -> None:
    """V5: where the same content came twice, the order that explains the most attempts counts."""
    first = session("s", attempt("1", (PATH, "x", "y")))
    second = session("t", attempt("2", (PATH, "y", "x")), attempt("3", (PATH, "x", "y")))
    assert names("y", first, second) == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("outcome", "settled", "certainty"),
    [
        ("returned", None, "certain"),
        ("failed", None, None),
        ("not_started", None, None),
        ("stopped", None, "perhaps"),
        ("unknown", None, "perhaps"),
        ("unknown_after_restart", None, "perhaps"),
        (None, None, "perhaps"),
        ("unknown", "checked_present", "certain"),
        ("unknown", "checked_absent", None),
        ("unknown", "superseded", None),
        ("unknown", "user_confirmed", "perhaps"),
        ("unknown", "model_confirmed", "perhaps"),
        ("unknown", "waived", "perhaps"),
        ("unknown", "restored", "perhaps"),
    ],
)
def test_attempt_counts_as_its_records_say(
    outcome: Outcome | None, settled: Settled | None, certainty: str | None
) -> None:
    """V5, I9: what is proved counts; what is only decided counts by the content that was found later."""
    own = attempt("1", (PATH, "x", "a"), outcome=outcome, settled=settled)
    assert chains.certainty_of(own) == certainty
    assert names("a", session("s", own)) == ([] if certainty is None else ["1"])
    assert names("x", session("s", own)) == []


def test_unknown_attempt_is_followed_by_what_was_found_later() -> None:
    """V5, C3: found with its content after, it is part of the chain; with the one before, it is passed over."""
    doubt = attempt("2", (PATH, "a", "b"), outcome="unknown")
    first = attempt("1", (PATH, "x", "a"))
    assert names("c", session("s", first, doubt, attempt("3", (PATH, "b", "c")))) == ["1", "2", "3"]
    assert names("c", session("s", first, doubt, attempt("3", (PATH, "a", "c")))) == ["1", "3"]
    assert names("c", session("s", first, doubt, attempt("3", (PATH, "z", "c")))) == ["3"]
    assert session("s", first, doubt).unresolved == {PATH: ("2",)}


def test_missing_file_is_ours_only_if_every_session_leads_to_it() -> None:
    """V5: two sessions may each have left nothing, and somebody else too; then nobody knows who did it last."""
    deleted = session("s", attempt("1", (PATH, "a", None)))
    created = session("t", attempt("2", (PATH, None, "b")))
    assert names(None, deleted) == ["1"]
    assert names(None, deleted, created) == []
    assert names("b", deleted, created) == ["1", "2"]


def test_chain_of_thousands_of_ambiguous_links_ends_within_its_bound() -> None:
    """V5, I13: a walk that has too many ways to go ends; what it did not reach is spared."""
    toggles = [attempt(str(number), (PATH, *("xy" if number % 2 else "yx"))) for number in range(3000)]
    found = chain_of(PATH, [session(name, *toggles) for name in "stuv"], "y")
    assert_sound(found.links, "y")
    assert len(found.links) >= 100
    long = [attempt(str(number), (PATH, str(number), str(number + 1))) for number in range(chains.STEPS_MAX + 5)]
    assert len(chain_of(PATH, [session("s", *long)], str(len(long))).links) == chains.STEPS_MAX


# Random histories.

Doing = Literal["write", "delete", "move", "restore", "lost", "failed", "theirs"]
steps = st.tuples(
    st.sampled_from(["write", "write", "delete", "move", "restore", "lost", "failed", "theirs"]),
    st.sampled_from("stu"),
    st.sampled_from(["/w/a", "/w/b"]),
    st.booleans(),
)


@attrs.define
class World:
    """Two files, three sessions and somebody else. Every new content is one that was never there before."""

    content: dict[str, str | None] = attrs.field(factory=lambda: {"/w/a": "first a", "/w/b": None})
    events: dict[str, list[Attempt | Review]] = attrs.field(factory=lambda: {name: [] for name in "stu"})
    origin: dict[str, str | None] = attrs.field(factory=lambda: {"/w/a": "first a", "/w/b": None})
    ours: dict[str, int] = attrs.field(factory=lambda: {"/w/a": 0, "/w/b": 0})
    count: int = 0

    def play(self, doing: Doing, who: str, path: str, happened: bool) -> None:
        self.count += 1
        new = f"content {self.count}"
        match doing:
            case "theirs":
                self.content[path] = self.origin[path] = new
                self.ours[path] = 0
            case "write":
                self._act(who, "returned", True, (path, self.content[path], new))
            case "delete" if self.content[path] is not None:
                self._act(who, "returned", True, (path, self.content[path], None))
            case "move" if self.content[path] is not None:
                other = "/w/b" if path == "/w/a" else "/w/a"
                here, there = self.content[path], self.content[other]
                self._act(who, "returned", True, (path, here, None), (other, there, here))
            case "restore":
                self._act(who, "returned", True, (path, self.content[path], self._before(who, path)))
            case "lost":
                self._act(who, "unknown", happened, (path, self.content[path], new))
            case "failed":
                self._act(who, "failed", False, (path, self.content[path], new))
            case _:
                pass

    def _act(self, who: str, outcome: Outcome, happened: bool, *changes: Change) -> None:
        self.events[who].append(attempt(str(self.count), *changes, outcome=outcome))
        for path, before, after in changes if happened else ():
            self.content[path] = after
            self.ours[path] += before != after

    def _before(self, who: str, path: str) -> str | None:
        """The content before the session's latest change of the path."""
        some = changes_of(who, self.events[who]).links.get(path, ())
        return some[-1].before if some else self.content[path]

    def sessions(self) -> list[SessionChanges]:
        return [changes_of(who, events) for who, events in self.events.items()]


def chains_in(world: World) -> Iterator[tuple[str, chains.Chain]]:
    for path, now in world.content.items():
        found = chain_of(path, world.sessions(), now)
        assert_sound(found.links, now)
        yield path, found


@given(st.lists(steps, max_size=14))
def test_chain_of_any_history_claims_nothing_that_somebody_else_wrote(history: list[Any]) -> None:
    """V5: random interleavings of our writes, deletions, moves, restores, failures and lost outcomes in three
    sessions with somebody else's writes. What they wrote last is not ours, and each joint of a chain holds.
    """
    world = World()
    for step in history:
        world.play(*step)
    for path, found in chains_in(world):
        theirs = world.content[path] == world.origin[path] and world.content[path] not in ("first a", None)
        assert not (found.is_ours and world.ours[path] == 0 and theirs)


@given(st.lists(steps.filter(lambda step: step[0] not in ("move", "restore", "delete")), max_size=14))
def test_chain_of_fresh_contents_reaches_exactly_what_somebody_else_left(history: list[Any]) -> None:
    """V5: while each content is new, the chain is all of ours since somebody else's last write, whichever sessions
    wrote, and its oldest content is theirs.
    """
    assert_exact(history)


@given(st.lists(steps.filter(lambda step: step[1] == "s"), max_size=14))
def test_chain_of_one_session_reaches_exactly_what_somebody_else_left(history: list[Any]) -> None:
    """V5: within one session the journal's order decides, so contents that come again confuse nothing."""
    assert_exact(history)


def assert_exact(history: list[Any]) -> None:
    world = World()
    for step in history:
        world.play(*step)
    for path, found in chains_in(world):
        assert len(found.links) == world.ours[path]
        if found.is_ours:
            assert found.oldest == world.origin[path]
