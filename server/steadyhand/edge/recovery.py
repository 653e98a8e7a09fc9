"""Recovery over the wire: `steadyhand/recovery/resolve` and the `steadyhand.recovery.*` commands (wire.md).

The commands work in any LSP client. Called without an inspection, a command inspects, shows the finding in a message
and acts on that inspection as the answer says; without a usable answer it gives `inspectFirst` with the inspection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import attrs

from steadyhand.core.folded import Attempt
from steadyhand.core.plain import plain
from steadyhand.core.questions import Option
from steadyhand.core.refusal import Refused
from steadyhand.core.snapshot import actions
from steadyhand.core.views import Action, InspectionView
from steadyhand.edge.asked import AskedEditor
from steadyhand.edge.server import Server
from steadyhand.session.house import House
from steadyhand.session.owner import Owner
from steadyhand.session.resolving import Resolved, Wanted, refuse_beforehand, resolve
from steadyhand.session.surviving import end_survivors
from steadyhand.session.uris import path_of
from steadyhand_protocol.recovery import EndSurvivorsArguments, RecoveryArguments, RecoveryListArguments, ResolveParams

LABELS: dict[Action, str] = {
    "confirm": "Confirm",
    "reject": "Reject",
    "waive": "Continue without knowing",
    "restore": "Restore",
    "retry": "Retry",
}
LATER = Option("later", "Later")
COMMANDS: tuple[Action, ...] = ("inspect", "confirm", "reject", "waive", "retry", "restore")


class Recovery:
    """Registers the requests and commands."""

    def __init__(
        self,
        server: Server,
        editor: AskedEditor,
        house: Callable[[], Awaitable[House]],
        shown: Callable[[], Awaitable[None]],
    ) -> None:
        """`shown` waits until the marks at the files say what is so; answers go out after it."""
        self._shown = shown
        self._server = server
        self._editor = editor
        self._house = house
        server.on("steadyhand/recovery/resolve", self.resolve)
        server.on_command("steadyhand.recovery.list", self.listed)
        server.on_command("steadyhand.recovery.endSurvivors", self.end_survivors)
        for action in COMMANDS:
            server.on_command(f"steadyhand.recovery.{action}", partial(self.command, action))

    async def resolve(self, params: ResolveParams) -> object:
        wanted = Wanted(params.attempt_id, params.action, params.runtime_epoch, params.revision, params.inspection_id)
        return await self._carry_out(params.session_id, wanted)

    async def listed(self, given: RecoveryListArguments) -> object:
        """Over the workspace: every open session of its folders, or the one that is named."""
        house = await self._house()
        if given.session_id is not None:
            owners = [await house.owner(given.session_id)]
        else:
            folders = self._server.client.folders
            paths = {folder.path for folder in folders}
            owners = [owner for owner in house.owners.values() if not folders or _path(owner) in paths]
        snapshots = [owner.snapshot() for owner in owners]
        return {
            "uncertain": [plain(call) for snapshot in snapshots for call in snapshot.calls],
            "settled": [plain(call) for snapshot in snapshots for call in snapshot.settled],
        }

    async def end_survivors(self, given: EndSurvivorsArguments) -> object:
        owner = await (await self._house()).owner(given.session_id)
        return plain(await end_survivors(owner, given.attempt_id, given.inspection_id))

    async def command(self, action: Action, given: RecoveryArguments) -> object:
        wanted = Wanted(given.attempt_id, action, given.runtime_epoch, given.revision, given.inspection_id)
        if action == "inspect" or given.inspection_id is not None:
            return await self._carry_out(given.session_id, wanted)
        house = await self._house()
        owner = await house.owner(given.session_id)
        refuse_beforehand(owner, wanted)
        looked = await resolve(owner, attrs.evolve(wanted, action="inspect"))
        assert looked.inspection is not None
        chosen = await self._ask(owner, owner.ledger.attempts[wanted.attempt_id], looked.inspection)
        if chosen is None:
            text = "Nothing was decided. Inspect it, then repeat with the id of the inspection."
            raise Refused("inspectFirst", text, {"inspection": plain(looked.inspection)})
        decided = Wanted(wanted.attempt_id, chosen, wanted.epoch, inspection_id=looked.inspection.inspection_id)
        done = await resolve(owner, decided)
        await house.let_go_if_done(owner)
        await self._shown()
        return plain(Resolved(done.snapshot, looked.inspection))

    async def _carry_out(self, session_id: str, wanted: Wanted) -> object:
        house = await self._house()
        owner = await house.owner(session_id)
        done = await resolve(owner, wanted)
        await house.let_go_if_done(owner)
        await self._shown()
        return plain(done)

    async def _ask(self, owner: Owner, attempt: Attempt, looked: InspectionView) -> Action | None:
        offered = [action for action in actions(attempt, owner.stand()) if action in LABELS]
        options = tuple(Option(action, LABELS[action]) for action in offered)
        chosen = await self._editor.choose(looked.text, (*options, LATER))
        return next((action for action in offered if action == chosen), None)


def _path(owner: Owner) -> str | None:
    return path_of(owner.workspace) if owner.workspace is not None else None
