"""A state directory that cannot be used: each request says which path is at fault and what to do, and nothing else
breaks (case 171).

`FAULTS` is a table: to add a fault, add one line. A fault that this user can overcome (root) or that needs another file
system is simulated by the errors that the system gives.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.config.settings import state_directory, state_directory_path
from steadyhand.domain.errors import Refused
from steadyhand.domain.views.notifications import MessageNotification
from steadyhand.lsp.rpc.errors import TEXT_CHARS_MAX
from steadyhand.ports.disk import Disk
from steadyhand.session.private_state import PrivateState
from steadyhand.session.service.read_only_view import read_session
from steadyhand.session.service.registry import SessionRegistry
from steadyhand.session.service.startup_scan import scan_sessions
from steadyhand.session.storage import directory
from steadyhand.session.storage.state_directory import REMEDY, sentence_of, shown_path
from tests.support.editor import ScriptedEditor
from tests.support.fakes import FakeProcesses, id_of
from tests.support.faults import between
from tests.support.in_process_server import build_context
from tests.support.model import ScriptedModel

pytestmark = pytest.mark.anyio

ID = id_of(77)


def _file(base: Path) -> Path:
    (base / "file").write_text("x")
    return base / "file" / "below" / "state"


def _a_file(base: Path) -> Path:
    (base / "file").write_text("x")
    return base / "file"


def _dangling(base: Path) -> Path:
    (base / "link").symlink_to(base / "nothing")
    return base / "link"


def _dangling_above(base: Path) -> Path:
    (base / "link").symlink_to(base / "nothing")
    return base / "link" / "state"


def _link_to_a_file(base: Path) -> Path:
    (base / "file").write_text("x")
    (base / "link").symlink_to(base / "file")
    return base / "link" / "state"


def _circle(base: Path) -> Path:
    (base / "link").symlink_to(base / "link")
    return base / "link" / "state"


def _pipe(base: Path) -> Path:
    os.mkfifo(base / "pipe")
    return base / "pipe"


def _too_long_a_name(base: Path) -> Path:
    return base / ("n" * 300) / "state"


def _too_long(base: Path) -> Path:
    return base.joinpath(*["n" * 200] * 30)


def _sessions_a_file(base: Path) -> Path:
    (base / "state").mkdir()
    (base / "state" / "sessions").write_text("x")
    return base / "state"


FAULTS: dict[str, tuple[Callable[[Path], Path], str, str]] = {
    # what is wrong → (how it comes to be, the part of the path that is named, the clause)
    "its path goes through a file": (_file, "file", "is a file and no folder"),
    "it is a file": (_a_file, "file", "is a file and no folder"),
    "it is a dangling link": (_dangling, "link", "is a link to"),
    "its path goes through a dangling link": (_dangling_above, "link", "where nothing is"),
    "its path goes through a link to a file": (_link_to_a_file, "link", "which is no folder"),
    "its path goes in a circle": (_circle, "link", "Too many levels of symbolic links"),
    "it is a pipe": (_pipe, "pipe", "is a pipe, socket or device and no folder"),
    "a name of it is too long": (_too_long_a_name, "", "longer than this system allows"),
    "its path is too long": (_too_long, "", "longer than this system allows"),
    "its folder of sessions is a file": (_sessions_a_file, "state/sessions", "is a file and no folder"),
}
each_fault = pytest.mark.parametrize("fault", FAULTS)

REQUESTS: dict[str, Callable[[SessionRegistry], Awaitable[object]]] = {
    "session/create": lambda registry: registry.create("title", None),
    "session/list": lambda registry: registry.list_sessions(),
    "session/open": lambda registry: registry.open(ID, 10),
    "session/close": lambda registry: registry.close(ID),
    "session/delete": lambda registry: registry.delete(ID, True),
    "any other request of a session": lambda registry: registry.open_session(ID),
    "show": lambda registry: read_session(registry, ID),
}


def registry_on(path: str, disk: Disk | None = None, editor: ScriptedEditor | None = None) -> SessionRegistry:
    """A registry as a server builds it on this state directory."""
    disk = disk or system_disk()
    models = ScriptedModel()
    return SessionRegistry(
        build_context(
            PrivateState(disk, state_directory_path(path)).prepare(),
            disk=disk,
            processes=FakeProcesses(),
            models=models,
            editor=editor,
        )
    )


def said(refused: Refused, path: Path, clause: str) -> None:
    """One sentence that names the path, what is wrong with it, and what to do."""
    assert refused.kind == "journalBroken"
    assert refused.more["readOnly"] == {"reason": "disk", "text": refused.message}
    assert refused.message.startswith(f"The state directory {shown_path(str(path))} cannot be used, because ")
    assert clause in refused.message
    assert refused.message.endswith(f"; {REMEDY}.")
    assert refused.message.count(". ") == 0
    assert len(refused.message) < TEXT_CHARS_MAX, "an error answer cuts what is longer"


@each_fault
@pytest.mark.parametrize("request_name", REQUESTS)
async def test_request_to_an_unusable_state_directory_names_the_path_and_its_fault(
    tmp_path: Path, fault: str, request_name: str
) -> None:
    """Case 171: every request, every fault; the same registry then answers the next one the same."""
    make, part, clause = FAULTS[fault]
    path = make(tmp_path)
    registry = registry_on(str(path))
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            await REQUESTS[request_name](registry)
        said(refused.value, path, clause)
        assert str(part and tmp_path / part) in refused.value.message.partition("because")[2]
    await registry.stop()


@each_fault
async def test_startup_scan_of_an_unusable_state_directory_tells_the_user_once(
    tmp_path: Path, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Case 171: one message and no trace."""
    make, _, clause = FAULTS[fault]
    editor = ScriptedEditor()
    registry = registry_on(str(make(tmp_path)), editor=editor)
    await scan_sessions(registry, [tmp_path.as_uri()])
    (message,) = [one for one in editor.told if isinstance(one, MessageNotification)]
    assert message.level == "error"
    assert clause in message.text
    assert caplog.records == []


@each_fault
async def test_doctor_says_what_is_wrong_with_the_state_directory(tmp_path: Path, fault: str) -> None:
    """Case 171: in its own report, and without an error."""
    make, _, clause = FAULTS[fault]
    context = registry_on(str(make(tmp_path))).context
    found = await context.in_thread(directory.diagnose, context)
    if "sessions" not in fault:
        assert clause in found["state"]


ERRORS: dict[int, str] = {
    errno.EACCES: "this user has no permission for",
    errno.EPERM: "this user has no permission for",
    errno.EROFS: "is read-only",
    errno.ENOSPC: "is full",
    errno.EDQUOT: "the disk quota of this user is used up",
    errno.EIO: "Input/output error",
}


def refusing(number: int, *verbs: str) -> Disk:
    """The system's disk, on which these operations fail."""

    def refuse(_: int, name: str) -> None:
        if name in verbs:
            raise OSError(number, os.strerror(number))

    return between(refuse)


@pytest.mark.parametrize("number", ERRORS)
@pytest.mark.parametrize("request_name", REQUESTS)
async def test_request_to_a_state_directory_that_the_system_refuses_says_why(
    tmp_path: Path, number: int, request_name: str
) -> None:
    """Case 171: no permission, a read-only file system, a full or a failing disk, for a folder that is not there."""
    path = tmp_path / "state"
    registry = registry_on(str(path), refusing(number, "make_root"))
    with pytest.raises(Refused) as refused:
        await REQUESTS[request_name](registry)
    said(refused.value, path, ERRORS[number])
    assert str(tmp_path) in refused.value.message


@pytest.mark.parametrize("verb", ["open_folder", "names"])
async def test_state_directory_that_may_not_be_read_is_refused_and_not_empty(tmp_path: Path, verb: str) -> None:
    """Case 171: a folder that cannot be listed is not a folder without sessions."""
    (tmp_path / "state" / "sessions").mkdir(parents=True)
    registry = registry_on(str(tmp_path / "state"), refusing(errno.EACCES, verb))
    with pytest.raises(Refused, match="no permission for"):
        await registry.list_sessions()


async def test_missing_state_directory_is_made_and_has_no_sessions(tmp_path: Path) -> None:
    """Row S3: a state directory that was removed is no fault."""
    registry = registry_on(str(tmp_path / "a" / "state"))
    (tmp_path / "a" / "state").rmdir()
    assert await registry.list_sessions() == ()
    with pytest.raises(Refused, match="no such session"):
        await registry.open(ID, 10)
    assert (await registry.create("title", None)).title == "title"
    await registry.stop()


@pytest.mark.parametrize("value", ["", "a\0b", "half \ud800", 7, ["x"]])
def test_state_directory_setting_that_is_no_path_is_one_fault(value: object) -> None:
    """Case 171: it counts as not set, and one clause says so."""
    chosen, fault = state_directory(None, {}, {"stateDirectory": value})
    assert (chosen, fault) == (None, "steadyhand.stateDirectory is not the path of a folder")


def test_fault_below_a_folder_that_may_not_be_entered_names_that_folder(tmp_path: Path) -> None:
    """Case 171: what is behind it cannot be seen."""
    disk = refusing(errno.EACCES, "look_path")
    sentence = sentence_of(disk, str(tmp_path / "state"), OSError(errno.EACCES, os.strerror(errno.EACCES)))
    assert "because this user has no permission for /;" in sentence
