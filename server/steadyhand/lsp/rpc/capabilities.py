"""The result of `initialize`: the same for every client, except for the encoding of positions.

The capabilities are written as JSON here, because the server answers before it imports anything that takes time. A
contract test compares them with the result of pygls and lsprotocol for the same capabilities, and with the table of
commands.
"""

from __future__ import annotations

from steadyhand import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from steadyhand.lsp.lsp_types import InitializeParams

PROTOCOL_MEMBER = "steadyhand"
PROTOCOL_VERSION = 1
POSITION_ENCODINGS = ("utf-8", "utf-16", "utf-32")
COMMANDS = (
    "steadyhand.recovery.list",
    "steadyhand.recovery.inspect",
    "steadyhand.recovery.confirm",
    "steadyhand.recovery.reject",
    "steadyhand.recovery.waive",
    "steadyhand.recovery.retry",
    "steadyhand.recovery.restore",
    "steadyhand.recovery.endSurvivors",
    "steadyhand.review.keep",
    "steadyhand.review.undo",
    "steadyhand.permissions.list",
    "steadyhand.permissions.forget",
    "steadyhand.ask",
    "steadyhand.cancel",
    "steadyhand.doctor",
)


def position_encoding(params: InitializeParams) -> str:
    """Return the first encoding that the client names and the server knows; else the one that every client knows."""
    general = params.capabilities.general
    named = general.position_encodings if general is not None else None
    return next((encoding for encoding in named or () if encoding in POSITION_ENCODINGS), "utf-16")


def initialize_result(encoding: str) -> dict[str, object]:
    """Return the result of `initialize`, as JSON."""
    return {
        "capabilities": {
            "positionEncoding": encoding,
            "textDocumentSync": {"openClose": True, "change": 2, "save": {"includeText": False}},
            "codeActionProvider": {"codeActionKinds": ["quickfix"], "resolveProvider": False},
            "codeLensProvider": {"resolveProvider": False},
            "executeCommandProvider": {"commands": list(COMMANDS)},
            "workspace": {
                "workspaceFolders": {"supported": True, "changeNotifications": True},
                "fileOperations": {},
            },
            "experimental": {PROTOCOL_MEMBER: {"protocolVersion": PROTOCOL_VERSION}},
        },
        "serverInfo": {"name": "steadyhand", "version": __version__},
    }
