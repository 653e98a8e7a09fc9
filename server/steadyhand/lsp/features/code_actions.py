"""Code actions: at the diagnostics of uncertain effects one quick fix for each action that is offered now; at a change
under review, keep and undo."""

from __future__ import annotations

from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.features.diagnostics_publisher import DiagnosticsPublisher
from steadyhand.lsp.features.effect_diagnostics import SOURCE, EffectDiagnostic
from steadyhand.lsp.features.review import ReviewFeature
from steadyhand.lsp.rpc.server import Server


class CodeActions:
    """Answers `textDocument/codeAction`."""

    def __init__(self, server: Server, publisher: DiagnosticsPublisher, review: ReviewFeature) -> None:
        self._publisher = publisher
        self._review = review
        server.on_lsp(types.TEXT_DOCUMENT_CODE_ACTION, self.code_actions)

    async def code_actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        await self._publisher.flush()
        only = params.context.only
        if only and not any(includes_quick_fixes(kind) for kind in only):
            return []
        effects = [effect for effect in self._publisher.at(params.text_document.uri) if is_requested(effect, params)]
        at_changes = await self._review.code_actions(params)
        return [*(action for effect in effects for action in actions_of(effect)), *at_changes]


def actions_of(effect: EffectDiagnostic) -> list[types.CodeAction]:
    """Return a code action for each action that the snapshot offers for the effect."""
    diagnostics = (effect.to_lsp(),)
    commands = [effect.command(action) for action in effect.uncertain.actions]
    kind = types.CodeActionKind.QuickFix
    return [
        types.CodeAction(title=command.title, kind=kind, diagnostics=diagnostics, command=command)
        for command in commands
    ]


def is_requested(effect: EffectDiagnostic, params: types.CodeActionParams) -> bool:
    """Return whether the client requests actions for this effect, by its range or by one of its diagnostics."""
    requested = params.context.diagnostics
    return overlap(effect.range, params.range) or any(is_same(diagnostic, effect) for diagnostic in requested)


def includes_quick_fixes(kind: str) -> bool:
    """Return whether a requested kind includes quick fixes; kinds are hierarchical."""
    return kind in ("", types.CodeActionKind.QuickFix)


def overlap(first: types.Range, second: types.Range) -> bool:
    """Return whether two ranges have a position in common; their ends count."""
    return _key(first.start) <= _key(second.end) and _key(second.start) <= _key(first.end)


def _key(position: types.Position) -> tuple[int, int]:
    return position.line, position.character


def is_same(diagnostic: types.Diagnostic, effect: EffectDiagnostic) -> bool:
    """Return whether the client's diagnostic is this effect's. A client that keeps no `data` is known by the text."""
    if diagnostic.source != SOURCE:
        return False
    if isinstance(diagnostic.data, dict):
        return diagnostic.data.get("attemptId") == effect.uncertain.attempt_id
    return diagnostic.message == effect.message()
