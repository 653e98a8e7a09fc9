"""The shipped server with a disk that follows orders: at chosen operations it dies, fails, or lets something else
happen.

Run as `python tests/support/faulty_server.py [flags of steadyhand]`. `STEADYHAND_TEST_FAULTS` has a JSON list of
faults; without it nothing differs from `python -m steadyhand`:

    which operation    {"verb": "write", "target": "journal.jsonl", "carries": "started", "turn": 2}
                       all given members must match; `target` is a part of the path, `carries` the kind of a record in
                       the write; `turn` is the number of the operation among those that match, from 1
    or                 {"number": 17}, the number among all durable operations
    what happens       "when": "before" (default), "half" (of a write) or "after"
                       "run": ["program", "argument"], another program; the server waits for it
                       "then": "kill" (default), "go on", or the name of an errno, such as "ENOSPC"
                       "forGood": true: the errno stays for all durable operations after it
    "log"              a file that gets one line for each durable operation

The operations are those of tests/support/faults.py. `server_command` in tests/support/process_server.py has the command
and the environment that start it.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs

from steadyhand.__main__ import end_process, read_flags, run, system_ports
from steadyhand.lsp.rpc.stdio import claim_stdio
from steadyhand.ports.disk import Disk
from tests.support.faults import Operation, WatchedDisk

T = TypeVar("T")

FAULTS_VARIABLE = "STEADYHAND_TEST_FAULTS"
run_s_max = 60.0


@attrs.define
class Fault:
    """One fault; see above."""

    verb: str | None = None
    target: str | None = None
    carries: str | None = None
    turn: int = 1
    number: int | None = None
    when: str = "before"
    run: list[str] = attrs.field(factory=list)
    then: str = "kill"
    for_good: bool = False
    log: str | None = None
    met: int = 0

    def meets(self, operation: Operation) -> bool:
        """Whether this operation meets the fault, or comes after a fault that stays."""
        if self.number is not None:
            fits = operation.number == self.number
        else:
            fits = (
                self.verb is not None
                and self.verb == operation.verb
                and (self.target is None or self.target in operation.target)
                and (self.carries is None or self.carries in operation.kinds)
            )
        if self.for_good and self.met >= self.turn:
            return True
        if not fits:
            return False
        self.met += 1
        return self.number is not None or self.met == self.turn


class OrderedDisk(WatchedDisk):
    """`ports.Disk` with faults; the first fault that meets an operation acts."""

    def __init__(self, inner: Disk, faults: list[Fault]) -> None:
        super().__init__(inner)
        self._faults = faults

    def around(self, operation: Operation, act: Callable[[], T], half: Callable[[], T] | None) -> T:
        for fault in self._faults:
            if fault.log is not None:
                _note(fault.log, str(operation))
            elif fault.meets(operation):
                return self._strike(fault, operation, act, half)
        return act()

    def _strike(self, fault: Fault, operation: Operation, act: Callable[[], T], half: Callable[[], T] | None) -> T:
        done: list[T] = []
        if fault.when == "after":
            done.append(act())
        elif fault.when == "half" and half is not None:
            done.append(half())
        if fault.run:
            subprocess.run(fault.run, check=True, timeout=run_s_max, stdin=subprocess.DEVNULL)
        if fault.then == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault.then != "go on":
            number = getattr(errno, fault.then)
            raise OSError(number, os.strerror(number), str(operation))
        return done[0] if done else act()


def _note(path: str, line: str) -> None:
    with open(path, "a", encoding="utf-8") as log:
        log.write(line + "\n")


def faults_in(environment: Mapping[str, str]) -> list[Fault]:
    """The faults that the environment asks for."""
    asked: list[dict[str, Any]] = json.loads(environment.get(FAULTS_VARIABLE, "[]"))
    return [Fault(**{"for_good" if name == "forGood" else name: value for name, value in one.items()}) for one in asked]


def main() -> int:
    """The exit code of one connection, if the server reaches its end."""
    stdio = claim_stdio()
    flags = read_flags(sys.argv[1:])
    assert flags is not None, sys.argv
    ports = system_ports()
    return run(stdio, ports._replace(disk=OrderedDisk(ports.disk, faults_in(os.environ))), flags)


if __name__ == "__main__":
    end_process(main())
