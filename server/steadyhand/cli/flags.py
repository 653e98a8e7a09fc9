"""What a command line asks for. Bad flags end the program with 2 and a usage on stderr, as argparse has it.

    steadyhand sessions | show ID | export ID | doctor | ask TEXT | jobs [list | stop ID]
    steadyhand permissions list | forget ID
    steadyhand recovery list | inspect ID | confirm ID | reject ID | waive ID | restore ID | retry ID | end-survivors ID

Each takes `--json`, `--state-dir DIR` and `--setting NAME=VALUE`. An ID is an id or a unique beginning of it, of 4
digits or more.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, get_args

import attrs

from steadyhand.core.record import Mode

Verb = Literal["sessions", "show", "export", "recovery", "jobs", "permissions", "ask", "doctor"]
Deed = Literal["list", "inspect", "confirm", "reject", "waive", "restore", "retry", "end-survivors", "stop", "forget"]
VERBS: tuple[str, ...] = get_args(Verb)
tail_default = 200
FLAG = "--setting"
SHORT: Mapping[str, str] = {
    "--provider": "model.provider",
    "--model": "model.name",
    "--base-url": "model.baseUrl",
    "--api-key-env": "model.apiKeyEnv",
}
"""Flags of `ask` and `doctor` → the settings they say."""

_CODES = "Exit codes: 0 done; 1 refused or failed, with a sentence on stderr; 2 bad flags; 128 + n for signal n."
_RECOVERY: dict[Deed, str] = {
    "list": "what is uncertain, in every session; also without a word",
    "inspect": "look at the world for one effect",
    "confirm": "settle it as that look finds it",
    "reject": "note that it shall not be repeated; it stays uncertain",
    "waive": "go on without knowing",
    "restore": "put back the content before it",
    "retry": "try it again, where the setting recovery.retry or STEADYHAND_RECOVERY_RETRY=1 allows it",
    "end-survivors": "end what a command left running",
}
_JOBS: dict[Deed, str] = {
    "list": "what has no end yet, in every session; also without a word",
    "stop": "end one and what it started",
}


@attrs.frozen
class Flags:
    """`id`: of a session, an attempt (`recovery`), a job or a grant (`permissions`); None where the verb needs none."""

    verb: Verb
    json: bool = False
    state_directory: str | None = None
    id: str | None = None
    tail: int = tail_default
    form: Literal["markdown", "json"] = "markdown"
    deed: Deed = "list"
    yes: bool = False
    text: str = ""
    session: str | None = None
    workspace: str | None = None
    mode: Mode | None = None
    settings: Mapping[str, object] = attrs.field(factory=dict)
    """Dotted name → value, of `--setting` and its short forms."""

    @property
    def model_given(self) -> bool:
        """Whether the command line says which model answers."""
        return bool({"model.provider", "model.name"} & set(self.settings))


def read(arguments: Sequence[str], known: Collection[str] = ()) -> Flags:
    """The flags; SystemExit(2) for what is none, SystemExit(0) after `--help`. `known`: what `--setting` takes."""
    parser = _parser()
    found = vars(parser.parse_args(arguments))
    settings = {path: found.pop(path) for path in SHORT.values() if found.get(path) is not None}
    for given in found.pop("setting", None) or ():
        path, says, text = given.partition("=")
        if path not in known or not says:
            parser.error(f"{FLAG} wants NAME=VALUE, the name one of {', '.join(sorted(known))}")
        settings[path] = _value(text)
    return Flags(settings=settings, **{name: value for name, value in found.items() if value is not None})


def _value(text: str) -> object:
    """What stands for JSON is taken as such, anything else as the text it is."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _parser() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    # Without a default, so that the parser of a deed does not undo what stood before the deed.
    shared.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="answer in the wire's shapes")
    shared.add_argument(
        "--state-dir", dest="state_directory", metavar="DIR", default=argparse.SUPPRESS, help="where sessions lie"
    )
    shared.add_argument(
        FLAG, dest="setting", action="append", metavar="NAME=VALUE", default=argparse.SUPPRESS,
        help="a setting as the editor would say it, such as mode=auto; may stand more than once",
    )  # fmt: skip
    parser = argparse.ArgumentParser("steadyhand", description="Steadyhand on a command line.", epilog=_CODES)
    verbs = parser.add_subparsers(dest="verb", required=True)

    def verb(name: Verb, does: str) -> argparse.ArgumentParser:
        return verbs.add_parser(name, parents=[shared], help=does, description=f"{does}.", epilog=_CODES)

    verb("sessions", "every session, newest first")
    show = verb("show", "one session as it stands, read without taking it")
    show.add_argument("id", metavar="ID")
    show.add_argument("--tail", type=_count, metavar="N", help="with --json: the last N messages")
    export = verb("export", "one session as a text, nothing redacted")
    export.add_argument("id", metavar="ID")
    export.add_argument("--format", dest="form", choices=("markdown", "json"))
    _add_recovery(verb("recovery", "uncertain effects: list, look, decide"), shared)
    _add_jobs(verb("jobs", "background commands: list, stop"), shared)
    _add_permissions(verb("permissions", "what passes without asking, for a workspace or for all"), shared)
    ask = verb("ask", "a prompt, carried out here and now")
    ask.add_argument("text", metavar="TEXT")
    ask.add_argument("--session", metavar="ID", help="go on with it; else a new one is made")
    ask.add_argument("--workspace", metavar="DIR", help="of a new session; this folder if left out")
    ask.add_argument("--mode", choices=get_args(Mode), help="of this session from now on")
    doctor = verb("doctor", "how this installation stands; asks the chosen provider")
    for asking in (ask, doctor):
        for flag, path in SHORT.items():
            asking.add_argument(flag, dest=path, metavar="TEXT", help=f"short for {FLAG} {path}=TEXT")
    return parser


def _add_recovery(parser: argparse.ArgumentParser, shared: argparse.ArgumentParser) -> None:
    deeds = parser.add_subparsers(dest="deed")
    for name, does in _RECOVERY.items():
        deed = deeds.add_parser(name, parents=[shared], help=does, description=f"{does}.")
        if name == "list":
            deed.add_argument("--session", metavar="ID")
            continue
        deed.add_argument("id", metavar="ID", help="of the attempt, or a unique beginning of 4 digits or more")
        if name != "inspect":
            deed.add_argument("--yes", action="store_true", help="act on what is found, without a question")


def _add_jobs(parser: argparse.ArgumentParser, shared: argparse.ArgumentParser) -> None:
    deeds = parser.add_subparsers(dest="deed")
    for name, does in _JOBS.items():
        deed = deeds.add_parser(name, parents=[shared], help=does, description=f"{does}.")
        if name == "stop":
            deed.add_argument("id", metavar="ID", help="of the job, or a unique beginning of 4 digits or more")


def _add_permissions(parser: argparse.ArgumentParser, shared: argparse.ArgumentParser) -> None:
    deeds = parser.add_subparsers(dest="deed")
    listed = "what is remembered; also without a word"
    deeds.add_parser("list", parents=[shared], help=listed, description=f"{listed}.")
    taken = "take one back, so that it is asked about again"
    forget = deeds.add_parser("forget", parents=[shared], help=taken, description=f"{taken}.")
    forget.add_argument("id", metavar="ID", help="a unique beginning of 4 digits or more, or `all`")


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number
