"""File URIs and absolute paths; pure.

A path is what the system takes: absolute, normalized, links not resolved. Only `file:` URIs without a
foreign host have one, and only if it is UTF-8 without NUL. Clients spell one URI in several ways, so
documents are compared by their paths.
"""

from __future__ import annotations

import posixpath
from urllib.parse import quote, unquote_to_bytes, urlsplit


def path_of(uri: str) -> str | None:
    """Return the absolute path of a `file:` URI; None for any other."""
    try:
        parts = urlsplit(uri)
        path = unquote_to_bytes(parts.path).decode("utf-8")
    except ValueError:
        return None
    if parts.scheme.lower() != "file" or parts.netloc.lower() not in ("", "localhost"):
        return None
    if not path.startswith("/") or "\0" in path:
        return None
    return normalize(path)


def is_same_location(one: str, other: str) -> bool:
    """Return whether two URIs name the same location as they are written: `file:///a` and `file:///a/` do."""
    path = path_of(one)
    return one == other or (path is not None and path == path_of(other))


def uri_of(path: str) -> str:
    """Return the `file:` URI of an absolute path."""
    return "file://" + quote(path.encode("utf-8", "surrogateescape"), safe="/")


def normalize(path: str) -> str:
    """Return a path in the one spelling that is compared."""
    return posixpath.normpath("/" + path.lstrip("/") if path.startswith("//") else path)


def quote_path(path: str) -> str:
    """Return a path for the inside of a URI: percent-encoded, with `/` as it is."""
    return quote(path.encode("utf-8", "surrogateescape"), safe="/")
