"""Parse the command line. Invalid flags end the program with code 2 and a usage on stderr, as argparse does.

    steadyhand sessions | show ID | export ID | doctor | ask TEXT | jobs [list | stop ID]
    steadyhand permissions list | forget ID
    steadyhand recovery list | inspect ID | confirm ID | reject ID | waive ID | restore ID | retry ID | end-survivors ID

Each accepts `--json`, `--state-dir DIR` and `--setting NAME=VALUE`. An ID is an id or a unique beginning of it, at
least 4 digits.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, get_args

import attrs

from steadyhand.domain.records.record import Mode
from steadyhand_values import frozen

Verb = Literal["sessions", "show", "export", "recovery", "jobs", "permissions", "ask", "doctor"]
Subcommand = Literal[
    "list", "inspect", "confirm", "reject", "waive", "restore", "retry", "end-survivors", "stop", "forget"
]
VERBS: tuple[str, ...] = get_args(Verb)
TAIL_DEFAULT = 200  # messages
FLAG = "--setting"
SHORT_FLAGS: Mapping[str, str] = {
    "--provider": "model.provider",
    "--model": "model.name",
    "--base-url": "model.baseUrl",
    "--api-key-env": "model.apiKeyEnv",
}
"""Flags of `ask` and `doctor` → the settings that they set."""

_CODES = "Exit codes: 0 done; 1 refused or failed, with a sentence on stderr; 2 invalid flags; 128 + n for signal n."
_RECOVERY: dict[Subcommand, str] = {
    "list": "list the uncertain effects of every session (the default)",
    "inspect": "check what one effect has done",
    "confirm": "settle it as the check finds it",
    "reject": "don't repeat it; it stays uncertain",
    "waive": "continue without knowing",
    "restore": "put back the content before it",
    "retry": "try it again, if the setting recovery.retry or STEADYHAND_RECOVERY_RETRY=1 allows it",
    "end-survivors": "end the processes that a command left running",
}
_JOBS: dict[Subcommand, str] = {
    "list": "list the running background commands of every session (the default)",
    "stop": "end one of them and what it started",
}


@frozen
class CommandArguments:
    """The parsed command line. `id`: of a session, an attempt (`recovery`), a job or a grant; None if the verb needs
    none.
    """

    verb: Verb
    is_json: bool = False
    state_directory: str | None = None
    id: str | None = None
    tail: int = TAIL_DEFAULT
    format: Literal["markdown", "json"] = "markdown"
    redact: bool = False
    subcommand: Subcommand = "list"
    is_confirmed: bool = False
    text: str = ""
    session: str | None = None
    workspace: str | None = None
    mode: Mode | None = None
    settings: Mapping[str, object] = attrs.field(factory=dict)
    """Dotted name → value, from `--setting` and its short forms."""

    @property
    def has_model(self) -> bool:
        """Whether the command line names a model."""
        return bool({"model.provider", "model.name"} & set(self.settings))


def parse_arguments(arguments: Sequence[str], known: Collection[str] = ()) -> CommandArguments:
    """Return the arguments. SystemExit(2) for invalid ones, SystemExit(0) after `--help`.

    `known`: the names that `--setting` accepts.
    """
    parser = _make_parser()
    found = vars(parser.parse_args(arguments))
    settings = {path: found.pop(path) for path in SHORT_FLAGS.values() if found.get(path) is not None}
    for given in found.pop("setting", None) or ():
        path, says, text = given.partition("=")
        if path not in known or not says:
            parser.error(f"{FLAG} needs NAME=VALUE; the names are {', '.join(sorted(known))}")
        settings[path] = _parse_value(text)
    return CommandArguments(settings=settings, **{name: value for name, value in found.items() if value is not None})


def _parse_value(text: str) -> object:
    """Return a JSON text as its value, any other text unchanged."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _make_parser() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    # Without a default, so that the parser of a subcommand keeps a value that stands before the subcommand.
    shared.add_argument(
        "--json",
        dest="is_json",
        action="store_true",
        default=argparse.SUPPRESS,
        help="print JSON in the shapes of the protocol",
    )
    shared.add_argument(
        "--state-dir",
        dest="state_directory",
        metavar="DIR",
        default=argparse.SUPPRESS,
        help="the folder where sessions are stored",
    )
    shared.add_argument(
        FLAG,
        dest="setting",
        action="append",
        metavar="NAME=VALUE",
        default=argparse.SUPPRESS,
        help="a setting as in the editor, such as mode=auto; can be repeated",
    )
    parser = argparse.ArgumentParser("steadyhand", description="Use Steadyhand without an editor.", epilog=_CODES)
    verbs = parser.add_subparsers(dest="verb", required=True)

    def verb(name: Verb, does: str) -> argparse.ArgumentParser:
        return verbs.add_parser(name, parents=[shared], help=does, description=f"{does}.", epilog=_CODES)

    verb("sessions", "list every session, newest first")
    show = verb("show", "show one session without opening it")
    show.add_argument("id", metavar="ID")
    show.add_argument("--tail", type=_parse_count, metavar="N", help="with --json: the last N messages")
    export = verb("export", "print one session as a text; nothing is redacted without --redact")
    export.add_argument("id", metavar="ID")
    export.add_argument("--format", dest="format", choices=("markdown", "json"))
    export.add_argument("--redact", action="store_true", help="hide what looks like a credential")
    _add_recovery(verb("recovery", "list, inspect and settle uncertain effects"), shared)
    _add_jobs(verb("jobs", "list and stop background commands"), shared)
    _add_permissions(verb("permissions", "list and forget the remembered permissions of workspaces"), shared)
    ask = verb("ask", "run one prompt in this terminal")
    ask.add_argument("text", metavar="TEXT")
    ask.add_argument("--session", metavar="ID", help="the session to continue; the default is a new one")
    ask.add_argument(
        "--workspace", metavar="DIR", help="the folder of a new session; the default is the current folder"
    )
    ask.add_argument("--mode", choices=get_args(Mode), help="the mode of this session from now on")
    doctor = verb("doctor", "check this installation and the chosen provider")
    for asking in (ask, doctor):
        for flag, path in SHORT_FLAGS.items():
            asking.add_argument(flag, dest=path, metavar="TEXT", help=f"short for {FLAG} {path}=TEXT")
    return parser


def _add_recovery(parser: argparse.ArgumentParser, shared: argparse.ArgumentParser) -> None:
    subcommands = parser.add_subparsers(dest="subcommand")
    for name, does in _RECOVERY.items():
        subcommand = subcommands.add_parser(name, parents=[shared], help=does, description=f"{does}.")
        if name == "list":
            subcommand.add_argument("--session", metavar="ID")
            continue
        subcommand.add_argument(
            "id", metavar="ID", help="the id of the attempt, or a unique beginning of at least 4 digits"
        )
        if name != "inspect":
            subcommand.add_argument(
                "--yes", dest="is_confirmed", action="store_true", help="act on the finding without a question"
            )


def _add_jobs(parser: argparse.ArgumentParser, shared: argparse.ArgumentParser) -> None:
    subcommands = parser.add_subparsers(dest="subcommand")
    for name, does in _JOBS.items():
        subcommand = subcommands.add_parser(name, parents=[shared], help=does, description=f"{does}.")
        if name == "stop":
            subcommand.add_argument(
                "id", metavar="ID", help="the id of the job, or a unique beginning of at least 4 digits"
            )


def _add_permissions(parser: argparse.ArgumentParser, shared: argparse.ArgumentParser) -> None:
    subcommands = parser.add_subparsers(dest="subcommand")
    listed = "list the remembered permissions (the default)"
    subcommands.add_parser("list", parents=[shared], help=listed, description=f"{listed}.")
    taken = "forget one, so that its calls are asked about again"
    forget = subcommands.add_parser("forget", parents=[shared], help=taken, description=f"{taken}.")
    forget.add_argument("id", metavar="ID", help="a unique beginning of at least 4 digits, or `all`")


def _parse_count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number
