"""Write `schema/protocol.json` and `schema/protocol.ts` from the Python wire types, their only source.

Run it after any change in `steadyhand_protocol`: `python protocol/generate.py`. With `--check` it writes nothing and
exits 1 if a file is not current. Both files are committed; so is the copy of the second one that the editor client is
built from, which is written and checked with them. The output depends only on the types and their comments: it has the
order of the source and no date. Half surrogate pairs and sizes in bytes cannot be expressed in JSON Schema, so its
comments name them.
"""

import argparse
import ast
import io
import json
import sys
import tokenize
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, get_args, get_origin

import attrs

from steadyhand_protocol import approval, commands, methods, recovery, refusals, review, session, turn, values
from steadyhand_protocol.values import AtMost, Between, Form
from steadyhand_protocol.wire import is_union, wire_fields

ROOMS: tuple[ModuleType, ...] = (values, turn, recovery, session, review, approval, commands, refusals)
SCHEMA_DIRECTORY = Path(__file__).parent / "schema"
CLIENT_COPY = Path(__file__).parents[1] / "editor-client" / "src" / "protocol.ts"
LIMITS = (Form, AtMost, Between)

Json = dict[str, Any]


# --- what the source says -----------------------------------------------------------------------------------


def field_comments(room: ModuleType) -> dict[str, dict[str, str]]:
    """Return for each class of a module the comment of each field: at its end, or alone on the line above."""
    source = Path(str(room.__file__)).read_text(encoding="utf-8")
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    return {
        node.name: {
            statement.target.id: comments.get(statement.end_lineno or 0, comments.get(statement.lineno - 1, ""))
            for statement in node.body
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
        }
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef)
    }


def named_shapes() -> dict[str, Any]:
    """Return every class and alias of the modules by name, in the order of the source."""
    found: dict[str, Any] = {}
    for room in ROOMS:
        for name, shape in vars(room).items():
            if name.startswith("_") or name in found or shape in LIMITS:
                continue
            if is_alias(shape) or (attrs.has(shape) and isinstance(shape, type)):
                found[name] = shape
    return found


def is_alias(shape: Any) -> bool:
    """Return whether the shape is an alias of a type, not a class."""
    return is_union(shape) or get_origin(shape) in (Literal, Annotated)


SHAPES = named_shapes()
NAMES: Mapping[Any, str] = {shape: name for name, shape in reversed(SHAPES.items())}
COMMENTS = {name: texts for room in ROOMS for name, texts in field_comments(room).items()}


def class_comment(cls: type[Any]) -> str:
    """Return the first line of the class's docstring; it becomes the description of the type."""
    return (cls.__doc__ or "").split("\n")[0]


# --- JSON Schema --------------------------------------------------------------------------------------------


def schema_of(shape: Any) -> Json:
    """Return the JSON Schema of a shape; a named shape is a reference."""
    return {"$ref": f"#/$defs/{NAMES[shape]}"} if shape in NAMES else schema_within(shape)


def schema_within(shape: Any) -> Json:
    """Return the JSON Schema of a shape, written out."""
    plain = {str: "string", int: "integer", bool: "boolean"}
    if shape in plain:
        return {"type": plain[shape]}
    if is_union(shape):
        return {"oneOf": [schema_of(member) for member in get_args(shape)]}
    parts = get_args(shape)
    origin = get_origin(shape)
    if origin is Literal:
        return {"enum": list(parts)}
    if origin is tuple:
        return {"type": "array", "items": schema_of(parts[0])}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": schema_of(parts[1])}
    if origin is Annotated:
        narrowed = schema_of(parts[0])
        for limit in parts[1:]:
            narrowed |= schema_limit(limit)
        return narrowed
    return schema_object(shape)


def schema_limit(limit: Form | AtMost | Between) -> Json:
    """Return the JSON Schema members that express a limit."""
    match limit:
        case Form(pattern, expected):
            return {"pattern": f"^{pattern}$", "description": expected}
        case AtMost(count, "items"):
            return {"maxItems": count}
        case AtMost(count, "characters"):
            return {"maxLength": count}
        case AtMost(count, "bytes"):
            return {"maxLength": count, "$comment": f"at most {count} bytes of UTF-8"}
        case Between(low, high):
            return {"minimum": low, "maximum": high}
        case _:
            raise AssertionError(f"no such limit: {limit}")


def schema_object(cls: type[Any]) -> Json:
    """Return the JSON Schema of a wire class."""
    fields = wire_fields(cls)
    properties = {
        field.key: schema_of(field.shape) | {"description": COMMENTS[cls.__name__][field.name]} for field in fields
    }
    return {
        "type": "object",
        "description": class_comment(cls),
        "properties": properties,
        "required": [field.key for field in fields if field.required],
        "additionalProperties": False,
    }


def protocol_json() -> str:
    """Return the whole contract as one JSON document."""
    document: Json = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Steadyhand wire protocol",
        "version": methods.PROTOCOL_VERSION,
        "methods": [method_row(method) for method in methods.METHODS],
        "commands": [command_row(command) for command in methods.COMMANDS],
        "errors": [
            {"kind": error.kind, "code": error.code, "data": schema_of(error.data)} for error in methods.ERROR_KINDS
        ],
        "$defs": {name: schema_within(shape) for name, shape in SHAPES.items()},
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def method_row(method: methods.Method) -> Json:
    """Return the JSON of one method."""
    return {
        "name": method.name,
        "kind": "notification" if method.result is None else "request",
        "direction": method.direction,
        "since": method.since,
        "built": method.built,
        "params": schema_of(method.params),
    } | ({} if method.result is None else {"result": schema_of(method.result)})


def command_row(command: methods.Command) -> Json:
    """Return the JSON of one command."""
    arguments: Json = {"type": "array", "maxItems": 0}
    if command.arguments is not None:  # JSON Schema has no empty `prefixItems`
        arguments = {"type": "array", "prefixItems": [schema_of(command.arguments)], "maxItems": 1}
    return {
        "name": command.name,
        "since": command.since,
        "built": command.built,
        "arguments": arguments,
        "result": schema_of(command.result),
    }


# --- TypeScript ---------------------------------------------------------------------------------------------


def ts_of(shape: Any) -> str:
    """Return the TypeScript type of a shape; a named shape by its name."""
    return NAMES[shape] if shape in NAMES else ts_within(shape)


def ts_within(shape: Any) -> str:
    """Return the TypeScript type of a shape, written out."""
    plain = {str: "string", int: "number", bool: "boolean"}
    if shape in plain:
        return plain[shape]
    parts = get_args(shape)
    if is_union(shape):
        return " | ".join(ts_of(member) for member in parts)
    origin = get_origin(shape)
    if origin is Literal:
        return " | ".join(json.dumps(value) for value in parts)
    if origin is tuple:
        item = ts_of(parts[0])
        return f"readonly ({item})[]" if " " in item else f"readonly {item}[]"
    if origin is Mapping:
        return f"Readonly<Record<string, {ts_of(parts[1])}>>"
    assert origin is Annotated, shape
    return ts_of(parts[0])


def ts_declaration(name: str, shape: Any) -> Iterator[str]:
    """Yield the lines that declare a named shape."""
    if is_alias(shape):
        note = "; ".join(ts_limit(limit) for limit in get_args(shape)[1:] if isinstance(limit, LIMITS))
        if note:
            yield f"/** {note} */"
        yield f"export type {name} = {ts_within(shape)};"
        return
    yield f"/** {class_comment(shape)} */"
    fields = wire_fields(shape)
    if not fields:
        yield f"export type {name} = Readonly<Record<string, never>>;"
        return
    yield f"export interface {name} {{"
    for field in fields:
        yield f"  /** {COMMENTS[name][field.name]} */"
        yield f"  readonly {field.key}{'' if field.required else '?'}: {ts_of(field.shape)};"
    yield "}"


def ts_limit(limit: Form | AtMost | Between) -> str:
    """Return a limit in words."""
    match limit:
        case Form(_, expected):
            return expected
        case AtMost(count, unit):
            return f"at most {count} {unit}"
        case Between(low, high):
            return f"from {low} to {high}"


def ts_map(name: str, note: str, rows: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of an interface that maps names to types."""
    yield f"/** {note} */"
    yield f"export interface {name} {{"
    yield from (f"  readonly {json.dumps(key)}: {value};" for key, value in rows.items())
    yield "}"


def ts_requests(fits: Callable[[methods.Method], bool]) -> dict[str, str]:
    """Return method name → TypeScript type of params and result, for the requests that fit."""
    return {
        method.name: f"{{ readonly params: {ts_of(method.params)}; readonly result: {ts_of(method.result)} }}"
        for method in methods.METHODS
        if method.result is not None and fits(method)
    }


def ts_tables() -> Iterator[str]:
    """Yield the lines of the tables of methods, commands and errors."""
    yield from ts_map(
        "RequestsToServer",
        "Requests the editor may send.",
        ts_requests(lambda method: method.direction == "to_server"),
    )
    yield from ts_map(
        "RequestsToEditor",
        "Requests the server may send, each only to a client that declared it.",
        ts_requests(lambda method: method.direction == "to_editor"),
    )
    told = {method.name: ts_of(method.params) for method in methods.METHODS if method.result is None}
    yield from ts_map("NotificationsToEditor", "Params of the notifications the server sends.", told)
    called = {command.name: ts_command(command) for command in methods.COMMANDS}
    yield from ts_map("Commands", "Commands of `workspace/executeCommand`.", called)
    data = {error.kind: ts_of(error.data) for error in methods.ERROR_KINDS}
    yield from ts_map("ErrorData", "What stands in `data` of an error answer, by its kind.", data)
    yield "/** The code of an error answer, by its kind. */"
    yield "export const errorCodes = {"
    yield from (f"  {error.kind}: {error.code}," for error in methods.ERROR_KINDS)
    yield "} as const;"
    yield "/** Methods and commands that are answered as not found until their part is built. */"
    yield "export const notBuilt: readonly string[] = ["
    missing = [method.name for method in methods.METHODS if not method.built]
    missing += [command.name for command in methods.COMMANDS if not command.built]
    yield from (f"  {json.dumps(name)}," for name in missing)
    yield "];"


def ts_command(command: methods.Command) -> str:
    """Return the TypeScript type of a command's arguments and result."""
    element = "" if command.arguments is None else ts_of(command.arguments)
    return f"{{ readonly arguments: readonly [{element}]; readonly result: {ts_of(command.result)} }}"


def protocol_ts() -> str:
    """Return the types and tables for a client in TypeScript."""
    lines = [
        "// Generated by protocol/generate.py from the Python wire types; change those and run it again.",
        "",
        f"export const protocolVersion = {methods.PROTOCOL_VERSION};",
        "",
    ]
    for name, shape in SHAPES.items():
        lines += [*ts_declaration(name, shape), ""]
    return "\n".join([*lines, *ts_tables()]) + "\n"


# --- the program --------------------------------------------------------------------------------------------


def main() -> int:
    """Write the files, or check them with `--check`. Return the exit code."""
    parser = argparse.ArgumentParser(description="Write the schema and the TypeScript types of the wire.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is not current")
    parser.add_argument("--directory", type=Path, help="where the two files stand; then the copy is left alone")
    asked = parser.parse_args()
    directory: Path = asked.directory or SCHEMA_DIRECTORY
    files = {directory / "protocol.json": protocol_json(), directory / "protocol.ts": protocol_ts()}
    if asked.directory is None:
        files[CLIENT_COPY] = files[directory / "protocol.ts"]
    stale = False
    for file, text in files.items():
        if file.exists() and file.read_bytes() == text.encode():
            continue
        stale = True
        name = "the editor client's protocol.ts" if file == CLIENT_COPY else file.name
        print(f"{name} {'is not current: run protocol/generate.py' if asked.check else 'written'}")
        if not asked.check:
            file.write_bytes(text.encode())
    return 1 if asked.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
