"""Counts the attempts by class, prints them at the end, and bounds the time of the whole suite.

A module of attempts has a `CLASS`.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
MARKDOWN = HERE / "markdown.json"
SUITE_S_MAX = 90
"""Time of the whole suite; more on a machine that is busy with other work, in proportion to its load."""
begun_s = pytest.StashKey[float]()
is_whole = pytest.StashKey[bool]()
counted = pytest.StashKey[tuple[Counter[str], Counter[str]]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[counted] = (Counter(), Counter())
    config.stash[begun_s] = time.monotonic()
    config.stash[is_whole] = False


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Count what was collected: every item with an `attempt` is one."""
    attempts, open_ones = config.stash[counted]
    modules = {item.path for item in items if item.path.parent == HERE}
    config.stash[is_whole] = modules == set(HERE.glob("test_*.py")) and not config.getoption("keyword")
    for item in items:
        callspec = getattr(item, "callspec", None)
        group = getattr(getattr(item, "module", None), "CLASS", None)
        if group is not None and callspec is not None and "attempt" in callspec.params:
            attempts[group] += 1
            open_ones[group] += item.get_closest_marker("xfail") is not None


def time_allowed_s(load: float) -> float:
    """How long the suite may take at this load of the machine."""
    return SUITE_S_MAX * max(1.0, load / (os.cpu_count() or 1))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell a worker's counts to the process that prints them. A run of this suite alone that took too long fails."""
    output: dict[str, object] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["attempts"] = [dict(counter) for counter in session.config.stash[counted]]
        return
    took_s, allowed_s = time.monotonic() - session.config.stash[begun_s], time_allowed_s(os.getloadavg()[0])
    arguments = [Path(argument).resolve() for argument in session.config.args]
    if arguments == [HERE] and session.exitstatus == 0 and took_s > allowed_s:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_line(f"The suite took {took_s:.0f} s; at most {allowed_s:.0f} s are allowed.", red=True)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the counts of a worker; every worker collects the whole suite."""
    told = getattr(node, "workeroutput", {}).get("attempts")
    if told is not None:
        node.config.stash[counted] = (Counter(told[0]), Counter(told[1]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print one line a class, and the sum."""
    attempts, open_ones = config.stash[counted]
    if not attempts:
        return
    attempts["webview Markdown (make client)"] = markdown_attempts()
    terminalreporter.section("attempts")
    for group, count in sorted(attempts.items()):
        still = f", {open_ones[group]} not stopped yet" if open_ones[group] else ""
        terminalreporter.write_line(f"{count:5} {group}{still}")
    terminalreporter.write_line(f"{sum(attempts.values()):5} in all, {sum(open_ones.values())} not stopped yet")


def markdown_attempts() -> int:
    """The attempts of the table that the client's own tests play."""
    return len(json.loads(MARKDOWN.read_text(encoding="utf-8")))
