"""What is uncertain of a document is checked again, and not once for each typed letter (row V2)."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.features import document_check
from steadyhand.lsp.features.document_check import DocumentCheck
from steadyhand.lsp.state.documents import Documents
from steadyhand.session.session import Session
from tests.support.waiting import Gate

pytestmark = pytest.mark.anyio

URI = "file:///ws/a.txt"


async def follow_save(params: types.DidSaveTextDocumentParams) -> None:
    """Publish nothing."""


async def test_letters_typed_during_a_check_are_one_more_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """V2, [I13]: a check syncs files. The one that waits sees whatever was typed before it begins."""
    documents, gate, seen = Documents(), Gate(), list[str]()
    opened = types.TextDocumentItem(URI, "python", 1, "x")
    documents.save(documents.open(opened).uri)
    server = SimpleNamespace(documents=documents, on_lsp=lambda method, run: None)
    registry = SimpleNamespace(sessions={}, context=SimpleNamespace())
    publisher = SimpleNamespace(follow_save=follow_save)
    check = DocumentCheck(cast("Any", server), cast("Any", registry), cast("Any", publisher))

    async def again(sessions: Iterable[Session], path: str) -> None:
        assert path == "/ws/a.txt"
        await gate.passed()
        document = documents.by_path(path)
        assert document is not None
        seen.append(document.text)

    monkeypatch.setattr(document_check, "check_documents_again", again)
    saved = types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(URI))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(check.check_save, saved)
        await gate.wait_reached()
        for version in range(2, 22):
            documents.change(URI, version, [types.TextDocumentContentChangeWholeDocument(f"x{version}")])
            tasks.start_soon(check.check_save, saved)
        await anyio.wait_all_tasks_blocked()
        gate.go.set()
    assert seen == ["x21", "x21"]
