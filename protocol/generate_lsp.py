"""Writes `steadyhand/lsp/lsp_types.py`: the standard LSP types that the server uses, from lsprotocol.

Run it after a change of the lists below or of lsprotocol's version: `python protocol/generate_lsp.py`. With `--check`
it writes nothing and exits 1 if the file is not current. Importing lsprotocol builds more than 600 classes, which takes
half of the time that a server needs to start; the generated module has about 60 and takes no measurable time. A
contract test compares each with lsprotocol's own, by reflection and by round trip (decision 29).

The table describes every member that a client may send, because the server refuses wrong types everywhere. A type that
no code reads has no class: its values are checked and stay JSON.
"""

import argparse
import enum
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import attrs
from lsprotocol import types
from lsprotocol.converters import get_converter

TARGET = Path(__file__).parents[1] / "server" / "steadyhand" / "lsp" / "lsp_types.py"

# The methods that the server answers, follows or sends, by lsprotocol's name of their constant.
METHODS = [
    "INITIALIZE",
    "INITIALIZED",
    "SHUTDOWN",
    "EXIT",
    "CANCEL_REQUEST",
    "PROGRESS",
    "TEXT_DOCUMENT_DID_OPEN",
    "TEXT_DOCUMENT_DID_CHANGE",
    "TEXT_DOCUMENT_DID_SAVE",
    "TEXT_DOCUMENT_DID_CLOSE",
    "TEXT_DOCUMENT_CODE_ACTION",
    "TEXT_DOCUMENT_CODE_LENS",
    "TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS",
    "WORKSPACE_APPLY_EDIT",
    "WORKSPACE_EXECUTE_COMMAND",
    "WORKSPACE_CONFIGURATION",
    "WORKSPACE_DID_CHANGE_CONFIGURATION",
    "WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS",
    "WORKSPACE_CODE_LENS_REFRESH",
    "WORKSPACE_TEXT_DOCUMENT_CONTENT",
    "CLIENT_REGISTER_CAPABILITY",
    "WINDOW_LOG_MESSAGE",
    "WINDOW_SHOW_MESSAGE",
    "WINDOW_SHOW_MESSAGE_REQUEST",
    "WINDOW_WORK_DONE_PROGRESS_CREATE",
    "WINDOW_WORK_DONE_PROGRESS_CANCEL",
]

# The types whose members the server reads, or whose values it makes.
CLASSES = [
    "Position",
    "Range",
    "WorkspaceFolder",
    "InitializeParams",
    "InitializedParams",
    "ClientCapabilities",
    "GeneralClientCapabilities",
    "WindowClientCapabilities",
    "WorkspaceClientCapabilities",
    "CodeLensWorkspaceClientCapabilities",
    "TextDocumentContentClientCapabilities",
    "TextDocumentIdentifier",
    "VersionedTextDocumentIdentifier",
    "TextDocumentItem",
    "DidOpenTextDocumentParams",
    "DidChangeTextDocumentParams",
    "DidSaveTextDocumentParams",
    "DidCloseTextDocumentParams",
    "TextDocumentContentChangePartial",
    "TextDocumentContentChangeWholeDocument",
    "DidChangeWorkspaceFoldersParams",
    "WorkspaceFoldersChangeEvent",
    "DidChangeConfigurationParams",
    "ApplyWorkspaceEditParams",
    "ApplyWorkspaceEditResult",
    "WorkspaceEdit",
    "TextDocumentEdit",
    "OptionalVersionedTextDocumentIdentifier",
    "TextEdit",
    "CodeActionParams",
    "CodeActionContext",
    "CodeAction",
    "CodeLensParams",
    "CodeLens",
    "Command",
    "Diagnostic",
    "PublishDiagnosticsParams",
    "ConfigurationParams",
    "ConfigurationItem",
    "TextDocumentContentParams",
    "TextDocumentContentResult",
    "TextDocumentContentRegistrationOptions",
    "Registration",
    "RegistrationParams",
    "LogMessageParams",
    "ShowMessageParams",
    "ShowMessageRequestParams",
    "MessageActionItem",
    "ProgressParams",
    "WorkDoneProgressBegin",
    "WorkDoneProgressEnd",
    "WorkDoneProgressCreateParams",
    "WorkDoneProgressCancelParams",
]

# Those of them that a client sends, with all types in them. The server only writes the others.
READ = [
    "InitializeParams",
    "InitializedParams",
    "CodeActionParams",
    "CodeLensParams",
    "TextDocumentContentParams",
    "DidOpenTextDocumentParams",
    "DidChangeTextDocumentParams",
    "DidSaveTextDocumentParams",
    "DidCloseTextDocumentParams",
    "DidChangeWorkspaceFoldersParams",
    "DidChangeConfigurationParams",
    "WorkDoneProgressCancelParams",
    "ApplyWorkspaceEditResult",
    "MessageActionItem",
]

ENUMS = ("MessageType", "CodeActionKind", "DiagnosticSeverity")

# Unions, and how lsprotocol's converter reads them with our strict hooks for numbers and strings.
UNIONS: dict[Any, str] = {
    int | str: "any",
    bool | Any: "any",
    types.CompletionItemKind | int: "code",
    types.CodeActionKind | str: "text?",
    types.FoldingRangeKind | str: "word",
    types.LanguageKind | str: "word",
    types.PositionEncodingKind | str: "word",
    bool | types.ClientSemanticTokensRequestFullDelta: "flag ClientSemanticTokensRequestFullDelta",
    types.TextDocumentContentChangePartial | types.TextDocumentContentChangeWholeDocument: "change",
}
CHANGES = ("TextDocumentContentChangePartial", "TextDocumentContentChangeWholeDocument")
LIMITS = {"uinteger": "range(1 << 31)", "integer": "range(-(1 << 31), 1 << 31)"}

HEAD = '''"""The standard LSP types that the server uses. Written by protocol/generate_lsp.py: change it, run it.

A class has the members of lsprotocol's class of that name. `SHAPES` describes how their JSON is read and written
(`lsp.rpc.lsp_converter` does it), also for types without a class. Members keep lsprotocol's order.
"""

# ruff: noqa: RUF023

from __future__ import annotations

import enum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Value:
    """The base of all classes here: values are equal when their members are."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        members = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({members})"


class Field:
    """One member: its key in JSON, its attribute, its kind (see `lsp_converter`), whether it is required.

    `default`: a member with this value is not written; None if there is no default. `always`: the member is written
    with any value. `limits`: the integers that it may be."""

    __slots__ = ("key", "name", "kind", "required", "default", "always", "limits")

    def __init__(
        self, key: str, name: str, kind: str, required: bool = False, *, default: object = None, always: bool = False,
        limits: range | None = None,
    ) -> None:  # fmt: skip
        self.key = key
        self.name = name
        self.kind = kind
        self.required = required
        self.default = default
        self.always = always or required
        self.limits = limits


class Method:
    """A method of LSP: whether it is a request, and the kinds of its params and its result; "": it has none."""

    __slots__ = ("params", "request", "result")

    def __init__(self, request: bool, params: str, result: str) -> None:
        self.request = request
        self.params = params
        self.result = result

'''


# --- read lsprotocol ----------------------------------------------------------------------------------------


def key_of(name: str) -> str:
    """Return the key of an attribute on the wire."""
    first, *rest = name.removesuffix("_").split("_")
    return first + "".join(word.title() for word in rest)


def is_union(shape: Any) -> bool:
    return get_origin(shape) in (Union, UnionType)


def without_none(shape: Any) -> tuple[Any, bool]:
    """Return the shape without None, and whether None was in it."""
    if not is_union(shape) or NoneType not in get_args(shape):
        return shape, False
    return reduce(or_, (member for member in get_args(shape) if member is not NoneType)), True


def kind_of(shape: Any) -> str:
    """Return how a shape is read, in the words of `lsp.rpc.lsp_converter`."""
    plain, optional = without_none(shape)
    kind = plain_kind(plain)
    return f"{kind}?" if optional and not kind.endswith("?") and kind != "any" else kind


def plain_kind(shape: Any) -> str:
    if shape in (Any, object, NoneType) or shape is types.LSPAny:
        return "any"
    if shape in UNIONS:
        return UNIONS[shape]
    if get_origin(shape) is Sequence:
        return f"[{kind_of(get_args(shape)[0])}]"
    if isinstance(shape, type):
        for plain, kind in ((bool, "flag"), (int, "integer"), (str, "text"), (float, "number")):
            if issubclass(shape, plain):
                return kind
        if attrs.has(shape):
            return shape.__name__
    raise Unreadable(f"protocol/generate_lsp.py does not know how to read {shape}")


class Unreadable(SystemExit):
    """The lists and tables here do not contain this shape."""


def annotation_of(shape: Any) -> str:
    """Return the type of a member in Python."""
    plain, optional = without_none(shape)
    try:
        kind = plain_kind(plain)
    except Unreadable:  # the server does not write it either
        return "object"
    names = {
        "any": "object",
        "code": "object",
        "flag": "bool",
        "integer": "int",
        "text": "str",
        "text?": "str",
        "word": "str",
    }
    if kind.startswith("["):
        found = f"Sequence[{annotation_of(get_args(plain)[0])}]"
    elif kind == "change":
        found = "TextDocumentContentChangePartial | TextDocumentContentChangeWholeDocument"
    else:
        found = kind if kind in CLASSES else names.get(kind, "object")
    return f"{found} | None" if optional and found != "object" else found


def limits_of(field: "attrs.Attribute[Any]") -> str | None:
    found = re.search("function (integer|uinteger)_validator", repr(field.validator))
    return LIMITS[found[1]] if found else None


def reachable_types(names: Sequence[str]) -> list[str]:
    """Return these types and all types in their members, each once."""
    found: dict[str, None] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop(0)
        if name in found:
            continue
        found[name] = None
        for field in attrs.fields(getattr(types, name)):
            kind = kind_of(field.type)
            waiting += CHANGES if "change" in kind else re.findall(r"[A-Z]\w+", kind)
    return list(found)


# --- write the module ---------------------------------------------------------------------------------------


def enum_lines(name: str) -> Iterator[str]:
    source: type[enum.Enum] = getattr(types, name)
    yield f"class {name}({'str, enum.Enum' if issubclass(source, str) else 'enum.IntEnum'}):"
    yield from (f"    {member.name} = {member.value!r}" for member in source)
    yield ""
    yield ""


def class_lines(name: str) -> Iterator[str]:
    fields = attrs.fields(getattr(types, name))
    slots = ", ".join(f'"{field.name}"' for field in fields)
    yield f"class {name}(Value):"
    yield f"    __slots__ = ({slots}{',' if len(fields) == 1 else ''})"
    if fields:
        yield ""
        parameters = [f"{field.name}: {annotation_of(field.type)}{default_of(field)}" for field in fields]
        yield f"    def __init__(self, {', '.join(parameters)}) -> None:"
        yield from (f"        self.{field.name} = {field.name}" for field in fields)
    yield ""
    yield ""


def default_of(field: "attrs.Attribute[Any]") -> str:
    return "" if field.default is attrs.NOTHING else f" = {field.default!r}"


def field_text(cls: type[Any], field: "attrs.Attribute[Any]", read: bool) -> str:
    required = field.default is attrs.NOTHING
    parts = [f'"{key_of(field.name)}"', f'"{field.name}"', f'"{kind_of(field.type) if read else "any"}"']
    if required:
        parts.append("True")
    elif field.default is not None:
        parts.append(f"default={field.default!r}")
    if not required and types.is_special_property(cls, field.name):
        parts.append("always=True")
    if read and (limits := limits_of(field)):
        parts.append(f"limits={limits}")
    return f"Field({', '.join(parts)})"


def table_lines() -> Iterator[str]:
    yield "SHAPES: Mapping[str, tuple[Field, ...]] = {"
    read = reachable_types(READ)
    for name in dict.fromkeys([*read, *CLASSES]):
        cls = getattr(types, name)
        fields = [field_text(cls, field, name in read) for field in attrs.fields(cls)]
        yield f'    "{name}": ({", ".join(fields)}{"," if len(fields) == 1 else ""}),'
    yield "}"
    yield ""
    classes = ", ".join(f'"{name}": {name}' for name in CLASSES)
    yield f"CLASSES: Mapping[str, type[Value]] = {{{classes}}}"


def method_lines() -> Iterator[str]:
    for name in METHODS:
        yield f'{name} = "{getattr(types, name)}"'
    yield ""
    yield "METHODS: Mapping[str, Method] = {"
    for name in METHODS:
        answer: Any
        params: Any
        _, answer, params, _ = types.METHOD_TO_TYPES[getattr(types, name)]
        result = "" if answer is None else result_of(answer)
        kind = "" if params is None else params.__name__ if params.__name__ in READ else "any"
        yield f'    {name}: Method({answer is not None}, "{kind}", "{result}"),'
    yield "}"
    known = sorted(method for method, row in types.METHOD_TO_TYPES.items() if row[1] is None)
    yield "NOTIFICATIONS = frozenset({" + ", ".join(f'"{method}"' for method in known) + "})"


def result_of(answer: Any) -> str:
    """Return how a result is read, for a request of the server; it only writes all other results."""
    shape = next(field.type for field in attrs.fields(answer) if field.name == "result")
    try:
        kind = kind_of(shape)
    except Unreadable:
        return "any"
    return kind if all(name in READ for name in re.findall(r"[A-Z]\w+", kind)) else "any"


def lsp_types() -> str:
    """Return the text of the module, formatted."""
    get_converter()  # resolves lsprotocol's forward references
    lines = [HEAD]
    lines += [line for name in ENUMS for line in enum_lines(name)]
    lines += [line for name in CLASSES for line in class_lines(name)]
    lines += [*table_lines(), "", *method_lines()]
    return format_source("\n".join(lines) + "\n")


def format_source(source: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET), "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the standard LSP types that the server uses.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the file is not current")
    arguments = parser.parse_args()
    text = lsp_types()
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text:
        return 0
    print(f"{TARGET.name} {'is not current: run protocol/generate_lsp.py' if arguments.check else 'written'}")
    if not arguments.check:
        TARGET.write_text(text, encoding="utf-8")
    return 1 if arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
