"""Build the targets outside, run a program confined as this user, look at the targets, and print all of it as JSON.

    python driver.py ways KIND FOLDER         every way out of `ways_out.py`; KIND: bubblewrap, landlock, none, or bare:
                                              bubblewrap as on a system without Landlock and without a filter
    python driver.py reading KIND FOLDER      the same for a reading command
    python driver.py shell KIND FOLDER TEXT   one shell command; prints how it ended and its output

It runs as a process of its own, so that a test can start it as another user. FOLDER is empty and writable.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from steadyhand.adapters.processes.system import SystemProcesses
from steadyhand.adapters.sandbox import linux
from steadyhand.adapters.sandbox.linux import LinuxSandbox
from steadyhand.ports.processes import Finished
from steadyhand.ports.sandbox import Confinement
from tests.adapters.sandbox.boxes import NO_SANDBOX_CODE
from tests.adapters.sandbox.ways_out import KEYCTL_UNLINK, KEYS, USER_KEYRING, Places

WAYS_PROGRAM = Path(__file__).with_name("ways_out.py")
run_s_max = 120.0
libc = ctypes.CDLL(None, use_errno=True)


class Targets:
    """What is outside: files, sockets and a process of the same user. `heard` says what arrived."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.heard: list[str] = []
        self.outside, self.workspace = folder / "outside", folder / "workspace"
        self.home, self.state, self.own = folder / "home", folder / "state", folder / "own"
        self.key = f"{os.getpid():07x}"
        self.temporary = Path("/tmp") / self.key
        for made in (self.outside / "run-time", self.workspace / ".git" / "hooks", self.workspace / "sub"):
            made.mkdir(parents=True)
        for made in (self.home / ".ssh", self.state, self.own):
            made.mkdir(parents=True)
        for name in ("target", "map", "moved", "removed", "leased", "linked", "run-time/socket"):
            (self.outside / name).write_text("content")
        for file in (self.home / ".ssh" / "id", self.home / ".netrc", self.state / "journal", self.temporary):
            file.write_text("secret")
        (self.workspace / ".git" / "config").write_text("[core]\n\tbare = false\n")
        for name in ("sub/.env", "free", "target-of-link"):
            (self.workspace / name).write_text("A=1\n")
        (self.workspace / ".env.link").symlink_to("target-of-link")
        (self.workspace / "before_symbolic").symlink_to(self.outside / "target")
        os.link(self.outside / "linked", self.workspace / "before_hard")
        os.mkfifo(self.outside / "fifo")
        self.fifo = os.open(self.outside / "fifo", os.O_RDONLY | os.O_NONBLOCK)
        self.sockets = [
            self._listen(str(self.outside / "stream"), socket.AF_UNIX, socket.SOCK_STREAM),
            self._listen(str(self.outside / "datagram"), socket.AF_UNIX, socket.SOCK_DGRAM),
            self._listen(f"\0{self.key}", socket.AF_UNIX, socket.SOCK_STREAM),
            self._listen(("127.0.0.1", 0), socket.AF_INET, socket.SOCK_STREAM),
        ]
        self.port: int = self.sockets[-1].getsockname()[1]
        self.udp = self._listen(("127.0.0.1", self.port), socket.AF_INET, socket.SOCK_DGRAM)
        self.victim = subprocess.Popen(["sleep", "600"], env={"SECRET": "value"})
        self._make_shared()
        self.before = self._state()

    def _listen(self, address: Any, family: int, kind: int) -> socket.socket:
        one = socket.socket(family, kind)
        one.bind(address)
        if kind == socket.SOCK_STREAM:
            one.listen()
        threading.Thread(target=self._hear, args=(one, address), daemon=True).start()
        return one

    def _hear(self, one: socket.socket, address: Any) -> None:
        while True:
            got = (one.accept()[0] if one.type == socket.SOCK_STREAM else one).recv(16)
            self.heard.append(f"{address}: {got!r}")

    def _make_shared(self) -> None:
        (Path("/dev/shm") / self.key).write_text("content")
        self.segment = libc.shmget(int(self.key, 16), 4096, 0o1600)
        self.queue = libc.mq_open(f"/{self.key}".encode(), os.O_CREAT | os.O_RDWR, 0o600, None)
        self.user_key = libc.syscall(KEYS[0], b"user", self.key.encode(), b"x", 1, USER_KEYRING)

    def _state(self) -> dict[str, object]:
        found: dict[str, object] = {}
        for name in ("target", "map", "moved", "removed", "leased", "fifo", "new", "folder", "link"):
            path = self.outside / name
            if not os.path.lexists(path):
                found[name] = None
                continue
            entry = path.lstat()
            content = path.read_text() if stat.S_ISREG(entry.st_mode) else ""
            found[name] = [content, entry.st_mode, entry.st_uid, entry.st_mtime_ns, entry.st_ctime_ns, entry.st_nlink]
        found["victim"] = [self.victim.poll(), os.getpriority(os.PRIO_PROCESS, self.victim.pid)]
        return found

    def places(self) -> Places:
        return Places(
            outside=str(self.outside),
            workspace=str(self.workspace),
            home=str(self.home),
            state=str(self.state),
            victim=self.victim.pid,
            port=self.port,
            key=self.key,
        )

    def changed(self) -> list[str]:
        """What is different outside, and what was heard."""
        after = self._state()
        found = [name for name, value in self.before.items() if after[name] != value]
        if os.read(self.fifo, 16):
            found.append("FIFO heard")
        return found + [f"heard {one}" for one in self.heard]

    def remove(self) -> None:
        self.victim.kill()
        self.victim.wait()
        libc.shmctl(self.segment, 0, None)
        libc.mq_unlink(f"/{self.key}".encode())
        # A key outlives every process, and a user may have 200.
        for key in (self.user_key, libc.syscall(KEYS[1], b"user", b"steadyhand-evil", None, USER_KEYRING)):
            libc.syscall(KEYS[2], KEYCTL_UNLINK, key, USER_KEYRING)
        (Path("/dev/shm") / self.key).unlink(missing_ok=True)
        self.temporary.unlink(missing_ok=True)


@contextmanager
def targets_in(folder: Path) -> Iterator[Targets]:
    targets = Targets(folder)
    try:
        yield targets
    finally:
        targets.remove()


def confinement_of(kind: str, targets: Targets, is_reading: bool) -> Confinement | None:
    if kind == "none":
        return None
    kind = "bubblewrap" if kind == "bare" else kind
    assert kind in ("bubblewrap", "landlock")
    workspace = targets.workspace
    protected = (workspace / ".git", workspace / "sub" / ".env", workspace / ".env.link")
    return Confinement(
        kind,  # type: ignore[arg-type]
        (str(workspace),),
        str(targets.own),
        protected=tuple(str(path) for path in protected),
        hidden=(str(targets.state),),
        is_reading=is_reading,
        readable=(sys.prefix, sys.base_prefix, str(WAYS_PROGRAM.parent)),
    )


async def run(kind: str, targets: Targets, text: str, is_reading: bool = False) -> tuple[Finished, str]:
    server = {**os.environ, "HOME": str(targets.home), "XDG_RUNTIME_DIR": str(targets.outside / "run-time")}
    if kind == "bare":
        vars(linux).update(landlock_abi=lambda: 0, system_call_filter=lambda machine, purpose: None)
    sandbox = LinuxSandbox(lambda: server)
    status = await anyio.to_thread.run_sync(sandbox.probe)
    if kind in ("bubblewrap", "bare") and status.kind != "bubblewrap":
        sys.stderr.write(f"{status.why}\n")
        sys.exit(NO_SANDBOX_CODE)
    pieces: list[bytes] = []
    environment = {"PATH": os.environ["PATH"], "HOME": str(targets.home), "STEADYHAND_ATTEMPT_ID": targets.key}
    finished = await SystemProcesses(sandbox).run(
        text,
        str(targets.workspace),
        environment,
        run_s_max,
        pieces.append,
        confinement=confinement_of(kind, targets, is_reading),
    )
    return finished, b"".join(pieces).decode(errors="replace")


def main(what: str, kind: str, folder: str, *more: str) -> None:
    with targets_in(Path(folder)) as targets:
        if what == "shell":
            finished, output = anyio.run(run, kind, targets, more[0])
            sys.stdout.write(json.dumps({"code": finished.exit_code, "output": output, "changed": targets.changed()}))
            return
        places = json.dumps(dataclasses.asdict(targets.places()))
        spare = " spare" if kind == "none" and os.geteuid() == 0 else ""
        text = f"exec {sys.executable} -I -S {WAYS_PROGRAM} '{places}'{spare}"
        finished, output = anyio.run(run, kind, targets, text, what == "reading")
        if finished.exit_code != 0:
            sys.exit(f"{finished}\n{output}")
        sys.stdout.write(json.dumps({"outcomes": json.loads(output), "changed": targets.changed()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
