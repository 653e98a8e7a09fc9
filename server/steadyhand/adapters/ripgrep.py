"""`ports.TextFilter` by ripgrep, if it is installed: which files may contain a text, faster than reading them.

It gets every file by name and decides nothing else: no ignore files, no configuration, no detection of encodings or of
binary files, and a pattern of bytes. It also looks for a NUL, because the server and not ripgrep reports binary files.
Anything but a plain answer (an older version, an error about one file, too slow) counts as no answer.

The child gets an empty environment and no input, runs in a session of its own and ends within its time. Its file names
are absolute, so it takes none for a flag.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

from steadyhand.adapters.programs import trusted_program
from steadyhand_values import frozen

PROGRAM = "rg" if sys.platform != "win32" else "rg.exe"
ANSWER_EXIT_CODES = {0: "some hold it", 1: "none does"}
"""Any other exit code, or any text on stderr, is no answer."""
_FLAGS = (
    *("--no-config", "--text", "--encoding=none", "--no-mmap", "--no-ignore", "--hidden", "--color=never"),
    *("--files-with-matches", "--null"),
)


@frozen
class Ripgrep:
    """It looks for the program on the PATH of `environment` before each use, so the program may be installed or
    removed.
    """

    environment: Callable[[], Mapping[str, str]]

    def program(self, folders: Sequence[str] = ()) -> str | None:
        """Return its absolute path; None: it is not installed outside these workspace folders."""
        return trusted_program(PROGRAM, self.environment().get("PATH", ""), folders)

    def may_hold(
        self, text: bytes, paths: Sequence[str], time_s: float, folders: Sequence[str] = ()
    ) -> frozenset[str] | None:
        """Return the paths whose files may contain the text; None: no answer."""
        program = self.program(folders)
        if program is None:
            return None
        pattern = r"(?-u)\x00|" + "".join(f"\\x{byte:02x}" for byte in text)
        try:
            ended = subprocess.run(
                [program, *_FLAGS, "-e", pattern, "--", *paths],
                env={},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=max(time_s, 0.0),
                check=False,
                start_new_session=True,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        if ended.returncode not in ANSWER_EXIT_CODES or ended.stderr:
            return None
        return frozenset(os.fsdecode(name) for name in ended.stdout.split(b"\0") if name)
