"""Each view class has a wire class with the same members and types.

The server builds views (`steadyhand.domain.views.types`), and `to_plain` writes them in the spelling of the wire, so
nothing at run time compares them with the wire classes of `steadyhand_protocol`. These tests do, by reflection.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs
import pytest

from steadyhand.domain.records import prompt, record
from steadyhand.domain.text import positions
from steadyhand.domain.views import types as views
from steadyhand_protocol import approval, recovery, review, session, turn, values
from steadyhand_values import frozen

# View class → wire class. The first ones are values of the journal that views contain.
WIRE_CLASSES: dict[type, type] = {
    positions.Position: values.Position,
    positions.Range: values.Range,
    prompt.FileAttachment: turn.FileAttachment,
    prompt.SelectionAttachment: turn.SelectionAttachment,
    prompt.ProblemsAttachment: turn.ProblemsAttachment,
    prompt.TextAttachment: turn.TextAttachment,
    record.ModelName: values.ModelChoice,
    views.LockHolder: values.Owner,
    views.ReadOnly: values.ReadOnly,
    views.JobView: session.Job,
    views.SessionView: session.Session,
    views.SessionOriginView: session.SessionOrigin,
    views.ScopePaths: values.ScopePaths,
    views.ScopeEverything: values.ScopeEverything,
    views.ReplyView: turn.Reply,
    views.FileView: turn.CallFile,
    views.SandboxView: turn.CallSandbox,
    views.ExitView: turn.Exit,
    views.SeenChangeView: turn.SeenChange,
    views.ChangedDuringView: turn.ChangedDuring,
    views.ChangedInCall: turn.ChangedInCall,
    views.CallView: turn.Call,
    views.BeforeCompaction: values.BeforeCompaction,
    views.AfterCompaction: values.AfterCompaction,
    views.CompactionNote: session.CompactionNote,
    views.CompactResult: session.SessionCompactResult,
    views.Compacted: turn.CompactedEvent,
    views.MessageView: session.Message,
    views.QueuedView: turn.Queued,
    views.GrantView: approval.StandingGrant,
    views.InspectionNote: recovery.LastInspection,
    views.Uncertain: recovery.Uncertain,
    views.Statistics: recovery.Statistics,
    views.Snapshot: recovery.Snapshot,
    views.Side: recovery.Side,
    views.InspectedPath: recovery.InspectedPath,
    views.SurvivorView: recovery.Survivor,
    views.InspectionView: recovery.Inspection,
    views.ChangedFile: values.ChangedPath,
    views.Began: turn.BeganEvent,
    views.TextDelta: turn.DeltaEvent,
    views.CallChanged: turn.CallEvent,
    views.PlanItem: turn.PlanItem,
    views.PlanChanged: turn.PlanEvent,
    views.UsageChanged: turn.UsageEvent,
    views.Warned: turn.WarningEvent,
    views.Noticed: turn.NoticeEvent,
    views.ModelTold: turn.ToldEvent,
    views.Steered: turn.SteeredEvent,
    views.TurnEnded: turn.EndedEvent,
    views.CheckpointTurn: session.CheckpointTurn,
    views.Revised: session.TurnReviseResult,
    views.Steering: session.TurnSteerResult,
    views.LeftPath: session.LeftPath,
    views.RewindResult: session.CheckpointRewindResult,
    views.ReviewHunk: review.ReviewHunk,
    views.ReviewFile: review.ReviewFile,
    views.ReviewList: review.ReviewListResult,
    views.LeftHunk: review.ReviewLeft,
    views.ReviewResult: review.ReviewResolveResult,
    views.Billed: values.BilledTokens,
    views.Cost: values.Cost,
    views.Auxiliary: values.AuxiliaryUsage,
    views.UsageView: values.Usage,
    views.TurnEvent: turn.TurnEvent,
}
# Optional members of the wire that the server never sends.
NEVER_SENT = {(recovery.InspectedPath, "buffer")}


def plain_type(shape: Any) -> object:
    """A type without aliases, bounds and order: a view class becomes its wire class, a union a set."""
    if get_origin(shape) is Annotated:
        return plain_type(get_args(shape)[0])
    if get_origin(shape) in (Union, UnionType):
        return frozenset(plain_type(member) for member in get_args(shape))
    if get_origin(shape) is Literal:
        return ("literal", frozenset(get_args(shape)))
    if get_origin(shape) is not None:
        return (get_origin(shape), tuple(plain_type(member) for member in get_args(shape)))
    return WIRE_CLASSES.get(shape, shape)


def members_of(cls: type) -> dict[str, object]:
    """Name → plain type. The name determines the key on both sides (`camel_case`, `wire`)."""
    hints = get_type_hints(cls)
    return {field.name: plain_type(hints[field.name]) for field in attrs.fields(cls)}


def defaults_of(cls: type) -> dict[str, object]:
    """The constants of a class: members with a default other than None that is the only possible value."""
    hints = get_type_hints(cls)
    return {field.name: field.default for field in attrs.fields(cls) if get_args(hints[field.name]) == (field.default,)}


def differences(view: type, wire: type) -> Iterator[str]:
    """Each way in which the members of the two classes differ."""
    ours, theirs = members_of(view), members_of(wire)
    for name in sorted(ours.keys() | theirs.keys()):
        if name not in theirs:
            yield f"{view.__name__}.{name}: not on the wire"
        elif name not in ours and (wire, name) not in NEVER_SENT:
            yield f"{view.__name__}.{name}: missing"
        elif name in ours and ours[name] != theirs[name]:
            yield f"{view.__name__}.{name}: {ours[name]} is not {theirs[name]}"
    if defaults_of(view) != defaults_of(wire):
        yield f"{view.__name__}: other constants"


def test_every_view_class_has_a_wire_class() -> None:
    """Each value class of `domain/views/types.py` is in the table of pairs, and no wire class is there twice."""
    defined = {cls for cls in vars(views).values() if isinstance(cls, type) and cls.__module__ == views.__name__}
    assert {cls for cls in defined if attrs.has(cls)} <= WIRE_CLASSES.keys()
    assert len(set(WIRE_CLASSES.values())) == len(WIRE_CLASSES)


@pytest.mark.parametrize(("view", "wire"), WIRE_CLASSES.items(), ids=lambda cls: cls.__name__)
def test_view_class_has_the_members_of_its_wire_class(view: type, wire: type) -> None:
    """Names, types, optional members and constants are the same."""
    assert list(differences(view, wire)) == []


def test_never_sent_members_are_optional_on_the_wire() -> None:
    """A member that the server never sends may be absent on the wire."""
    for wire, name in NEVER_SENT:
        kinds = members_of(wire)[name]
        assert isinstance(kinds, frozenset)
        assert NoneType in kinds


@frozen(kw_only=True)
class _Wire:
    path: Annotated[str, values.AtMost(9, "bytes")]
    sides: tuple[recovery.Side, ...]
    reason: str | None = None
    kind: Literal["one"] = "one"


@frozen
class _Same:
    sides: tuple[views.Side, ...]
    path: str
    reason: str | None
    kind: Literal["one"] = "one"


@frozen
class _WithoutReason:
    path: str
    sides: tuple[views.Side, ...]
    kind: Literal["one"] = "one"


@frozen
class _MoreMembers(_Same):
    more: int = 0


@frozen
class _OtherTypes:
    path: int
    sides: tuple[views.Cost, ...]
    reason: str
    kind: Literal["one", "two"] = "one"


@pytest.mark.parametrize(
    ("view", "names"),
    [
        (_Same, []),
        (_WithoutReason, ["reason"]),
        (_MoreMembers, ["more"]),
        (_OtherTypes, ["kind", "path", "reason", "sides"]),
    ],
)
def test_comparison_finds_each_kind_of_difference(view: type, names: list[str]) -> None:
    """A missing member, one more, another type, another class and a member that is not optional are each found."""
    found = [text.partition(":")[0] for text in differences(view, _Wire)]
    assert [name.partition(".")[2] for name in found if "." in name] == names
