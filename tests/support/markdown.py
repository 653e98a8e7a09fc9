"""Markdown as far as the tests of the documentation need it: headings, their anchors, and the text below them.

Anchors are those that GitHub makes. A heading inside a fenced block is text and no heading.
"""

import re
from collections.abc import Iterator


def unfenced(page: str) -> Iterator[tuple[int, str]]:
    """The lines of a page that stand outside fenced blocks: (number from 1, line)."""
    fenced = False
    for number, line in enumerate(page.split("\n"), start=1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def anchor_of(heading: str) -> str:
    """The anchor of a heading's text: lower case, blanks as `-`, marks and punctuation left out."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain.replace("*", "").strip().lower()).replace(" ", "-")


def sections(page: str) -> dict[str, str]:
    """Anchor → the text between its heading and the next one of any level; equal headings count -1, -2, … on."""
    found: dict[str, str] = {}
    current = ""
    for _, line in unfenced(page):
        heading = re.fullmatch(r"#{1,6} +(.*?)\s*", line)
        if heading is not None:
            current = fresh = anchor_of(heading[1])
            number = 0
            while current in found:
                number += 1
                current = f"{fresh}-{number}"
            found[current] = ""
        elif current:
            found[current] += line + "\n"
    return found


def table_after(page: str, heading: str) -> list[dict[str, str]]:
    """The first Markdown table below a heading, each row as column → cell, without code marks around whole cells."""
    lines = page.split("\n")
    at = next(number for number, line in enumerate(lines) if line.lstrip("# ") == heading and line[:1] == "#")
    rows: list[list[str]] = []
    for line in lines[at + 1 :]:
        if line.startswith("|"):
            rows.append([_bare(cell) for cell in line.strip("|").split("|")])
        elif rows or line.startswith("#"):
            break
    assert len(rows) > 2, f"no table below {heading}"
    return [dict(zip(rows[0], cells, strict=True)) for cells in rows[2:]]


def _bare(cell: str) -> str:
    cell = cell.strip()
    whole = re.fullmatch(r"`([^`]*)`", cell)
    return whole[1] if whole else cell
