"""Find the words of a provider's error, its codes and its status, wherever the provider put them (case 111).

Providers, and the gateways before them, wrap an error in objects, lists and JSON inside texts. The search goes through
all of it, the outermost first, within bounds. It decides nothing: `errors` does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

DEPTH_MAX = 8
ENTRIES_MAX = 8  # of a list
WORDS_MAX = 4  # sentences of one error
NODES_MAX = 400

_TEXTS = (
    *("title", "message", "Message", "msg", "error_message", "errorMessage", "error_msg", "errorMsg", "errmsg"),
    *("error_description", "detail", "details", "description", "faultstring", "status_msg", "reason"),
)
_ENVELOPES = (
    *("error", "errors", "detail", "details", "message", "messages", "response", "incomplete_details", "fault"),
    *("base_resp", "data", "body", "metadata", "raw", "innererror", "inner_error", "cause", "status_details"),
)
_CODES = (
    *("code", "status", "status_code", "statusCode", "http_status", "error_code", "errorCode", "type"),
    *("error_type", "errorType", "__type", "reason"),
)
_ERROR_MEMBERS = (
    *("error", "errors", "error_message", "errorMessage", "error_msg", "errorMsg", "errmsg", "error_type"),
    *("errorType", "fault"),
)
_ANSWER_MEMBERS = ("choices", "type", "content", "output", "usage", "response", "delta")

# Types of an error inside an answer, which has no status of its own; lower case, letters only.
STATUS_BY_TYPE: Mapping[str, int] = {
    "authenticationerror": 401,
    "invalidapikey": 401,
    "unauthenticated": 401,
    "unauthorized": 401,
    "paymentrequired": 402,
    "permissionerror": 403,
    "permissiondenied": 403,
    "accessdeniedexception": 403,
    "notfounderror": 404,
    "notfound": 404,
    "modelnotfound": 404,
    "requesttoolarge": 413,
    "ratelimiterror": 429,
    "ratelimitexceeded": 429,
    "ratelimit": 429,
    "toomanyrequests": 429,
    "resourceexhausted": 429,
    "throttlingexception": 429,
    "throttling": 429,
    "invalidrequesterror": 400,
    "invalidrequest": 400,
    "invalidargument": 400,
    "invalidparameter": 400,
    "invalidprompt": 400,
    "badrequest": 400,
    "badrequesterror": 400,
    "validationerror": 400,
    "validationexception": 400,
    "contextlengthexceeded": 400,
    "overloadederror": 529,
    "overloaded": 529,
    "unavailableerror": 503,
    "unavailable": 503,
    "serviceunavailable": 503,
    "serviceunavailableexception": 503,
    "apierror": 500,
    "servererror": 500,
    "internalerror": 500,
    "internalservererror": 500,
    "timeouterror": 504,
    "deadlineexceeded": 504,
}


def is_error(payload: Mapping[str, Any]) -> bool:
    """Return whether an object of an answer with status 200 reports an error in place of a part of the answer."""
    if "error" in (payload.get("type"), payload.get("object")):
        return True
    if any(payload.get(member) for member in _ERROR_MEMBERS) or payload.get("success") is False:
        return True
    base = payload.get("base_resp")
    if isinstance(base, Mapping) and base.get("status_code") not in (None, 0, "0"):
        return True
    has_answer = any(payload.get(member) for member in _ANSWER_MEMBERS)
    return not has_answer and any(
        isinstance(payload.get(member), str | list) and payload.get(member) for member in ("message", "msg", "detail")
    )


def find_words(error: object) -> str:
    """Return what a provider says, as one text; empty: it says nothing in words."""
    found: list[str] = []
    for text in _texts(error):
        text = text.strip()
        if not text or any(text in other for other in found):
            continue
        found = [other for other in found if other not in text]
        found.append(text)
        if len(found) >= WORDS_MAX:
            break
    return ": ".join(text.rstrip(".:") if text is not found[-1] else text for text in found)


def find_codes(error: object) -> str:
    """Return the codes and types of an error, separated by blanks; the outermost first."""
    found: list[str] = []
    for node in _nodes(error):
        found += [str(node[name]) for name in _CODES if isinstance(node.get(name), str | int)]
    return " ".join(code for code in found if code != "error")


def find_status(error: object) -> int:
    """Return the HTTP status that an error names by a number or by a type; 0: none."""
    for node in _nodes(error):
        for name in _CODES:
            status = _status_of(node.get(name))
            if status:
                return status
    return 0


def find_members(error: object) -> str:
    """Return the names of a request's members that an error is about, separated by blanks."""
    named = (node.get(name) for node in _nodes(error) for name in ("param", "parameter", "field", "property"))
    return " ".join(f"“{name}”" for name in named if isinstance(name, str) and name)


def parse_body(body: bytes) -> object:
    """Return the object in an error's body, else its text; the title of a web page."""
    if body.lstrip()[:1] == b"<":
        return page_title(body)
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return _events_of(body) or body[:4096].decode("utf-8", errors="replace")


def page_title(body: bytes) -> str:
    """Return the title of a web page; empty: it has none."""
    title = re.search(rb"<title[^>]{0,200}>([^<]{1,400})<", body[:65536], re.IGNORECASE)
    return title[1].decode("utf-8", errors="replace").strip() if title else ""


def _events_of(body: bytes) -> object:
    """Return the object of an error that a server sends as an event, with an error's status."""
    for line in body[:65536].splitlines():
        if line.startswith(b"data:"):
            try:
                return json.loads(line[5:])
            except (ValueError, RecursionError):
                return None
    return None


def _status_of(value: object) -> int:
    if isinstance(value, str):
        value = int(value) if re.fullmatch(r"[45]\d\d", value) else STATUS_BY_TYPE.get(_letters(value), 0)
    is_status = isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599
    return int(str(value)) if is_status else 0


def _letters(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalpha())


def _nodes(error: object) -> list[Mapping[str, Any]]:
    """Return every object of an error, the outermost first."""
    found: list[Mapping[str, Any]] = []
    level: list[object] = [error]
    for _ in range(DEPTH_MAX):
        inner: list[object] = []
        for value in level:
            value = _opened(value)
            if isinstance(value, Mapping):
                found.append(value)
                inner += [value[name] for name in _ENVELOPES if value.get(name)]
            elif isinstance(value, list):
                inner += value[:ENTRIES_MAX]
        level = inner[:NODES_MAX]
    return found


def _texts(error: object, depth: int = 0) -> Iterator[str]:
    """Yield the sentences of an error in the order in which a person would read them."""
    error = _opened(error)
    if depth >= DEPTH_MAX:
        return
    if isinstance(error, str):
        yield error
    elif isinstance(error, list):
        for entry in error[:ENTRIES_MAX]:
            yield from _texts(entry, depth + 1)
    elif isinstance(error, Mapping):
        place = _place(error.get("loc"))
        for name in _TEXTS:
            if isinstance(text := _opened(error.get(name)), str):
                yield f"{place}: {text}" if place else text
        for name in _ENVELOPES:
            if name not in _TEXTS or not isinstance(_opened(error.get(name)), str):
                yield from _texts(error.get(name), depth + 1)


def _opened(value: object) -> object:
    """Return the JSON inside a text; every other value unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _place(loc: object) -> str:
    """Return the member that a validation error is about, as `body.messages.0`."""
    if not isinstance(loc, list):
        return ""
    return ".".join(str(step) for step in loc[:ENTRIES_MAX] if isinstance(step, str | int))
