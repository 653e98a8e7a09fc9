"""Start the interpreter once more if its environment would change what this program loads or how it names files.

`PYTHONPATH` can hold modules with the names of ours, and `PYTHONHOME` another standard library (case 127). File names
are bytes; with an 8-bit locale Python would decode and encode them by that locale, not as UTF-8 (case 126). The options
`-E` and `-X utf8` prevent both, and a started interpreter cannot take them on. The environment itself stays unchanged,
because commands of the agent inherit it.
"""

from __future__ import annotations

import os
import sys

VARIABLES = ("PYTHONPATH", "PYTHONHOME")


def restart_with_own_packages(package_file: str) -> None:
    """Replace this process by one with the options that it lacks; return if it lacks none.

    `package_file`: a file of this program. Where it was found through `PYTHONPATH`, that variable is needed and stays
    in force. What was written to `sys.stdout` so far is dropped, because only the protocol may stand there.
    """
    given = tuple(name for name in VARIABLES if os.environ.get(name))
    options = []
    if given and not sys.flags.ignore_environment and not _is_found_by_path(package_file):
        options.append("-E")
        verb = "is set; the server ignores it" if len(given) == 1 else "are set; the server ignores them"
        sys.stderr.write(f"steadyhand: {' and '.join(given)} {verb} and loads its own packages.\n")
        sys.stderr.flush()
    if sys.getfilesystemencoding() != "utf-8":
        options += ["-X", "utf8"]
    if options and sys.executable:
        os.execv(sys.executable, [sys.executable, *options, *sys.orig_argv[1:]])


def _is_found_by_path(package_file: str) -> bool:
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return any(package_file.startswith(os.path.join(os.path.abspath(folder), "")) for folder in folders if folder)
