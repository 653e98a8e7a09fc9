"""The diagnostics of uncertain effects, computed from a recovery snapshot; pure (row A8).

Their form is in docs/protocol.md#diagnostics-and-code-actions. An unresolved effect has one diagnostic for each of its
paths (`uncertain-write`). So has an effect that a check settled, as long as the snapshot lists it (`checked-write`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from steadyhand.domain.recovery.postcondition import Aim
from steadyhand.domain.views.sentences import check_sentence
from steadyhand.domain.views.types import Action, Snapshot, Uncertain
from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.state.positions import width
from steadyhand.session.inspection.effect_places import EffectPlaces
from steadyhand_values import frozen

SOURCE = "steadyhand"
SETTLED_BY_CHECK = ("checked_present", "checked_absent")
TITLES: dict[Action, str] = {
    "inspect": "Steadyhand: Inspect",
    "confirm": "Steadyhand: Confirm",
    "reject": "Steadyhand: Reject (do not repeat; stays uncertain)",
    "waive": "Steadyhand: Continue without knowing",
    "restore": "Steadyhand: Restore",
    "retry": "Steadyhand: Retry",
}


@frozen
class EffectDiagnostic:
    """One path of one effect. Its commands carry what the snapshot said, so that the server can refuse stale ones."""

    uri: str
    line: int
    width: int  # of the line, in the client's units
    uncertain: Uncertain
    epoch: str | None  # of the snapshot
    revision: str  # of the snapshot
    aim: Aim = "content"

    @property
    def range(self) -> types.Range:
        return types.Range(types.Position(self.line, 0), types.Position(self.line, self.width))

    @property
    def is_settled(self) -> bool:
        return self.uncertain.state == "settled"

    def message(self) -> str:
        uncertain = self.uncertain
        if self.is_settled:
            state = "is there" if uncertain.settled == "checked_present" else "is not there"
            return f"“{uncertain.title}” was interrupted. Steadyhand checked the result: the change {state} now."
        rejected = " You chose not to repeat it." if uncertain.state == "rejected" else ""
        check = check_sentence(uncertain.check, self.aim)
        return f"It is uncertain whether “{uncertain.title}” happened. {check}{rejected}"

    def to_lsp(self) -> types.Diagnostic:
        severity = types.DiagnosticSeverity.Information if self.is_settled else types.DiagnosticSeverity.Warning
        return types.Diagnostic(
            range=self.range,
            message=self.message(),
            severity=severity,
            code="checked-write" if self.is_settled else "uncertain-write",
            source=SOURCE,
            data={"sessionId": self.uncertain.session_id, "attemptId": self.uncertain.attempt_id},
        )

    def command(self, action: Action) -> types.Command:
        uncertain = self.uncertain
        argument: dict[str, object] = {"sessionId": uncertain.session_id, "attemptId": uncertain.attempt_id}
        if self.epoch is not None:
            argument["runtimeEpoch"] = self.epoch
        argument["revision"] = self.revision
        if uncertain.inspection is not None and action != "inspect":
            argument["inspectionId"] = uncertain.inspection.inspection_id
        return types.Command(title=TITLES[action], command=f"steadyhand.recovery.{action}", arguments=(argument,))


def effects_with_diagnostics(snapshot: Snapshot) -> tuple[Uncertain, ...]:
    """Return what is unresolved or was settled by a check."""
    checked = (effect for effect in snapshot.settled if effect.settled in SETTLED_BY_CHECK)
    return (*snapshot.calls, *checked)


def effect_diagnostics(
    snapshot: Snapshot, places: Mapping[str, EffectPlaces], uris: Mapping[str, Sequence[str]], encoding: str
) -> tuple[EffectDiagnostic, ...]:
    """Return the diagnostics of a session, in the order of `places`.

    `places`: attempt id → its paths, of effects in the snapshot; `uris`: path → its URIs, see `document_uris`.
    """
    return tuple(_diagnostics(snapshot, places, uris, encoding))


def _diagnostics(
    snapshot: Snapshot, places: Mapping[str, EffectPlaces], uris: Mapping[str, Sequence[str]], encoding: str
) -> Iterator[EffectDiagnostic]:
    effects = {effect.attempt_id: effect for effect in effects_with_diagnostics(snapshot)}
    for attempt_id, found in places.items():
        for place, uri in [(one, uri) for one in found.places for uri in uris[one.path]]:
            yield EffectDiagnostic(
                uri=uri,
                line=place.line,
                width=width(place.line_text, encoding),
                uncertain=effects[attempt_id],
                epoch=snapshot.runtime_epoch,
                revision=snapshot.revision,
                aim=found.aim,
            )
