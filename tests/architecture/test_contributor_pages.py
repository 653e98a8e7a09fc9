"""What the pages for contributors name exists: links, paths of the code, make targets; CI and hooks run only our own.

CONTRIBUTING.md names paths as they are below `server/steadyhand`, or from the top level on.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / "server" / "steadyhand"
PAGES = sorted(ROOT.glob("*.md"))
CONTRIBUTING = ROOT / "CONTRIBUTING.md"


def missing_links(page: str, folder: Path) -> list[str]:
    """Links of a page that lead to no file of this repository."""
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page)
    return [link for link in links if not (folder / link).exists()]


def named_paths(page: str) -> list[str]:
    """What stands in code marks and is written as a path of ours: a slash, and no placeholder, glob or sentence."""
    marked = re.findall(r"`([^`\n]+)`", page)
    return [name for name in marked if re.fullmatch(r"[\w.-]+(?:/[\w.-]+)+/?", name)]


def missing_paths(page: str) -> list[str]:
    return [name for name in named_paths(page) if not any((root / name).exists() for root in (ROOT, SERVER))]


def named_targets(page: str) -> set[str]:
    """Each word after `make` in a code mark or a code block, up to the first that is no target."""
    commands = re.findall(r"(?:^|`)make((?: [a-z-]+)+)", page, re.MULTILINE)
    return {word for command in commands for word in command.split()}


def targets_of(makefile: str) -> set[str]:
    return set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_top_level_page_links_lead_to_files(page: Path) -> None:
    """Each link of a page at the top level leads to a file or folder of this repository."""
    assert missing_links(page.read_text(encoding="utf-8"), ROOT) == []


def test_contributing_paths_exist() -> None:
    """Each path that CONTRIBUTING.md names is there."""
    assert missing_paths(CONTRIBUTING.read_text(encoding="utf-8")) == []


def test_contributing_make_targets_exist() -> None:
    """Each `make` target that CONTRIBUTING.md and the pull request template name is in the Makefile, with its help."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    template = (ROOT / ".github" / "PULL_REQUEST_TEMPLATE.md").read_text(encoding="utf-8")
    named = named_targets(CONTRIBUTING.read_text(encoding="utf-8")) | named_targets(template)
    assert {"t", "unit", "quick", "test", "prove"} <= named
    assert named - targets_of(makefile) == set()
    silent = [line for line in makefile.splitlines() if re.match(r"[a-z-]+:(?!=)", line) and "## " not in line]
    assert silent == []


def test_ci_workflow_runs_our_script_and_nothing_else() -> None:
    """The workflow has one step beside the checkout: a build machine and a developer run the same script."""
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert re.findall(r"^ *- (?:run|uses): (.*)$", workflow, re.MULTILINE) == ["actions/checkout@v4", "bash .ci/run"]


def test_commit_hooks_download_nothing() -> None:
    """Each hook runs a make target of ours with the tools of our own environment."""
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.findall(r"repo: (.*)", hooks) == ["local"]
    entries = re.findall(r"entry: (.*)", hooks)
    assert entries
    assert all(entry.startswith("make ") for entry in entries)
    assert hooks.count("language: system") == len(entries)


def test_missing_names_are_found() -> None:
    """A dead link, a path that is not there and a target are recognised as such."""
    assert missing_links("[a](README.md) [b](nowhere.md#x) [c](https://example.org)", ROOT) == ["nowhere.md"]
    page = "`tests/support/tools.py` `domain/nowhere.py` `a/b c` `steadyhand/…` `write_file(src/**)`"
    assert missing_paths(page) == ["domain/nowhere.py"]
    assert named_targets("`make lint quick`\n```\nmake t T=x\n```") == {"lint", "quick", "t"}
