"""Names that ask in every mode before something is written there, by kind (row G2, case 145).

A change there can make a program run later that nobody allowed, or give orders to an agent. docs/protocol.md,
"Protected names", has the same table. Deliberately absent: what a person starts with a command anyway (Makefile,
package.json, setup.py, tests); following links, which `tools.workspace.paths` does.
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyhand.domain.permissions.name_table import NameKinds, NameTable

PROTECTED_KINDS: NameKinds = {
    "git": ".git/ .gitconfig .gitmodules",
    "environment": ".env* .direnvrc .mise.toml mise.toml .mise/ .rtx.toml .tool-versions",
    "shells": (
        ".bash_aliases .bash_login .bash_logout .bash_profile .bashrc .cshrc .kshrc .login .mkshrc .profile .tcshrc"
        " .zlogin .zlogout .zprofile .zshenv .zshrc config.fish .config/fish/ .inputrc .pam_environment .screenrc"
        " .tmux.conf .xinitrc .xprofile .xsession"
    ),
    "VS Code": ".vscode/ *.code-workspace",
    "editors": (
        ".devcontainer/ .devcontainer.json .idea/ .fleet/ .zed/ .helix/ .kakrc .exrc .vimrc"
        " .gvimrc .lvimrc .local.vimrc .nvimrc .nvim.lua .nvim/ .vim/ .dir-locals.el .dir-locals-2.el .emacs .emacs.d/"
        " .spacemacs *.sublime-project .theia/"
    ),
    "hooks": (
        ".gitattributes .husky/ .githooks/ .lefthook/ lefthook.yml lefthook.yaml .lefthook.yml .lefthook.yaml"
        " .overcommit.yml .pre-commit-config.yaml .pre-commit-config.yml .pre-commit-hooks.yaml .simple-git-hooks.*"
        " .lintstagedrc* lint-staged.config.*"
    ),
    "package managers": (
        ".npmrc .yarnrc .yarnrc.yml .yarn/plugins/ .yarn/releases/ .pnpmfile.cjs .pnp.cjs .pnp.loader.mjs bunfig.toml"
        " pip.conf .pypirc .condarc .cargo/ .bundle/ .gemrc .mvn/ mvnw mvnw.cmd gradle/wrapper/ gradlew gradlew.bat"
        " nuget.config .bazelrc"
    ),
    "interpreters and debuggers": (
        "sitecustomize.py usercustomize.py *.pth .pdbrc .pythonrc .pythonrc.py .ipython/ .gdbinit .lldbinit .irbrc"
        " .pryrc .rprofile .ghci .ocamlinit .psqlrc .sqliterc"
    ),
    "agents": (
        "AGENTS.md AGENTS.override.md CLAUDE.md CLAUDE.local.md GEMINI.md .agents/ .claude/ .codex/ .cursor/"
        " .cursorrules .windsurf/ .windsurfrules .clinerules .clinerules/ .roo/ .roomodes .continue/ .aider.conf.yml"
        " .gemini/ .amazonq/ .kiro/ .junie/ .goosehints .opencode/ opencode.json .mcp.json .steadyhand/"
        " .github/copilot-instructions.md .github/instructions/ .github/prompts/ .github/agents/ .github/chatmodes/"
    ),
    "CI": (
        ".github/workflows/ .github/actions/ .gitlab-ci.yml .gitlab/ .circleci/ .travis.yml azure-pipelines.yml"
        " .azure-pipelines/ Jenkinsfile .drone.yml .woodpecker.yml .woodpecker/ bitbucket-pipelines.yml .buildkite/"
        " appveyor.yml .appveyor.yml .cirrus.yml .forgejo/workflows/ .gitea/workflows/ .builds/ .build.yml .teamcity/"
        " .semaphore/ .ci/"
    ),
}

PROTECTED = NameTable(PROTECTED_KINDS, anywhere=True)
ALWAYS_ASKED_KINDS = frozenset({"git", "environment", "shells", "VS Code"})
"""No allow rule takes a name of these kinds off the list."""
NOT_ATTACHED_KINDS = ALWAYS_ASKED_KINDS
"""What is not attached to a prompt without a question (decision 21)."""


def is_protected_name(name: str) -> bool:
    """Return whether a path with this one name in it asks."""
    return PROTECTED.kind_of((name,)) is not None


def protected_kind(names: Sequence[str]) -> str | None:
    """Return the kind of a path of these names, or None if it is not protected."""
    return PROTECTED.kind_of(names)
