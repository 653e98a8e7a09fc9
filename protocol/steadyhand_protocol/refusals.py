"""The `data` of an error answer, one class for each kind.

`kind` holds the word; the code is in the table of `methods`. A refusal is an expected answer and has no effect. It
holds no stack traces, and no paths outside the workspace and the state directory.
"""

from typing import Literal, TypeAlias

from steadyhand_protocol.recovery import Inspection, Uncertain
from steadyhand_protocol.values import Digest, Id, Owner, ReadOnly, Settled
from steadyhand_values import frozen


@frozen
class FieldError:
    """One place where a value does not fit its shape."""

    path: str  # from the root `$`, such as `$.attachments[0].range.start.line`
    message: str  # what was expected there; never the value itself


@frozen(kw_only=True)
class InvalidParams:
    """Data of -32602: the params do not fit their shape."""

    errors: tuple[FieldError, ...]  # at most 10


@frozen(kw_only=True)
class UnknownSession:
    """There is no such session."""

    kind: Literal["unknownSession"] = "unknownSession"  # always this word


@frozen(kw_only=True)
class StaleEpoch:
    """The session has a new epoch since."""

    kind: Literal["staleEpoch"] = "staleEpoch"  # always this word
    epoch: Id  # the present epoch


@frozen(kw_only=True)
class TurnRunning:
    """A turn is running or finishing, and is not parked."""

    kind: Literal["turnRunning"] = "turnRunning"  # always this word
    turn_id: Id  # the turn that runs


@frozen(kw_only=True)
class StaleSnapshot:
    """The snapshot is not the present one, or does not hold the attempt."""

    kind: Literal["staleSnapshot"] = "staleSnapshot"  # always this word
    revision: Digest  # the present revision


@frozen(kw_only=True)
class InspectFirst:
    """The action needs an inspection that is still true."""

    kind: Literal["inspectFirst"] = "inspectFirst"  # always this word
    inspection: Inspection | None = None  # a new inspection, to name in the next request; absent when none was made


@frozen(kw_only=True)
class AlreadyResolved:
    """The attempt needs no decision any more."""

    kind: Literal["alreadyResolved"] = "alreadyResolved"  # always this word
    settled: Settled  # how it was settled


@frozen(kw_only=True)
class RetryDisabled:
    """The setting `recovery.retry` is off."""

    kind: Literal["retryDisabled"] = "retryDisabled"  # always this word


@frozen(kw_only=True)
class RetryUnsafe:
    """No proof exists that the attempt is absent and fenced."""

    kind: Literal["retryUnsafe"] = "retryUnsafe"  # always this word
    why: str  # one sentence


@frozen(kw_only=True)
class NotOwner:
    """Another process owns the session."""

    kind: Literal["notOwner"] = "notOwner"  # always this word
    owner: Owner | None = None  # that process; absent when it is unknown


@frozen(kw_only=True)
class JournalBroken:
    """The session's journal cannot be written."""

    kind: Literal["journalBroken"] = "journalBroken"  # always this word
    read_only: ReadOnly | None = None  # given when the session is read-only for another reason than its owner


@frozen(kw_only=True)
class RecoveryRequired:
    """Unresolved effects must be settled first."""

    kind: Literal["recoveryRequired"] = "recoveryRequired"  # always this word
    uncertain: tuple[Uncertain, ...]  # those effects


@frozen(kw_only=True)
class NotOffered:
    """This attempt does not offer the action."""

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
