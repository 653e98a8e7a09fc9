"""The installed program on a state directory that cannot exist: one sentence for each request and verb (case 171).

tests/session/service/test_state_directory.py has every fault; here is the one in which the path goes through a file.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steadyhand.__main__ import VERBS
from steadyhand_protocol import methods
from tests.support.process_server import PYTHON_PATH, ServerProcesses, server_processes
from tests.support.raw_client import ErrorAnswer
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = linux_only

run_s_max = 60
ID = "f" * 32

REQUESTS: dict[str, dict[str, Any]] = {
    "session/create": {"title": "a"},
    "session/list": {},
    "session/open": {"sessionId": ID},
    "session/close": {"sessionId": ID},
    "session/setMode": {"sessionId": ID, "mode": "ask"},
    "session/rename": {"sessionId": ID, "title": "b"},
    "session/rebind": {"sessionId": ID, "workspace": "file:///x"},
    "session/delete": {"sessionId": ID},
    "session/export": {"sessionId": ID, "format": "markdown"},
    "session/setModel": {"sessionId": ID, "provider": "practice", "name": ""},
    "usage": {"sessionId": ID},
    "checkpoint/list": {"sessionId": ID},
    "queue/edit": {"sessionId": ID, "clientMessageId": "a", "remove": True},
    "turn/start": {"sessionId": ID, "clientMessageId": "a", "text": "hello", "epoch": ID},
    "turn/status": {"sessionId": ID, "clientMessageId": "a"},
    "turn/cancel": {"sessionId": ID, "turnId": ID},
    "turn/events": {"sessionId": ID, "epoch": ID, "after": 0},
    "queue/resume": {"sessionId": ID, "epoch": ID},
    "recovery/snapshot": {"sessionId": ID},
}
WORDS: dict[str, list[str]] = {
    "show": ["ffff"],
    "export": ["ffff"],
    "recovery": ["list"],
    "jobs": ["list"],
    "permissions": ["list"],
    "ask": ["say hello"],
}


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    (tmp_path / "file").write_text("x")
    with server_processes(tmp_path) as found:
        found.workspace = Workspace(found.root, tmp_path.resolve() / "file" / "state")
        yield found


def sentence(servers: ServerProcesses) -> str:
    path = servers.state
    return f"The state directory {path} cannot be used, because {path.parent} is a file and no folder"


def test_server_answers_each_request_with_the_path_and_its_fault(servers: ServerProcesses) -> None:
    """Case 171: no internal error and no trace; one message at the start; the server ends in order."""
    client = servers.start_checked()
    for method, params in REQUESTS.items():
        with pytest.raises(ErrorAnswer) as refused:
            client.ours(method, **params)
        assert refused.value.code == methods.ERRORS["journalBroken"], method
        assert sentence(servers) in str(refused.value), method
    assert sum("cannot be used" in text for text in client.shown()) == 1
    client.close()
    assert "Traceback" not in client.stderr()
    assert client.stderr().count("\n") <= 1, "the same sentence, for who reads the log"


@pytest.mark.parametrize("verb", VERBS)
def test_verb_says_which_path_is_at_fault(servers: ServerProcesses, verb: str) -> None:
    """Case 171: exit code 1 and one sentence on stderr; the doctor reports it and exits with 0."""
    ran = subprocess.run(
        [sys.executable, "-m", "steadyhand", verb, *WORDS.get(verb, [])],
        env={**os.environ, **PYTHON_PATH, "STEADYHAND_STATE_DIR": str(servers.state)},
        cwd=servers.root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=run_s_max,
        check=False,
    )
    if verb == "doctor":
        assert (ran.returncode, ran.stderr) == (0, "")
        assert sentence(servers) in ran.stdout
        return
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith(f"steadyhand: {sentence(servers)}")
    assert ran.stderr.count("\n") == 1
