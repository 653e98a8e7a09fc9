"""The permission policy over every mode, effect class, place, protected path, grant and rule (row G2)."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from steadyhand.domain.permissions.policy import (
    Admission,
    Admit,
    AskFirst,
    CallFacts,
    Deny,
    decide_admission,
)
from steadyhand.domain.permissions.rules import NO_RULES, PermissionRule, PermissionRules, parse_rule
from steadyhand.domain.records.record import EffectClass, Grant, Mode, Permission, Scope
from steadyhand.domain.records.scope import EVERYTHING, NOTHING

BOTH = (False, True)
MODES: tuple[Mode, ...] = get_args(Mode)
EFFECTS: tuple[EffectClass, ...] = get_args(EffectClass)
COMMAND = ("make", "/w")


def wanted(effect: EffectClass, outside: bool = False, protected: bool = False) -> CallFacts:
    command = COMMAND if effect == "opaque" else None
    tool = {"reads": "read_file", "writes_files": "write_file", "opaque": "run_command"}[effect]
    scope = {"reads": NOTHING, "writes_files": Scope(("/w/f",)), "opaque": EVERYTHING}[effect]
    return CallFacts(tool, effect, scope, outside, protected, command)


def grant(tool: str, answer: Grant = "session", command: tuple[str, str] | None = None) -> Permission:
    line, cwd = command or (None, None)
    return Permission(attempt_id="a", call_id="c", answer=answer, tool=tool, note=None, command=line, cwd=cwd)


GRANTS = (grant("write_file"), grant("run_command", command=COMMAND))


def expected(mode: Mode, effect: EffectClass, outside: bool, protected: bool, granted: bool) -> type[Admission]:
    """The decision that row G2 gives, written independently of the code."""
    if effect == "reads":
        return AskFirst if outside or protected else Admit
    if mode == "plan":
        return Deny
    if outside or protected:
        return AskFirst
    free = {"ask": (), "edits": ("writes_files",), "auto": ("writes_files", "opaque")}[mode]
    return Admit if effect in free or granted else AskFirst


@pytest.mark.parametrize(
    ("mode", "effect", "outside", "protected", "granted"), list(itertools.product(MODES, EFFECTS, BOTH, BOTH, BOTH))
)
def test_permit_without_rules_decides_by_mode_place_and_grant(
    mode: Mode, effect: EffectClass, outside: bool, protected: bool, granted: bool
) -> None:
    """G2: the mode decides. A call that leaves the workspace or touches a protected path always asks, and only the
    others can be granted for the session.
    """
    found = decide_admission(wanted(effect, outside, protected), mode, GRANTS if granted else ())
    assert type(found) is expected(mode, effect, outside, protected, granted)
    if isinstance(found, AskFirst):
        assert found.lasting is not (outside or protected)


MATCH_ALL = (PermissionRule("*", "*"),)
RULE_SETS = [PermissionRules(allow, ask, deny) for allow, ask, deny in itertools.product(((), MATCH_ALL), repeat=3)]


@pytest.mark.parametrize("trusted", BOTH)
@pytest.mark.parametrize(
    ("mode", "effect", "outside", "protected"), list(itertools.product(MODES, EFFECTS, BOTH, BOTH))
)
def test_permit_with_rules_applies_trust_deny_ask_allow_in_order(
    mode: Mode, effect: EffectClass, outside: bool, protected: bool, trusted: bool
) -> None:
    """G2: the order is trust, `deny` rules, the mode `plan` and what always asks, `ask` rules, and then whatever
    allows.
    """
    for rules in RULE_SETS:
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
            found = decide_admission(
                wanted(effect, outside, protected), mode, GRANTS if granted else (), rules, trusted
            )
            assert type(found) is wants, (rules, granted)
            if isinstance(found, AskFirst) and (rules.ask or outside or protected):
                assert not found.lasting, "a grant would have no effect"


def test_permit_refusal_names_the_rule_or_the_missing_trust() -> None:
    """G2: the text names the rule that forbids or the rule that asks. An untrusted workspace is named as the reason."""
    ruled = PermissionRules(
        deny=(PermissionRule("write_file", "write_file"),), ask=(PermissionRule("run_command", "run_command"),)
    )
    denied, asked = (
        decide_admission(wanted("writes_files"), "auto", (), ruled),
        decide_admission(wanted("opaque"), "auto", (), ruled),
    )
    assert isinstance(denied, Deny)
    assert "“write_file” in permissions.deny" in denied.text
    assert isinstance(asked, AskFirst)
    assert "“run_command” in permissions.ask" in asked.why
    untrusted = decide_admission(wanted("opaque"), "auto", (), ruled, trusted=False)
    assert isinstance(untrusted, Deny)
    assert "not trusted" in untrusted.text


def test_rule_compares_paths_relative_to_the_workspace_root() -> None:
    """G2: without a workspace a relative pattern matches no path."""
    allow = PermissionRules(allow=(PermissionRule("write_file", "write_file"),))
    inside = CallFacts("write_file", "writes_files", Scope(("/w/f",)), False, False, None, "/w")
    assert isinstance(decide_admission(inside, "ask", (), allow), Admit)
    assert isinstance(decide_admission(inside, "ask", (), NO_RULES), AskFirst)
    assert inside.target.root == "/w"
    assert wanted("opaque").target.command == COMMAND[0]


@pytest.mark.parametrize("answer", get_args(Grant))
def test_permit_only_a_session_grant_admits_a_later_call(answer: Grant) -> None:
    """G2: the call that asked uses up a one-time permission or a refusal."""
    found = decide_admission(wanted("writes_files"), "ask", [grant("write_file", answer)])
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
def test_command_grant_covers_only_the_same_command_and_folder(held: Permission, covers: bool) -> None:
    """G2: a grant for one command and folder covers no other command or folder."""
    assert isinstance(decide_admission(wanted("opaque"), "ask", [held]), Admit) is covers


def test_file_grant_covers_only_its_own_tool() -> None:
    """G2: a grant for writing does not cover deleting."""
    delete = CallFacts("delete_file", "writes_files", Scope(("/w/f",)), False, False)
    assert isinstance(decide_admission(delete, "ask", [grant("write_file")]), AskFirst)


def test_permit_effect_without_path_or_command_offers_no_lasting_grant() -> None:
    """G2: an effect that is neither a file tool's nor a command's asks each time, even with a grant for it."""
    settles = CallFacts("settle_effect", "opaque", NOTHING, False, False)
    assert decide_admission(settles, "ask", ()) == AskFirst("this mode asks before each change", lasting=False)
    assert isinstance(decide_admission(settles, "ask", [grant("settle_effect")]), AskFirst)


@pytest.mark.parametrize("mode", ["ask", "edits", "auto"])
def test_command_that_names_a_secret_asks_unless_it_was_granted(mode: Mode) -> None:
    """Case 137, decision 60: in the mode `auto` too; a grant or a rule for that command covers it."""
    named = CallFacts("run_command", "opaque", EVERYTHING, False, False, ("cat .env", "/w"), "/w", names_secret=True)
    found = decide_admission(named, mode, ())
    assert isinstance(found, AskFirst)
    assert found.lasting
    assert found.why == "it names a file that may hold a secret"
    assert isinstance(decide_admission(named, mode, (grant("run_command", command=("cat .env", "/w")),)), Admit)
    rule = parse_rule("run_command(cat .env)", {"run_command": "command"})
    assert isinstance(rule, PermissionRule)
    assert isinstance(decide_admission(named, mode, (), PermissionRules(allow=(rule,))), Admit)
    assert isinstance(decide_admission(named, "plan", ()), Deny)
