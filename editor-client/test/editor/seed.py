"""A long session for a story: its journal, written by the server's own hand and not turn by turn.

`python seed.py PLACE WORKSPACE TURNS` puts it into the state directory of the story's place. Each turn is a prompt and
an answer, so `TURNS` are twice as many messages.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "server"), str(ROOT / "protocol")]

from steadyhand.core.record import Ended, Epoch, ModelName, Record, Session, Title  # noqa: E402 # the path comes first
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
    place, workspace, turns = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    session = place / "state" / "sessions" / ident("long")
    session.mkdir(parents=True, mode=0o700)
    begun, *said = records(workspace.as_uri(), turns)
    first, _, prev = write_lines([begun], 1, FIRST_PREV, "2026-01-02T03:04:05.678Z")
    rest, _, _ = write_lines(said, 2, prev, "2026-01-02T04:05:06.789Z")
    (session / "journal.jsonl").write_bytes(first + rest)


def records(workspace: str, turns: int) -> Iterator[Record]:
    yield Session(ident("long"), "ask", ModelName("practice", "practice"), "0.1", workspace)
    yield Epoch(ident("epoch"), 1, "host", "boot")
    yield Title("A long one", "user")
    for number in range(1, turns + 1):
        turn = f"turn {number}"
        yield prompt(turn, f"say number {number}")
        yield says(turn, ANSWER.format(number=number))
        yield Ended(ident(turn), "done")


if __name__ == "__main__":
    main()
