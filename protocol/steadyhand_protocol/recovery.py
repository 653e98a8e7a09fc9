"""Recovery on the wire: the snapshot, the uncertain attempts in it, an inspection, and the resolution of an attempt.

A snapshot is a fold of the journal and holds no arguments of a call. An inspection looks at files and processes and
holds them. A resolution names what its maker saw, and is refused if that has changed [I8]. A check speaks of the
present, never of history [I9].
"""

from typing import Annotated, Literal, TypeAlias

from steadyhand_protocol.values import (
    INSPECTION_CHANGED_COUNT_MAX,
    INSPECTION_DIFF_BYTES_MAX,
    UNCERTAIN_TITLE_CHARS_MAX,
    AtMost,
    Check,
    Count,
    Digest,
    Id,
    Scope,
    Settled,
    Time,
)
from steadyhand_values import frozen

Action: TypeAlias = Literal["inspect", "confirm", "reject", "waive", "retry", "restore"]
InspectionState: TypeAlias = Literal["present", "postcondition_satisfied", "absent_fenced", "unknown"]
UncertainState: TypeAlias = Literal["unknown", "rejected", "settled"]
UncertainTitle: TypeAlias = Annotated[str, AtMost(UNCERTAIN_TITLE_CHARS_MAX, "characters")]
DiffText: TypeAlias = Annotated[str, AtMost(INSPECTION_DIFF_BYTES_MAX, "bytes")]
ChangedHint: TypeAlias = Annotated[tuple[str, ...], AtMost(INSPECTION_CHANGED_COUNT_MAX, "items")]


@frozen(kw_only=True)
class LastInspection:
    """The latest inspection of an attempt, without its findings."""

    inspection_id: Id  # the id that a resolution names
    state: InspectionState  # what it found
    at: Time  # when it was made


@frozen(kw_only=True)
class Uncertain:
    """An attempt that may have run, wholly or in part."""

    session_id: Id  # session whose journal holds it
    attempt_id: Id  # the attempt
    call_id: Id  # the call that it tried to carry out
    turn_id: Id  # the turn of that call
    tool: str  # canonical tool name
    title: UncertainTitle  # tool and path; for a command the program's name; at most 80 characters
    scope: Scope  # what it may have touched
    state: UncertainState  # a "rejected" attempt is still uncertain
    settled: Settled | None = None  # given if and only if state is "settled"
    check: Check | None = None  # the last recorded check; absent when there is none
    started: Time  # when it may have begun
    inspection: LastInspection | None = None  # the latest one of this epoch; absent when there is none
    actions: tuple[Action, ...]  # the actions that are offered now


@frozen(kw_only=True)
class Statistics:
    """Counts over this session's journal; not telemetry."""

    unknown: Count  # attempts with an outcome that became unknown
    checked: Count  # attempts settled by a check
    confirmed: Count  # attempts settled by a confirmation
    rejected: Count  # attempts rejected at least once
    waived: Count  # attempts settled by a waiver
    retried: Count  # attempts superseded by a retry
    restored: Count  # attempts settled by a restore
    held_back: Count  # calls that were held back
    held_back_admitted: Count  # of these, calls that ran after a decision
    held_back_refused: Count  # of these, calls that ended without running
    by_proof: Count  # attempts that a check settled
    by_person: Count  # attempts that a decision of the user settled
    by_model: Count  # attempts that a decision of the model settled
    median_doubt_ms: Count | None = None  # from the loss of the outcome to the settlement; absent while none is settled


@frozen(kw_only=True)
class Snapshot:
    """What is uncertain in a session; immutable."""

    session_id: Id  # session whose journal it folds
    session_path: str  # the session's folder, absolute
    runtime_epoch: Id | None = None  # same as Session.epoch; absent unless this process owns the session
    revision: Digest  # digest of its canonical JSON without `revision` and `statistics`
    retry_enabled: bool  # the setting `recovery.retry`
    calls: tuple[Uncertain, ...]  # attempts that are not settled
    settled: tuple[Uncertain, ...]  # attempts settled in this epoch and since the session's last turn began
    statistics: Statistics  # not part of the revision


@frozen(kw_only=True)
class Side:
    """A file at one of three times: before, as intended, now."""

    exists: bool  # whether the file exists
    digest: Digest | None = None  # absent when there is no file or its content is unknown
    bytes: Count | None = None  # size; absent when there is no file or its content is unknown
    uri: str | None = None  # `steadyhand:/attempt/…` of its text; absent when there is none to show


@frozen(kw_only=True)
class BufferState:
    """The editor's text of a path."""

    open: bool  # whether the document is open in the editor
    dirty: bool  # whether it differs from the disk
    check: Check  # of the editor's text alone


@frozen(kw_only=True)
class InspectedPath:
    """What an inspection found at one path."""

    path: str  # relative to the workspace with `/`, absolute if outside
    check: Check  # of the present content
    reason: str | None = None  # why the check is unknown or a conflict; absent otherwise
    before: Side  # right before the attempt started
    intended: Side  # as the attempt would leave it
    now: Side  # at the time of the inspection
    buffer: BufferState | None = None  # absent when the editor has no part in it


@frozen(kw_only=True)
class Survivor:
    """A living process of the attempt."""

    pid: Count  # its process id
    started: str  # opaque mark of its start; together with the pid it names exactly one process
    command: str  # its command line, at most 200 characters


@frozen(kw_only=True)
class Inspection:
    """A look at the files and processes of one attempt, stored with an id."""

    inspection_id: Id  # the id that a resolution names
    attempt_id: Id  # the attempt that was inspected
    at: Time  # when it was made
    state: InspectionState  # what it found
    check: Check | None = None  # of all paths together; absent for an effect without paths
    paths: tuple[InspectedPath, ...]  # one for each path of the effect
    arguments: str  # the stored arguments as canonical JSON text; never sent to a model
    survivors: tuple[Survivor, ...]  # living processes that were found; an empty array proves nothing
    changed: ChangedHint  # files changed since the start, as a hint; at most 200
    changed_more: Count  # how many more files changed
    diff: DiffText | None = None  # intended against now, at most 64 KiB; absent when there is none to show
    text: str  # the finding in one sentence


@frozen(kw_only=True)
class SnapshotParams:
    """What is uncertain in a session?"""

    session_id: Id  # which session; opened first if it is not open in this process


@frozen(kw_only=True)
class ResolveParams:
    """A decision on an uncertain attempt, based on exactly what it names."""

    session_id: Id  # of the snapshot
    runtime_epoch: Id  # of the snapshot
    revision: Digest  # of the snapshot
    attempt_id: Id  # the attempt to decide on
    inspection_id: Id | None = None  # the inspection that was seen; may be absent only for "inspect"
    action: Action  # what to do


@frozen(kw_only=True)
class ResolveResult:
    """The state after a resolution."""

    snapshot: Snapshot  # the new snapshot
    inspection: Inspection | None = None  # given when an inspection was made


@frozen(kw_only=True)
class RecoveryListArguments:
    """Arguments of `steadyhand.recovery.list`."""

    session_id: Id | None = None  # absent: all open sessions of the client's folders


@frozen(kw_only=True)
class RecoveryListResult:
    """Uncertain attempts of one session or of the workspace."""

    uncertain: tuple[Uncertain, ...]  # attempts that need a decision
    settled: tuple[Uncertain, ...]  # attempts settled in this epoch and since the session's last turn began


@frozen(kw_only=True)
class RecoveryArguments:
    """Arguments of the commands that resolve; every given one is compared."""

    session_id: Id  # session whose journal holds the attempt
    attempt_id: Id  # the attempt to decide on
    runtime_epoch: Id | None = None  # absent: not compared
    revision: Digest | None = None  # absent: not compared
    inspection_id: Id | None = None  # absent: inspect and ask first


@frozen(kw_only=True)
class EndSurvivorsArguments:
    """Arguments of `steadyhand.recovery.endSurvivors`."""

    session_id: Id  # session whose journal holds the attempt
    attempt_id: Id  # attempt of the processes
    inspection_id: Id  # only processes with the pids and start times of this inspection are ended


@frozen(kw_only=True)
class EndSurvivorsResult:
    """How many processes were ended."""

    ended: Count  # processes that this request ended
    left: Count  # processes that are still alive
