"""The review of a session's changes on the wire: what of each file is under review, kept or undone.

A hunk is a part of the lines of a file, or the whole file. To keep changes no file. To undo is a checked attempt of its
own for each file, which spares what somebody else wrote.
"""

from typing import Annotated, Literal, TypeAlias

from steadyhand_protocol.values import AtMost, Change, Count, Id, Range
from steadyhand_values import frozen

REVIEW_HUNKS_COUNT_MAX = 10_000

ReviewAction: TypeAlias = Literal["keep", "undo"]
HunkIds: TypeAlias = Annotated[tuple[Id, ...], AtMost(REVIEW_HUNKS_COUNT_MAX, "items")]


@frozen(kw_only=True)
class ReviewListParams:
    """List the changed files of a session."""

    session_id: Id  # the session


@frozen(kw_only=True)
class ReviewHunk:
    """One part of a file's change."""

    hunk_id: Id  # changes with our content, so a decision names what its maker saw
    before: Range | None = None  # whole lines of the base; absent: the whole file, or it is decided
    after: Range | None = None  # whole lines of the text now, unsaved text too; absent: as above, or it is gone
    state: Literal["new", "kept", "undone", "gone"]  # "gone": somebody else changed these lines since


@frozen(kw_only=True)
class ReviewFile:
    """One changed file."""

    uri: str  # below the folder of the session, as the client spelled it
    path: str  # relative to the workspace with `/`, absolute if outside; after a move the new path
    change: Change  # what is under review, else everything that the session did to the file
    from_: str | None = None  # the old path; given if and only if change is "moved"
    hunks: tuple[ReviewHunk, ...]  # first what was kept or undone, then what is under review


@frozen(kw_only=True)
class ReviewListResult:
    """The changed files, those that were changed last at the end."""

    files: tuple[ReviewFile, ...]  # at most 200
    more: Count  # how many are not listed


@frozen(kw_only=True)
class ReviewResolveParams:
    """Keep or undo changes. Exactly one of `hunk_ids`, `uri` and `all` is given."""

    session_id: Id  # the session
    epoch: Id  # same as Session.epoch
    action: ReviewAction  # what to do
    hunk_ids: HunkIds | None = None  # these; an unknown one is left
    uri: str | None = None  # everything of this file
    all: Literal[True] | None = None  # everything of the session


@frozen(kw_only=True)
class ReviewLeft:
    """What a decision left as it was."""

    uri: str  # the file; empty for an id that no file has
    hunk_id: Id | None = None  # the part; absent for a file without one
    why: Literal["changed", "unsaved", "uncertain", "large", "expired", "io"]  # why it was left


@frozen(kw_only=True)
class ReviewResolveResult:
    """The changed files after the decision."""

    files: tuple[ReviewFile, ...]  # as in the list
    left: tuple[ReviewLeft, ...]  # what was not kept or undone


@frozen(kw_only=True)
class ReviewArguments:
    """Arguments of `steadyhand.review.keep` and `.undo`. Exactly one of `hunk_ids`, `uri` and `all` is given."""

    session_id: Id  # the session
    epoch: Id | None = None  # same as Session.epoch; absent: it is not compared
    hunk_ids: HunkIds | None = None  # these; an unknown one is left
    uri: str | None = None  # everything of this file
    all: Literal[True] | None = None  # everything of the session
