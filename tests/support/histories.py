"""Random histories of a session, piece by piece, for laws about what is folded from them."""

from __future__ import annotations

from typing import TypeAlias

import attrs
from hypothesis import strategies as st

from steadyhand.domain.records.record import Assistant, Folders, Record, Rewind, Settlement, Usage
from tests.support.journals import (
    attempt_id,
    ident,
    intends,
    looked,
    notice,
    prompt,
    proposes,
    ran,
    replies,
    says,
    starts,
    steer,
    taken,
    told,
    verdict,
)

Piece: TypeAlias = "list[Record]"
"""Records that come together. Between two pieces a request may be sent."""


def _cut(turn: str, name: str) -> Assistant:
    """An answer whose stream broke."""
    return Assistant(turn_id=ident(turn), message_id=ident(name), text=f"half of {name}")


def _piece(at: int, turn: str, kind: str) -> tuple[str, Piece]:
    """The turn that runs after a piece of history, and the piece. Ids follow the position, so none appears twice."""
    money = ("USD", "EUR", None)[at % 3]
    one, two, said = f"one {at}", f"two {at}", f"answer {at}"
    pieces: dict[str, list[Record]] = {
        "text": [says(turn, said)],
        "cut": [_cut(turn, said)],
        "rest": [_cut(turn, said), attrs.evolve(_cut(turn, said), text=" rest", finish="stop", goes_on=True)],
        "withdrawn": [attrs.evolve(_cut(turn, said), withdrawn=True), says(turn, f"whole {at}")],
        "write": [proposes(turn, one), *ran(one, turn)],
        "read": [proposes(turn, f"look {at}"), *looked(f"look {at}", turn)],
        "two": [proposes(turn, one, two), *ran(two, turn), *ran(one, turn)],
        "open": [proposes(turn, one), intends(one, turn), starts(one)],
        "lost": [proposes(turn, one), intends(one, turn), starts(one), verdict(one, "unknown_after_restart", turn)],
        "refused": [proposes(turn, one), replies(one, "refused", turn=turn, admitted=False)],
        "notice": [notice(f"notice {at}")],
        "told": [told(f"told {at}", turn)],
        "told later": [told(f"told {at}", turn, after=said), attrs.evolve(says(turn, said), message_id=ident(said))],
        "told in vain": [told(f"told {at}", turn, after=f"never {at}")],
        "told too late": [
            attrs.evolve(says(turn, said), message_id=ident(said)),
            told(f"told {at}", turn, after=said),
        ],
        "told outside": [told(f"told {at}")],
        "folders": [
            Folders(turn_id=ident(turn), folders=(f"file:///{at}",)),
            attrs.evolve(told(f"told {at}", turn), from_="files"),
        ],
        "steered": [proposes(turn, one), steer(f"s {at}", turn), *ran(one, turn), taken(f"s {at}", turn)],
        "steered later": [
            proposes(turn, one),
            *ran(one, turn),
            steer(f"s {at}", turn),
            told(f"told {at}", turn),
            notice(f"notice {at}"),
            taken(f"s {at}", turn),
        ],
        "steer": [steer(f"s {at}", turn)],
        "taken": [taken(f"s {at - 1}", turn)],  # the steer at the position before, if there is one
        "usage": [Usage(turn_id=ident(turn), complete=at % 3 > 0, input=at, output=1, cost="0.1", currency=money)],
        "command": [prompt(f"command {at}", "/help", command=True), says(f"command {at}", said)],
    }
    if kind == "settled":  # the attempt of the call at the position before, if there is one
        settled = Settlement(
            attempt_id=attempt_id(f"one {at - 1}"), call_id=ident(f"one {at - 1}"), settled="waived", by="user"
        )
        return turn, [settled]
    if kind in ("revise", "revise told"):
        user = attrs.evolve(prompt(f"turn {at}", f"text {at}"), replaces=ident(turn), epoch=ident(f"epoch {at}"))
        about = [attrs.evolve(told(f"told {at}", f"turn {at}"), from_="files")]
        return f"turn {at}", [user, *(about if kind == "revise told" else [])]
    if kind == "rewind":
        own = prompt(f"rewind {at}", "rewind", command=True)
        back = Rewind(turn_id=own.turn_id, target=ident(turn), what="both", epoch=ident(f"epoch {at}"))
        next_prompt = prompt(f"turn {at}", f"text {at}")
        return f"turn {at}", [own, back, attrs.evolve(told(f"told {at}"), from_="files"), next_prompt]
    if kind == "prompt":
        return f"turn {at}", [prompt(f"turn {at}", f"text {at}")]
    if kind == "again":
        return f"turn {at}", [attrs.evolve(prompt(f"turn {at}", f"text {at}"), again=ident(turn))]
    return turn, pieces[kind]


KINDS = (
    *("prompt", "again", "text", "cut", "rest", "withdrawn", "write", "read", "two", "open", "lost", "settled"),
    *("refused", "notice", "usage", "command"),
    *("told", "told later", "told in vain", "told too late", "told outside"),
    *("revise", "revise told", "rewind", "folders"),
    *("steered", "steered later", "steer", "taken"),
)


@st.composite
def histories(draw: st.DrawFn) -> list[Piece]:
    """Histories of one session that begin with a prompt."""
    turn = "turn"
    found: list[Piece] = [[prompt("turn", "go")]]
    for at, kind in enumerate(draw(st.lists(st.sampled_from(KINDS), max_size=20))):
        turn, piece = _piece(at, turn, kind)
        found.append(piece)
    return found
