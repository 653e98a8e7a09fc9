"""Which encodings a sample of a file may be in, by charset-normalizer (row W10, rule 7).

Each encoding of the closed list is tried by itself, so that no likely one is left out because another one was found
first. The library is imported at the first use: most sessions never need it, and the server starts faster without it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from steadyhand.domain.text.encodings import ENCODINGS, UTF_8, TextEncoding

if TYPE_CHECKING:
    from charset_normalizer import CharsetMatch

LIBRARY_LOG = "charset_normalizer"


def likely_encodings(sample: bytes) -> Sequence[str]:
    """Return the recorded names of the encodings that the sample is likely in, the likeliest first.

    None are returned if the library is missing or fails: then the file counts as one that nobody can read.
    """
    try:
        found = [(match, encoding) for encoding in ENCODINGS if (match := _match(sample, encoding)) is not None]
    except Exception:
        logging.getLogger(__name__).warning("the encoding of a file could not be detected", exc_info=True)
        return ()
    found.sort(key=lambda pair: (pair[0].chaos, -pair[0].coherence, _RANK.get(pair[1].name, len(_RANK))))
    return tuple(encoding.name for _, encoding in found)


_RANK = {name: rank for rank, name in enumerate(("cp1252", "iso8859-1", "iso8859-15", "cp932", "gb18030", "gbk"))}
"""Of several that are equally likely, the one that most files are in."""


def _match(sample: bytes, encoding: TextEncoding) -> CharsetMatch | None:
    if encoding is UTF_8:
        return None
    import charset_normalizer

    logging.getLogger(LIBRARY_LOG).setLevel(logging.WARNING)
    name = encoding.name.replace("-", "_")
    return charset_normalizer.from_bytes(sample, cp_isolation=[name], preemptive_behaviour=False).best()
