"""Admission: modes, effects, what leaves the workspace, protected paths and grants, walked whole."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from steadyhand.core.admission import Admission, Admit, AskFirst, Deny, Wanted, holding_back, permit
from steadyhand.core.folded import Attempt
from steadyhand.core.record import EffectClass, Grant, Mode, Permission, Scope
from steadyhand.core.rules import NO_RULES, Rule, Rules
from steadyhand.core.scope import EVERYTHING, NOTHING

BOTH = (False, True)
MODES: tuple[Mode, ...] = get_args(Mode)
EFFECTS: tuple[EffectClass, ...] = get_args(EffectClass)
COMMAND = ("make", "/w")


def wanted(effect: EffectClass, outside: bool = False, protected: bool = False) -> Wanted:
    command = COMMAND if effect == "opaque" else None
    tool = {"reads": "read_file", "writes_files": "write_file", "opaque": "run_command"}[effect]
    scope = {"reads": NOTHING, "writes_files": Scope(("/w/f",)), "opaque": EVERYTHING}[effect]
    return Wanted(tool, effect, scope, outside, protected, command)


def grant(tool: str, answer: Grant = "session", command: tuple[str, str] | None = None) -> Permission:
    return Permission("a", "c", answer, tool, None, *(command or (None, None)))


GRANTS = (grant("write_file"), grant("run_command", command=COMMAND))


def expected(mode: Mode, effect: EffectClass, outside: bool, protected: bool, granted: bool) -> type[Admission]:
    """Row G2 in one place, written independently of the code."""
    if effect == "reads":
        return AskFirst if outside else Admit
    if mode == "plan":
        return Deny
    if outside or protected:
        return AskFirst
    free = {"ask": (), "edits": ("writes_files",), "auto": ("writes_files", "opaque")}[mode]
    return Admit if effect in free or granted else AskFirst


@pytest.mark.parametrize(
    ("mode", "effect", "outside", "protected", "granted"), list(itertools.product(MODES, EFFECTS, BOTH, BOTH, BOTH))
)
def test_every_combination(mode: Mode, effect: EffectClass, outside: bool, protected: bool, granted: bool) -> None:
    """G2: the mode decides; nothing lets a call out of the workspace or at a protected path without a question."""
    found = permit(wanted(effect, outside, protected), mode, GRANTS if granted else ())
    assert type(found) is expected(mode, effect, outside, protected, granted)
    if isinstance(found, AskFirst):
        assert found.lasting is not (outside or protected)


EACH = (Rule("*", "*"),)
RULED = [Rules(allow, ask, deny) for allow, ask, deny in itertools.product(((), EACH), repeat=3) if (allow, ask, deny)]


@pytest.mark.parametrize("trusted", BOTH)
@pytest.mark.parametrize(
    ("mode", "effect", "outside", "protected"), list(itertools.product(MODES, EFFECTS, BOTH, BOTH))
)
def test_every_combination_with_rules(
    mode: Mode, effect: EffectClass, outside: bool, protected: bool, trusted: bool
) -> None:
    """G2: trust, then deny, then the mode `plan` and what always asks, then ask, then whatever allows."""
    for rules in RULED:
        for granted in BOTH:
            plain = expected(mode, effect, outside, protected, granted)
            if (not trusted and effect != "reads") or rules.deny:
                wants: type[Admission] = Deny
            elif rules.ask and plain is Admit:
                wants = AskFirst
            elif rules.allow and plain is AskFirst and not (outside or protected or rules.ask):
                wants = Admit
            else:
                wants = plain
            found = permit(wanted(effect, outside, protected), mode, GRANTS if granted else (), rules, trusted)
            assert type(found) is wants, (rules, granted)
            if isinstance(found, AskFirst) and (rules.ask or outside):
                assert not found.lasting, "a grant would not be heard"


def test_a_refusal_names_its_rule() -> None:
    """G2: the sentence names the rule that forbids, and the one that asks; trust and mode say what they are."""
    ruled = Rules(deny=(Rule("write_file", "write_file"),), ask=(Rule("run_command", "run_command"),))
    denied, asked = permit(wanted("writes_files"), "auto", (), ruled), permit(wanted("opaque"), "auto", (), ruled)
    assert isinstance(denied, Deny)
    assert "“write_file” in permissions.deny" in denied.text
    assert isinstance(asked, AskFirst)
    assert "“run_command” in permissions.ask" in asked.why
    untrusted = permit(wanted("opaque"), "auto", (), ruled, trusted=False)
    assert isinstance(untrusted, Deny)
    assert "not trusted" in untrusted.text


def test_a_rule_compares_paths_from_the_workspace_on() -> None:
    """G2: without a workspace a relative pattern fits no path."""
    allow = Rules(allow=(Rule("write_file", "write_file"),))
    inside = Wanted("write_file", "writes_files", Scope(("/w/f",)), False, False, None, "/w")
    assert isinstance(permit(inside, "ask", (), allow), Admit)
    assert isinstance(permit(inside, "ask", (), NO_RULES), AskFirst)
    assert inside.target.root == "/w"
    assert wanted("opaque").target.command == COMMAND[0]


@pytest.mark.parametrize("answer", get_args(Grant))
def test_only_a_session_grant_stands(answer: Grant) -> None:
    """G2: an answer for once, or a no, is used up by the call it was given for."""
    found = permit(wanted("writes_files"), "ask", [grant("write_file", answer)])
    assert isinstance(found, Admit) is (answer == "session")


@pytest.mark.parametrize(
    ("held", "covers"),
    [
        (grant("run_command", command=COMMAND), True),
        (grant("run_command", command=("make clean", "/w")), False),
        (grant("run_command", command=("make", "/elsewhere")), False),
        (grant("run_command"), False),
        (grant("write_file"), False),
    ],
)
def test_a_grant_for_a_command_is_for_that_very_command(held: Permission, covers: bool) -> None:
    """G2: a grant for one command and folder covers no other."""
    assert isinstance(permit(wanted("opaque"), "ask", [held]), Admit) is covers


def test_a_grant_is_for_one_tool() -> None:
    """G2: a grant for writing covers no deleting."""
    delete = Wanted("delete_file", "writes_files", Scope(("/w/f",)), False, False)
    assert isinstance(permit(delete, "ask", [grant("write_file")]), AskFirst)


def test_a_lasting_answer_is_offered_only_where_it_would_last() -> None:
    """G2: an effect that is neither a file tool's nor a command's is asked for each time."""
    settles = Wanted("settle_effect", "opaque", NOTHING, False, False)
    assert permit(settles, "ask", ()) == AskFirst("this mode asks before each change", lasting=False)
    assert isinstance(permit(settles, "ask", [grant("settle_effect")]), AskFirst)


def attempt(name: str, scope: Scope) -> Attempt:
    return Attempt(name, f"call {name}", "t", "write_file", "title", "writes_files", scope, "now", stage="uncertain")


ONE, TWO, ALL = attempt("1", Scope(("/w/f",))), attempt("2", Scope(("/w/g",))), attempt("3", EVERYTHING)


@pytest.mark.parametrize("effect", EFFECTS)
def test_reads_are_never_held_back(effect: EffectClass) -> None:
    """B1: an unresolved effect holds back what overlaps it, reads never [I6]."""
    found = holding_back(wanted(effect), [ONE, TWO, ALL])
    assert found == {"reads": [], "writes_files": [ONE, ALL], "opaque": [ONE, TWO, ALL]}[effect]


def test_a_retry_is_not_held_back_by_what_it_is_of() -> None:
    """B1, F2: but by every other one [I6]."""
    assert holding_back(wanted("writes_files"), [ONE, ALL], except_for="1") == [ALL]


def test_what_touches_nothing_is_not_held_back() -> None:
    """B1: settling an effect, or stopping a job, can always be asked for."""
    assert holding_back(Wanted("settle_effect", "opaque", NOTHING, False, False), [ONE, ALL]) == []
