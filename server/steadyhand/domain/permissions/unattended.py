"""Variables that keep a command from waiting for a person: no editor, pager, prompt or terminal (case 118).

A command of the agent has no terminal and no input, so an editor or a prompt would block it until its time limit. Each
variable of an editor names a program that fails at once and says why. The user's settings override each of them.
"""

from __future__ import annotations

from collections.abc import Mapping

# It works in a shell, and where a program splits the words itself.
FAILING_EDITOR = (
    "sh -c 'echo \"steadyhand: a command of the agent cannot open an editor; give the text as an option,"
    " such as git commit -m TEXT.\" >&2; exit 1' editor"
)
EDITOR_NAMES = (
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "VISUAL",
    "EDITOR",
    "FCEDIT",
    "HGEDITOR",
    "JJ_EDITOR",
    "KUBE_EDITOR",
    "P4EDITOR",
    "SUDO_EDITOR",
    "SVN_EDITOR",
    "SYSTEMD_EDITOR",
)
PAGER_NAMES = ("PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER", "GH_PAGER", "AWS_PAGER", "BAT_PAGER", "DELTA_PAGER")

UNATTENDED_ENVIRONMENT: Mapping[str, str] = {
    **dict.fromkeys(EDITOR_NAMES, FAILING_EDITOR),
    **dict.fromkeys(PAGER_NAMES, "cat"),
    "DEBIAN_FRONTEND": "noninteractive",
    "GCM_INTERACTIVE": "never",
    "GIT_MERGE_AUTOEDIT": "no",
    "GIT_TERMINAL_PROMPT": "0",
    "PIP_NO_INPUT": "1",
    "SSH_ASKPASS_REQUIRE": "never",
    "TERM": "dumb",
}
"""Added to the environment of every child; a setting `environment.add` of the user wins."""
