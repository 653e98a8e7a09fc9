"""Protected and secret names by kind, and the rules that narrow or widen them (cases 137 and 145)."""

from __future__ import annotations

import pytest

from steadyhand.domain.permissions.policy import Admit, AskFirst, CallFacts, decide_admission
from steadyhand.domain.permissions.protected_paths import ALWAYS_ASKED_KINDS, PROTECTED_KINDS, protected_kind
from steadyhand.domain.permissions.rules import PermissionRule, PermissionRules, parse_rule
from steadyhand.domain.permissions.secret_names import EXAMPLE_NAMES, SECRET_KINDS, looks_secret
from steadyhand.domain.records.record import Mode, Scope
from steadyhand.tools.registry import SUBJECTS

PROTECTED = [(kind, name) for kind, names in PROTECTED_KINDS.items() for name in names.split()]


def _example(entry: str) -> str:
    """A path that the entry covers."""
    return entry.replace("*", "x") + ("file" if entry.endswith("/") else "")


@pytest.mark.parametrize(("kind", "entry"), PROTECTED)
def test_entry_covers_its_name_at_any_depth_and_in_any_case(kind: str, entry: str) -> None:
    """Case 145: each entry of the table is found."""
    for path in (_example(entry), f"a/b/{_example(entry)}", _example(entry).upper()):
        assert protected_kind(path.split("/")) is not None, path


@pytest.mark.parametrize(
    "path",
    [
        *(".nvim.lua", ".dir-locals.el", ".husky/pre-commit", "AGENTS.md", "sub/AGENTS.md", ".github/workflows/ci.yml"),
        *(".pre-commit-config.yaml", ".npmrc", ".envrc", ".bashrc", ".idea/workspace.xml", "x.code-workspace"),
        *(".claude/settings.json", ".cursor/rules/a.mdc", ".mcp.json", ".gitlab-ci.yml", "Jenkinsfile", ".exrc"),
        *(
            ".devcontainer/devcontainer.json",
            "venv/lib/a.pth",
            "sitecustomize.py",
            ".git/hooks/pre-commit",
            ".cargo/config",
        ),
    ],
)
def test_file_that_runs_code_or_gives_orders_is_protected(path: str) -> None:
    """Case 145: files of editors, hooks, package managers, shells, agents and CI."""
    assert protected_kind(path.split("/")) is not None


@pytest.mark.parametrize(
    "path", ["src/a.py", ".github/CODEOWNERS", "github/workflows/a.yml", "Makefile", "package.json", ".gitignore"]
)
def test_ordinary_file_is_not_protected(path: str) -> None:
    """Case 145: what is written every day is not asked about."""
    assert protected_kind(path.split("/")) is None


@pytest.mark.parametrize("entry", [name for names in SECRET_KINDS.values() for name in names.split()])
def test_secret_entry_covers_its_name(entry: str) -> None:
    """Case 137: each entry of the table is found."""
    assert looks_secret(f"a/{_example(entry)}".split("/"))


def test_example_of_an_environment_file_is_no_secret() -> None:
    """Case 137: such a file is there to be read."""
    assert not any(looks_secret(("a", name)) for name in EXAMPLE_NAMES)


def _facts(tool: str, path: str) -> CallFacts:
    names = path.split("/")
    reads = tool == "read_file"
    protected = looks_secret(names) or (not reads and protected_kind(names) is not None)
    return CallFacts(tool, "reads" if reads else "writes_files", Scope((f"/w/{path}",)), False, protected, None, "/w")


def _rules(allow: tuple[str, ...] = (), ask: tuple[str, ...] = ()) -> PermissionRules:
    def parsed(texts: tuple[str, ...]) -> tuple[PermissionRule, ...]:
        found = [parse_rule(text, SUBJECTS) for text in texts]
        return tuple(one for one in found if isinstance(one, PermissionRule))

    return PermissionRules(allow=parsed(allow), ask=parsed(ask))


NARROWED = [
    ("write_file", "AGENTS.md", "write_file(AGENTS.md)", True),
    ("write_file", "sub/AGENTS.md", "write_file(AGENTS.md)", True),
    ("write_file", ".github/workflows/ci.yml", "write_file(.github/workflows/**)", True),
    ("write_file", ".github/workflows/ci.yml", "write_file(.github/workflows/)", True),
    ("write_file", ".github/workflows/ci.yml", "write_file(.github/**)", False),
    ("write_file", "AGENTS.md", "*(AGENTS.md)", True),
    ("write_file", "AGENTS.md", "*(*.md)", False),
    ("write_file", "AGENTS.md", "write_file", False),
    ("write_file", "AGENTS.md", "write_file(**)", False),
    ("write_file", "AGENTS.md", "edit_file(AGENTS.md)", False),
    ("write_file", "a.pth", "write_file(*.pth)", True),
    ("write_file", ".husky/AGENTS.md", "write_file(.husky/**)", False),
    ("write_file", ".git/config", "write_file(.git/**)", False),
    ("write_file", ".vscode/a", "write_file(.vscode/**)", False),
    ("write_file", ".env", "write_file(.env)", False),
    ("write_file", "id_rsa", "write_file(id_rsa)", True),
    ("read_file", ".env", "read_file(.env)", True),
    ("read_file", "a/key.pem", "read_file(*.pem)", True),
    ("read_file", "a/key.pem", "read_file(a/**)", False),
    ("read_file", ".ssh/config", "read_file(.ssh/**)", True),
]


@pytest.mark.parametrize(("tool", "path", "rule", "allowed"), NARROWED)
@pytest.mark.parametrize("mode", ["edits", "auto"])
def test_allow_rule_takes_a_name_off_only_if_it_names_it(
    tool: str, path: str, rule: str, allowed: bool, mode: Mode
) -> None:
    """Cases 137 and 145: a rule narrows the list on purpose; some kinds ask in every mode, whatever a rule says."""
    found = decide_admission(_facts(tool, path), mode, (), _rules(allow=(rule,)))
    assert type(found) is (Admit if allowed else AskFirst)


@pytest.mark.parametrize("tool", ["write_file", "read_file"])
def test_ask_rule_adds_a_name(tool: str) -> None:
    """Case 145: a rule widens the list."""
    assert isinstance(decide_admission(_facts(tool, "a/Makefile"), "auto", ()), Admit)
    assert isinstance(decide_admission(_facts(tool, "a/Makefile"), "auto", (), _rules(ask=("*(Makefile)",))), AskFirst)


def test_kinds_that_always_ask_exist() -> None:
    """Case 145: a name that is misspelt would protect nothing."""
    assert set(PROTECTED_KINDS) > ALWAYS_ASKED_KINDS
