"""Put a text into a Markdown code block that the text cannot close."""

from __future__ import annotations


def code_block(text: str, language: str = "") -> str:
    """Return a code block; its fence is longer than any run of backticks in the text."""
    fence = "`" * max(3, _longest_run(text) + 1)
    end = "" if text.endswith("\n") else "\n"
    return f"{fence}{language}\n{text}{end}{fence}"


def _longest_run(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest
