"""File URIs and paths, as the edge calls them; the rules are in `core.uri`."""

from steadyhand.core.uri import clean, path_of, uri_of

__all__ = ["clean", "path_of", "uri_of"]
