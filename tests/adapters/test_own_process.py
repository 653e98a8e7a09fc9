"""The server's memory and environment are closed to its children (row O4; case 142)."""

import os

import pytest

from tests.adapters.sandbox.boxes import ORDINARY_UID, require_user, spawn_as
from tests.support.systems import linux_only

pytestmark = linux_only

CHILD_READS_PARENT = """
import subprocess, sys
from steadyhand.adapters.own_process import hide_memory
shell = "cat /proc/$PPID/environ"
before = subprocess.run(["/bin/sh", "-c", shell], capture_output=True)
assert before.returncode == 0 and b"SECRET_KEY=hunter2" in before.stdout, before
assert hide_memory()
after = subprocess.run(["/bin/sh", "-c", shell], capture_output=True, text=True)
sys.stdout.write(after.stderr + after.stdout)
own = subprocess.run([sys.executable, "-c", "open('/proc/self/environ').read()"])
assert own.returncode == 0
"""
SERVER_IS_READ = """
import json, subprocess, sys, time
server = subprocess.Popen(
    [sys.executable, "-m", "steadyhand", "--stdio", "--state-dir", sys.argv[1]],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
)
params = {"processId": None, "rootUri": None, "capabilities": {}}
body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode()
server.stdin.write(b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
server.stdin.flush()
assert server.stdout.readline().startswith(b"Content-Length")
closed, limit = False, time.monotonic() + 60
while not closed and time.monotonic() < limit:
    try:
        open(f"/proc/{server.pid}/environ", "rb").read()
    except PermissionError:
        closed = True
server.kill()
server.wait()
sys.stdout.write(f"closed: {closed}")
"""


def test_hidden_process_refuses_a_child_of_the_same_user() -> None:
    """O4, judged with the sandbox off: `cat /proc/$PPID/environ` gives `Permission denied` to an ordinary user. What
    the process starts can still read itself (case 142)."""
    uid = os.geteuid() or ORDINARY_UID
    ended = spawn_as(require_user(uid), uid, "-c", CHILD_READS_PARENT, SECRET_KEY="hunter2")
    assert ended.returncode == 0, ended.stderr
    assert "Permission denied" in ended.stdout
    assert "hunter2" not in ended.stdout


def test_server_hides_itself_soon_after_its_greeting(tmp_path_factory: pytest.TempPathFactory) -> None:
    """O4: the real server does it, before it has built anything that reads a key."""
    uid = os.geteuid() or ORDINARY_UID
    folder = tmp_path_factory.mktemp("state")
    os.chown(folder, uid, -1)
    for parent in (folder.parent, folder.parent.parent):
        if os.stat(parent).st_uid == os.geteuid() and os.geteuid() == 0:
            parent.chmod(0o755)
    ended = spawn_as(require_user(uid), uid, "-c", SERVER_IS_READ, str(folder))
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "closed: True"
