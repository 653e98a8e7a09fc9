"""All sessions of this process: created, listed, opened, closed, watched while another process owns them.

Opening waits for the owner lock as long as a reloading window takes, then goes read-only and says who has it (row
J11). A session that cannot be read fails alone (row S6).
"""

from __future__ import annotations

import errno
from functools import partial

import anyio
import attrs

from steadyhand.core.ledger import Ledger, fold
from steadyhand.core.model import ModelTrouble
from steadyhand.core.plain import plain
from steadyhand.core.record import Epoch, Record, Session, TitleSource
from steadyhand.core.refusal import Refused
from steadyhand.core.told import MessageTold
from steadyhand.core.views import MessageView, QueuedView, ReadOnly, SessionView, Snapshot
from steadyhand.journal.log import JournalBroken, load
from steadyhand.ports import Folder, OfferedModel
from steadyhand.session import shelf
from steadyhand.session.folder import OWNER_LOCK, Held, announce, owner_of, session_path, take
from steadyhand.session.job_list import running_on
from steadyhand.session.jobs import end_jobs, left_sentence, look_for_left
from steadyhand.session.model_recovery import ModelRecovery
from steadyhand.session.opening import Opened, open_owned, read_only
from steadyhand.session.owner import Owner
from steadyhand.session.prompts import start_next
from steadyhand.session.redoing import Redoing
from steadyhand.session.removal import remove_session
from steadyhand.session.titles import users_title
from steadyhand.session.world import World

owner_wait_s_max = 5.0
owner_poll_s = 0.05
watch_poll_s = 0.5
close_s_max = 25.0


@attrs.frozen
class OpenedView:
    session: SessionView
    messages: tuple[MessageView, ...]
    more: bool
    snapshot: Snapshot
    queue: tuple[QueuedView, ...]
    damaged: int


class House:
    """The sessions of one state directory, as this process sees them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.owners: dict[str, Owner] = {}
        self.reading_tools = frozenset(tool.name for tool in world.tools.values() if tool.effect == "reads")
        self._opening: dict[str, anyio.Lock] = {}
        self._watched: set[str] = set()
        self._doubted: dict[str, int] = {}  # session → the first seq this process never acknowledged (row J6)
        self._stopping = False
        self._jobs_told: set[str] = set()

    # Sessions.

    async def create(self, title: str | None, workspace: str | None) -> SessionView:
        """A new session, open, durable with its first records."""
        title = users_title(title or "")
        session_id, epoch = self.world.ids.new(), self.world.ids.new()
        root = await self._root(workspace)
        settings = self.world.settings
        source: TitleSource = "user" if title else "none"
        pid, host, boot = self.world.processes.here()
        first: list[Record] = [
            Session(session_id, settings.mode, settings.model, self.world.version, workspace, title, source),
            Epoch(epoch, pid, host, boot),
        ]
        try:
            held, journal, stamped = await self.world.in_thread(shelf.lay_down, self.world, session_id, first)
        except (OSError, JournalBroken) as error:
            why = str(error) if isinstance(error, JournalBroken) else f"({error.strerror})"
            text = f"No session can be created in the state directory: {why} Make it writable, then retry."
            raise Refused("journalBroken", text) from error
        ledger = fold(stamped, ())
        ground = self.world.ground(root, held.path)
        owner = Owner(self.world, session_id, held.path, ledger, ground, epoch, held, journal, None, 0)
        self._admit(owner)
        owner.tell_changes()
        return owner.view()

    async def listed(self) -> tuple[SessionView, ...]:
        """Every session in the state directory, newest first, built from the files (row S3)."""
        names = await self.world.in_thread(shelf.names, self.world)
        views: list[SessionView] = []
        for session_id in names:
            owner = self.owners.get(session_id)
            if owner is not None:
                views.append(owner.view())
            elif (view := await self.world.in_thread(shelf.glance, self.world, session_id)) is not None:
                views.append(view)
        return tuple(sorted(views, key=lambda view: (view.updated, view.session_id), reverse=True))

    async def open(self, session_id: str, tail: int) -> OpenedView:
        owner = await self.owner(session_id, anew=True)
        shown, more = owner.messages(tail)
        return OpenedView(owner.view(), shown, more, owner.snapshot(), owner.queue(), owner.damaged)

    async def close(self, session_id: str) -> None:
        """Cancel its turn, wait for it, let the lock go."""
        owner = self.owners.get(session_id)
        if owner is None:
            if not await self.world.in_thread(shelf.exists, self.world, session_id):
                raise Refused("unknownSession", "There is no such session.")
            return
        owner.closing = True  # what is queued stays queued
        await self._end_work(owner)
        owner.kept_open = False
        owner.closing = False
        if not owner.ledger.uncertain():  # else it stays held, so that it still holds back what overlaps (row B1)
            await self._close(owner)
        owner.tell_changes()

    async def delete(self, session_id: str, force: bool) -> None:
        """Remove a session for good; with unresolved effects only by `force` (row B8)."""
        owner = await self.owner(session_id)
        owner.require_owned()
        _require_settled(owner, force)
        owner.closing = True
        await self._end_work(owner)
        try:
            _require_settled(owner, force)  # ending its turn may have left something
        except Refused:
            owner.closing = False
            raise
        assert owner.held is not None, "require_owned says so"
        left = await running_on(owner)
        try:
            await self.world.in_thread(remove_session, self.world, owner.held, session_id)
        except OSError as error:
            owner.closing = False
            text = f"It cannot be deleted ({error.strerror}). Make the state directory writable, then retry."
            raise Refused("journalBroken", text) from error
        self.owners.pop(session_id, None)
        await self.world.in_thread(owner.release)
        owner.ledger = Ledger()
        owner.tell_recovery()  # nothing of it is uncertain any more, and there is no session to tell of
        if left is not None:
            self.world.editor.tell(MessageTold("warning", left))

    async def offered(self) -> tuple[OfferedModel, ...]:
        """The practice model and what the chosen provider offers; one that does not answer offers what is chosen."""
        chosen = self.world.settings.model
        found = [OfferedModel("practice", "practice")]
        providers = self.world.providers
        if chosen.provider != "practice" and providers is not None:
            try:
                found += await providers.offered(chosen.provider)
            except ModelTrouble as trouble:
                found.append(OfferedModel(chosen.provider, chosen.name))
                self.world.editor.tell(MessageTold("warning", str(trouble)))
        return tuple(found)

    async def diagnose(self) -> dict[str, str]:
        """What holds in the state directory, one sentence each; for the doctor."""
        return await self.world.in_thread(shelf.diagnose, self.world)

    async def stop(self) -> None:
        """End every turn and child, close every journal. Bounded by the turns' own bounds."""
        self._stopping = True
        async with anyio.create_task_group() as tasks:
            for owner in list(self.owners.values()):
                tasks.start_soon(self._close, owner)
        await self.world.processes.end_all()
        if self.world.providers is not None:
            await self.world.providers.close()

    async def owner(self, session_id: str, anew: bool = False, kept_open: bool = True) -> Owner:
        """The open session, opened first where it is not. `anew`: a read-only or broken one is tried again.

        `kept_open` False: nobody asked for it; it is let go when nothing of it is uncertain (row A8)."""
        async with self._opening.setdefault(session_id, anyio.Lock()):
            owner = self.owners.get(session_id)
            if owner is None or _is_free(owner) or (anew and self._worth_reopening(owner)):
                owner = await self._open(session_id, owner)
                owner.kept_open = kept_open
                if kept_open:  # else whoever looks at many tells of all in one
                    for left in self.left_untold(owner):
                        owner.say("warning", left)
            owner.kept_open = owner.kept_open or kept_open
            return owner

    async def let_go_if_done(self, owner: Owner) -> None:
        """Release a session that nobody opened once nothing of it is unresolved or shown as settled."""
        snapshot = owner.snapshot()
        if not owner.kept_open and not snapshot.calls and not snapshot.settled and owner.turn is None:
            await self._close(owner)

    def left_untold(self, owner: Owner) -> tuple[str, ...]:
        """What is said of background commands that a crash left, each once in this process (row A8)."""
        untold = [left for job_id, left in owner.left_jobs.items() if job_id not in self._jobs_told]
        self._jobs_told.update(left.job.job_id for left in untold)
        return tuple(left_sentence(owner, left) for left in untold)

    # Inside.

    async def _open(self, session_id: str, before: Owner | None) -> Owner:
        path = session_path(self.world.state_directory, session_id)
        if not await self.world.in_thread(shelf.exists, self.world, session_id):
            raise Refused("unknownSession", "There is no such session.")
        if before is not None:
            self._doubt_tail(before)
            await end_jobs(before)
            await before.let_go()
        folder = self.world.disk.open_folder(path)
        held: Held | None = None
        try:
            taken = await self._wait_for_lock(folder, path)
            held, trouble = (None, taken) if isinstance(taken, OSError) else (taken, None)
            with anyio.CancelScope(shield=True):  # a lock that is held finds an owner, or is let go
                owner = await self._take_in(session_id, path, folder, held, trouble)
        except BaseException:
            if session_id not in self.owners or self.owners[session_id] is before:
                if held is not None:
                    held.lock.release()
                self.world.disk.close(folder)
            raise
        return owner

    async def _take_in(
        self, session_id: str, path: str, folder: Folder, held: Held | None, trouble: OSError | None
    ) -> Owner:
        epoch = self.world.ids.new()
        opened, root = await self._load(folder, held, path, epoch, self._doubted.get(session_id), trouble)
        if opened.journal is not None:
            self._doubted.pop(session_id, None)  # its `damage` record says so from now on
        else:
            self._doubt(session_id, opened.unacknowledged)
        ground = self.world.ground(root, path)
        keeps = held if opened.journal is not None else None
        if keeps is not None:
            world = self.world
            await world.in_thread(announce, world.disk, world.processes, world.clock, world.ids, keeps)
        if held is not None and keeps is None:
            held.lock.release()
        owner = Owner(
            self.world, session_id, path, opened.ledger, ground, epoch, keeps, opened.journal, opened.read_only,
            opened.damaged,
        )  # fmt: skip
        if keeps is None:
            self.world.disk.close(folder)
        self._admit(owner)
        if keeps is not None:
            await look_for_left(owner)
        self._tell_opening(owner, opened)
        await owner.keep_summary()
        if opened.read_only is not None and opened.read_only.reason == "owned":
            self._watch(session_id)
        return owner

    async def _wait_for_lock(self, folder: Folder, path: str) -> Held | OSError | None:
        """Up to 5 s for a reloading window (row J11); the error where a lock cannot be had at all."""
        world = self.world
        with anyio.move_on_after(owner_wait_s_max):
            while True:
                try:
                    held = await world.in_thread(take, world.disk, folder, path)
                except OSError as error:
                    return error
                if held is not None:
                    return held
                await anyio.sleep(owner_poll_s)
        return None

    async def _load(
        self,
        folder: Folder,
        held: Held | None,
        path: str,
        epoch: str,
        unacknowledged: int | None,
        trouble: OSError | None,
    ) -> tuple[Opened, str | None]:
        world = self.world
        try:
            loaded = await world.in_thread(load, world.disk, folder)
        except OSError as error:
            text = f"This session's journal cannot be read ({error.strerror}). Make it readable, then open it again."
            return Opened(Ledger(), None, ReadOnly("disk", text), 0), None
        glance = fold(loaded.records, loaded.breaks)
        root = await self._root(glance.session.workspace if glance.session else None)
        if held is not None:
            ground = world.ground(root, path)
            opened = await world.in_thread(open_owned, world, held, epoch, ground, self.reading_tools, unacknowledged)
            return opened, root
        if trouble is not None:
            text = _no_lock(trouble)
            return read_only(loaded, self.reading_tools, world.ids, ReadOnly("disk", text), False), root
        owner = await world.in_thread(owner_of, world.disk, folder)
        who = f"process {owner.pid} on {owner.host}" if owner else "another process"
        text = f"This session is open in {who}. It is shown read-only; when it is free you are told."
        return read_only(loaded, self.reading_tools, world.ids, ReadOnly("owned", text, owner), False), root

    def _doubt_tail(self, owner: Owner) -> None:
        """Remember what a journal that is let go did not acknowledge, until an opening has recorded it."""
        self._doubt(owner.session_id, owner.journal.unacknowledged if owner.journal is not None else None)

    def _doubt(self, session_id: str, first: int | None) -> None:
        if first is not None:
            self._doubted[session_id] = min(first, self._doubted.get(session_id, first))

    def _tell_opening(self, owner: Owner, opened: Opened) -> None:
        owner.tell_changes()
        if opened.damaged:
            owner.say(
                "warning",
                f"The journal of session “{owner.name()}” has {opened.damaged} damaged or missing"
                f" record{'s' if opened.damaged != 1 else ''}; everything else was read.",
            )
        if opened.torn:
            owner.say(
                "info",
                f"The last record of session “{owner.name()}” was not finished when its process ended; its"
                f" {opened.torn} bytes are kept beside the journal.",
            )
        if opened.read_only is not None:
            owner.say("warning", opened.read_only.text)

    def _watch(self, session_id: str) -> None:
        if session_id not in self._watched:
            self._watched.add(session_id)
            self.world.spawn(partial(self._until_free, session_id), f"watch {session_id}")

    async def _until_free(self, session_id: str) -> None:
        """Tell once when an owned session's lock is free; opening it again takes over (row J11)."""
        world = self.world
        path = session_path(world.state_directory, session_id)
        try:
            folder = world.disk.open_folder(path)
            try:
                while (lock := await world.in_thread(world.disk.lock, folder, OWNER_LOCK)) is None:
                    await anyio.sleep(watch_poll_s)
                    if session_id not in self.owners:
                        return
                lock.release()
            finally:
                world.disk.close(folder)
        except OSError:
            return
        finally:
            self._watched.discard(session_id)
        owner = self.owners.get(session_id)
        if owner is not None and owner.read_only is not None and owner.read_only.reason == "owned":
            owner.read_only = None
            owner.tell_changes()
            owner.say("info", f"Session “{owner.name()}” is free now. Open it again to take it over.")

    def _worth_reopening(self, owner: Owner) -> bool:
        if owner.turn is not None or owner.resolving:
            return False
        return owner.journal is None or owner.journal.broken is not None

    async def _close(self, owner: Owner) -> None:
        owner.closing = True
        await self._end_work(owner)
        if self.owners.get(owner.session_id) is owner:
            del self.owners[owner.session_id]
        self._doubt_tail(owner)
        await owner.let_go()

    async def _end_work(self, owner: Owner) -> None:
        """End its turn, and then what its turns left running in the background."""
        turn = owner.turn
        if turn is not None:
            turn.stopping = turn.stopping or "closed"
            turn.scope.cancel()
            with anyio.move_on_after(close_s_max):
                await turn.ended.wait()
        with anyio.move_on_after(close_s_max):
            for turn_id in list(owner.side_turns):
                await owner.wait_ended(turn_id)
        with anyio.move_on_after(close_s_max):
            async with owner.settling:  # a restore that has begun comes to its end
                pass
        await end_jobs(owner)

    def _admit(self, owner: Owner) -> None:
        self.owners[owner.session_id] = owner
        owner.neighbours = lambda: self._neighbours(owner)
        owner.when_free = partial(start_next, owner)
        owner.recovery = ModelRecovery(owner)
        owner.redoing = Redoing(owner)

    def _neighbours(self, owner: Owner) -> list[Owner]:
        """Sessions of the same workspace, this one first (row B1)."""
        root = owner.ground.root
        others = [
            other
            for other in self.owners.values()
            if other is not owner and root is not None and other.ground.root == root and not other.live.elsewhere
        ]
        return [owner, *others]

    async def _root(self, workspace: str | None) -> str | None:
        """The workspace's folder with links resolved; None where there is none."""
        return await self.world.in_thread(shelf.root_of, self.world, workspace)


def _require_settled(owner: Owner, force: bool) -> None:
    """recoveryRequired for a session with unresolved effects (row B8)."""
    uncertain = owner.snapshot().calls
    if uncertain and not force:
        raise Refused(
            "recoveryRequired", "It has uncertain effects; settle them, or delete it with force.",
            {"uncertain": plain(uncertain)},
        )  # fmt: skip


def _is_free(owner: Owner) -> bool:
    """Whether it was read-only for an owner who is gone: whatever is asked of it next takes it over (row J11)."""
    return owner.journal is None and owner.read_only is None and not owner.closing


def _no_lock(trouble: OSError) -> str:
    """Why a session is shown read-only when its owner lock cannot be had."""
    if trouble.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return "The session's folder cannot be written, so it is shown read-only: make it writable, then open it again."
    return "Locks do not hold in the state directory's file system, so the session is shown read-only."
