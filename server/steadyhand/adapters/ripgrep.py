"""`ports.TextFilter` by ripgrep, where it is installed: which of some files may hold a text, sooner than by reading.

It is given every file by name and nothing to decide: no ignore files, no configuration, no guessing of encodings, no
binary detection, and a pattern of bytes. It looks for a NUL too, since a file with one is told apart here and not
there. Whatever is not a plain answer (an older version, an error about one file, too slow) is no answer.

The child gets an empty environment and no input, lives in a session of its own and ends within its time; the names it
is given are absolute, so none is taken for a flag.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

import attrs

PROGRAM = "rg" if sys.platform != "win32" else "rg.exe"
answers = {0: "some hold it", 1: "none does"}
"""Exit codes; any other, and any word on stderr, is no answer."""
_FLAGS = (
    *("--no-config", "--text", "--encoding=none", "--no-mmap", "--no-ignore", "--hidden", "--color=never"),
    *("--files-with-matches", "--null"),
)


@attrs.frozen
class Ripgrep:
    """Found on the PATH of `environment` each time it is needed, so it may come and go."""

    environment: Callable[[], Mapping[str, str]]

    @property
    def program(self) -> str | None:
        """Absolute; folders that PATH names relatively are passed over, since they would be a workspace's."""
        for folder in self.environment().get("PATH", "").split(os.pathsep):
            program = os.path.join(folder, PROGRAM)
            if os.path.isabs(folder) and os.path.isfile(program) and os.access(program, os.X_OK):
                return program
        return None

    def may_hold(self, text: bytes, paths: Sequence[str], time_s: float) -> frozenset[str] | None:
        program = self.program
        if program is None:
            return None
        pattern = r"(?-u)\x00|" + "".join(f"\\x{byte:02x}" for byte in text)
        try:
            ended = subprocess.run(
                [program, *_FLAGS, "-e", pattern, "--", *paths],
                env={}, stdin=subprocess.DEVNULL, capture_output=True, timeout=max(time_s, 0.0), check=False,
                start_new_session=True,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return None
        if ended.returncode not in answers or ended.stderr:
            return None
        return frozenset(os.fsdecode(name) for name in ended.stdout.split(b"\0") if name)
