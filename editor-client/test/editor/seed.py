"""Writes the journal of a long session for a scenario, with the server's own code and without running its turns.

`python seed.py STATE_FOLDER WORKSPACE TURNS` puts the session into the state directory below the folder. Each turn is a
prompt and an answer, so the session has twice as many messages as turns.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "server"), str(ROOT / "protocol")]

from steadyhand.domain.records.record import (  # noqa: E402 # the path comes first
    Ended,
    Epoch,
    ModelName,
    Record,
    SessionHeader,
    Title,
)
from steadyhand.journal.format import FIRST_PREV, write_lines  # noqa: E402 # as above
from tests.support.journals import ident, prompt, says  # noqa: E402 # as above

ANSWER = """This is number {number}. It **says** what it did:

- looked at `src/part_{number}.py`
- changed nothing

```python
def part_{number}() -> int:
    return {number}
```
"""


def main() -> None:
    """Writes the journal."""
    state_folder, workspace, turns = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    session = state_folder / "state" / "sessions" / ident("long")
    session.mkdir(parents=True, mode=0o700)
    begun, *others = records(workspace.as_uri(), turns)
    first, _, prev = write_lines([begun], 1, FIRST_PREV, "2026-01-02T03:04:05.678Z")
    rest, _, _ = write_lines(others, 2, prev, "2026-01-02T04:05:06.789Z")
    (session / "journal.jsonl").write_bytes(first + rest)


def records(workspace: str, turns: int) -> Iterator[Record]:
    yield SessionHeader(
        session_id=ident("long"),
        mode="ask",
        model=ModelName(provider="practice", name="practice"),
        created_by="0.1",
        workspace=workspace,
    )
    yield Epoch(epoch=ident("epoch"), pid=1, host="host", boot="boot")
    yield Title(title="A long one", source="user")
    for number in range(1, turns + 1):
        turn = f"turn {number}"
        yield prompt(turn, f"say number {number}")
        yield says(turn, ANSWER.format(number=number))
        yield Ended(turn_id=ident(turn), reason="done")


if __name__ == "__main__":
    main()
