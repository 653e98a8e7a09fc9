"""What a reading command may read (row O2).

Landlock has no exception inside a tree, so a folder is listed only if everything in it may be read. The home folder is
not, but git's own configuration in it is.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping

from steadyhand.adapters.programs import is_inside
from steadyhand.adapters.sandbox.places import hidden_places, home_folders
from steadyhand.ports.sandbox import Confinement

SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib*", "/etc", "/opt", "/nix")
GIT_CONFIGURATION = (".gitconfig", ".config/git")
"""In the home folder."""


def readable_places(
    confinement: Confinement, server_environment: Mapping[str, str], child_environment: Mapping[str, str]
) -> list[str]:
    """Return the trees that a reading command may read; all exist."""
    wanted = [path for pattern in SYSTEM_FOLDERS for path in glob.glob(pattern)]
    wanted += [*confinement.folders, *confinement.readable, *confinement.visible]
    wanted += [os.path.join(home, name) for home in home_folders(server_environment) for name in GIT_CONFIGURATION]
    wanted += _program_folders(confinement, server_environment, child_environment)
    return [path for path in dict.fromkeys(os.path.realpath(path) for path in wanted) if os.path.exists(path)]


def _program_folders(
    confinement: Confinement, server_environment: Mapping[str, str], child_environment: Mapping[str, str]
) -> list[str]:
    """The folders of PATH, less those that hold a home folder or something hidden."""
    hidden = hidden_places(server_environment, confinement.hidden)
    closed = [*hidden.folders, *hidden.files, *home_folders(server_environment)]
    folders = [folder for folder in child_environment.get("PATH", "").split(os.pathsep) if os.path.isabs(folder)]
    return [folder for folder in folders if not any(is_inside(place, os.path.realpath(folder)) for place in closed)]
