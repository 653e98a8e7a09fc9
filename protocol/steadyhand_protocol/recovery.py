"""Recovery on the wire: the snapshot, the uncertain attempts in it, an inspection, and the resolution of one.

A snapshot is a fold of the journal and holds no arguments; an inspection is a look at the world and does. A
resolution names what its maker saw, and is refused when that is no longer so [I8]. A check speaks of the
present, never of history [I9].
"""

from typing import Annotated, Literal, TypeAlias

import attrs

from steadyhand_protocol.values import (
    AtMost,
    Check,
    Count,
    Digest,
    Id,
    Scope,
    Settled,
    Time,
    inspection_changed_count_max,
    inspection_diff_bytes_max,
    uncertain_title_chars_max,
)

Action: TypeAlias = Literal["inspect", "confirm", "reject", "waive", "retry", "restore"]
InspectionState: TypeAlias = Literal["present", "postcondition_satisfied", "absent_fenced", "unknown"]
UncertainState: TypeAlias = Literal["unknown", "rejected", "settled"]
UncertainTitle: TypeAlias = Annotated[str, AtMost(uncertain_title_chars_max, "characters")]
DiffText: TypeAlias = Annotated[str, AtMost(inspection_diff_bytes_max, "bytes")]
ChangedHint: TypeAlias = Annotated[tuple[str, ...], AtMost(inspection_changed_count_max, "items")]


@attrs.frozen(kw_only=True)
class LastInspection:
    """The latest inspection of an attempt, without its findings."""

    inspection_id: Id  # to be named by a resolution
    state: InspectionState  # what it found
    at: Time  # when it looked


@attrs.frozen(kw_only=True)
class Uncertain:
    """An attempt that may have run, wholly or in part."""

    session_id: Id  # whose journal holds it
    attempt_id: Id  # of this try
    call_id: Id  # the call it tried to carry out
    turn_id: Id  # the turn of that call
    tool: str  # canonical tool name
    title: UncertainTitle  # tool and path; for a command the program's name; at most 80 characters
    scope: Scope  # what it may have touched
    state: UncertainState  # "rejected" is still uncertain
    settled: Settled | None = None  # given when and only when state is "settled"
    check: Check | None = None  # the last recorded one; absent when there is none
    started: Time  # when it may have begun
    inspection: LastInspection | None = None  # absent until there was one
    actions: tuple[Action, ...]  # what can be done with it now


@attrs.frozen(kw_only=True)
class Statistics:
    """Counts of this session's journal; not telemetry."""

    unknown: Count  # attempts whose outcome became unknown
    checked: Count  # settled by a check
    confirmed: Count  # settled as confirmed
    rejected: Count  # rejected at least once
    waived: Count  # settled as waived
    retried: Count  # superseded by a retry
    restored: Count  # settled as restored
    held_back: Count  # calls held back by one of them


@attrs.frozen(kw_only=True)
class Snapshot:
    """What is uncertain in a session; immutable."""

    session_id: Id  # whose journal it folds
    session_path: str  # the session's folder, absolute
    runtime_epoch: Id | None = None  # as Session.epoch; absent unless this process owns the session
    revision: Digest  # of its canonical JSON without `revision` and `statistics`
    retry_enabled: bool  # setting `recovery.retry`
    calls: tuple[Uncertain, ...]  # those not settled
    settled: tuple[Uncertain, ...]  # those settled by a check until the next turn
    statistics: Statistics  # not part of the revision


@attrs.frozen(kw_only=True)
class Side:
    """A file at one of three moments: before, as intended, now."""

    exists: bool  # whether there is a file
    digest: Digest | None = None  # absent when there is none or it is not known
    bytes: Count | None = None  # absent when there is none or it is not known
    uri: str | None = None  # `steadyhand:/attempt/…` of its text; absent when there is none to show


@attrs.frozen(kw_only=True)
class BufferState:
    """The editor's text of a path."""

    open: bool  # whether it is open in the editor
    dirty: bool  # whether it differs from the disk
    check: Check  # of the editor's text alone


@attrs.frozen(kw_only=True)
class InspectedPath:
    """What an inspection found at one path."""

    path: str  # relative to the workspace with `/`, absolute if outside
    check: Check  # of the present content
    reason: str | None = None  # why it cannot be told or conflicts; absent otherwise
    before: Side  # right before the attempt started
    intended: Side  # as the attempt would leave it
    now: Side  # at the inspection
    buffer: BufferState | None = None  # absent when the editor plays no part


@attrs.frozen(kw_only=True)
class Survivor:
    """A process of the attempt that still lives."""

    pid: Count  # its process id
    started: str  # a mark of its start; with the pid it names one process and no later one
    command: str  # its command line, at most 200 characters


@attrs.frozen(kw_only=True)
class Inspection:
    """A look at the world for one attempt."""

    inspection_id: Id  # to be named by a resolution
    attempt_id: Id  # looked at
    at: Time  # when it looked
    state: InspectionState  # what it found
    check: Check | None = None  # of all paths together; absent for an effect without paths
    paths: tuple[InspectedPath, ...]  # one for each path of the effect
    arguments: str  # the stored ones, canonical JSON text; never in a prompt
    survivors: tuple[Survivor, ...]  # found living; an empty array is no proof that there are none
    changed: ChangedHint  # files changed since the start, a hint; at most 200
    changed_more: Count  # how many more there were
    diff: DiffText | None = None  # intended against now, at most 64 KiB; absent when there is none to show
    text: str  # the finding in one sentence


@attrs.frozen(kw_only=True)
class SnapshotParams:
    """What is uncertain in a session?"""

    session_id: Id  # opened first when it is not open here


@attrs.frozen(kw_only=True)
class ResolveParams:
    """A decision on an uncertain attempt, based on exactly what is named."""

    session_id: Id  # of the snapshot
    runtime_epoch: Id  # of the snapshot
    revision: Digest  # of the snapshot
    attempt_id: Id  # decided on
    inspection_id: Id | None = None  # the one seen; may be left out for "inspect" only
    action: Action  # what to do


@attrs.frozen(kw_only=True)
class ResolveResult:
    """How things stand after a resolution."""

    snapshot: Snapshot  # the new one
    inspection: Inspection | None = None  # given when the world was looked at


@attrs.frozen(kw_only=True)
class RecoveryListArguments:
    """Of `steadyhand.recovery.list`."""

    session_id: Id | None = None  # absent for all sessions of the workspace


@attrs.frozen(kw_only=True)
class RecoveryListResult:
    """Uncertain attempts over the workspace."""

    uncertain: tuple[Uncertain, ...]  # those that need a decision
    settled: tuple[Uncertain, ...]  # those settled by a check until the next turn


@attrs.frozen(kw_only=True)
class RecoveryArguments:
    """Of the commands that resolve; all given ones are compared."""

    session_id: Id  # whose journal holds the attempt
    attempt_id: Id  # decided on
    runtime_epoch: Id | None = None  # absent: not compared
    revision: Digest | None = None  # absent: not compared
    inspection_id: Id | None = None  # absent: inspect and ask first


@attrs.frozen(kw_only=True)
class EndSurvivorsArguments:
    """Of `steadyhand.recovery.endSurvivors`."""

    session_id: Id  # whose journal holds the attempt
    attempt_id: Id  # whose processes
    inspection_id: Id  # only pids with the start times of that inspection are ended


@attrs.frozen(kw_only=True)
class EndSurvivorsResult:
    """What was ended."""

    ended: Count  # processes that are gone now
    left: Count  # processes that still live
