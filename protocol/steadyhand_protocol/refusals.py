"""What stands in `data` of an error answer, one class for each kind.

`kind` holds the word; the code is in the table of `methods`. A refusal is an expected answer, without any
effect. No stack traces, no paths outside the workspace and the state directory.
"""

from typing import Literal, TypeAlias

import attrs

from steadyhand_protocol.recovery import Inspection, Uncertain
from steadyhand_protocol.values import Digest, Id, Owner, ReadOnly, Settled


@attrs.frozen
class FieldError:
    """One place where a value does not fit its shape."""

    path: str  # from the root `$`, such as `$.attachments[0].range.start.line`
    message: str  # what was expected there; never the value itself


@attrs.frozen(kw_only=True)
class InvalidParams:
    """Data of -32602: the params do not fit."""

    errors: tuple[FieldError, ...]  # at most 10


@attrs.frozen(kw_only=True)
class UnknownSession:
    """There is no such session."""

    kind: Literal["unknownSession"] = "unknownSession"  # always this word


@attrs.frozen(kw_only=True)
class StaleEpoch:
    """The session was bound anew since."""

    kind: Literal["staleEpoch"] = "staleEpoch"  # always this word
    epoch: Id  # the one that holds now


@attrs.frozen(kw_only=True)
class TurnRunning:
    """A turn is running or finishing, and is not parked."""

    kind: Literal["turnRunning"] = "turnRunning"  # always this word
    turn_id: Id  # the turn


@attrs.frozen(kw_only=True)
class StaleSnapshot:
    """The snapshot is no longer this one, or does not hold the attempt."""

    kind: Literal["staleSnapshot"] = "staleSnapshot"  # always this word
    revision: Digest  # the one that holds now


@attrs.frozen(kw_only=True)
class InspectFirst:
    """The action needs an inspection that still holds."""

    kind: Literal["inspectFirst"] = "inspectFirst"  # always this word
    inspection: Inspection | None = None  # a new one, to be named next time; absent when none was made


@attrs.frozen(kw_only=True)
class AlreadyResolved:
    """The attempt needs no decision any more."""

    kind: Literal["alreadyResolved"] = "alreadyResolved"  # always this word
    settled: Settled  # how it was settled


@attrs.frozen(kw_only=True)
class RetryDisabled:
    """The setting `recovery.retry` is off."""

    kind: Literal["retryDisabled"] = "retryDisabled"  # always this word


@attrs.frozen(kw_only=True)
class RetryUnsafe:
    """It is not proved that the attempt is absent and fenced."""

    kind: Literal["retryUnsafe"] = "retryUnsafe"  # always this word
    why: str  # one sentence


@attrs.frozen(kw_only=True)
class NotOwner:
    """Another process owns the session."""

    kind: Literal["notOwner"] = "notOwner"  # always this word
    owner: Owner | None = None  # that process; absent when it cannot be read who it is


@attrs.frozen(kw_only=True)
class JournalBroken:
    """The session cannot be written to."""

    kind: Literal["journalBroken"] = "journalBroken"  # always this word
    read_only: ReadOnly | None = None  # given when the session is read-only for another reason than its owner


@attrs.frozen(kw_only=True)
class RecoveryRequired:
    """Unresolved effects stand in the way."""

    kind: Literal["recoveryRequired"] = "recoveryRequired"  # always this word
    uncertain: tuple[Uncertain, ...]  # those effects


@attrs.frozen(kw_only=True)
class NotOffered:
    """An action this attempt cannot have."""

    kind: Literal["notOffered"] = "notOffered"  # always this word
    why: str  # one sentence


Refusal: TypeAlias = (
    UnknownSession
    | StaleEpoch
    | TurnRunning
    | StaleSnapshot
    | InspectFirst
    | AlreadyResolved
    | RetryDisabled
    | RetryUnsafe
    | NotOwner
    | JournalBroken
    | RecoveryRequired
    | NotOffered
)
