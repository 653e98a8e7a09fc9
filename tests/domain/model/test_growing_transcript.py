"""What a session keeps of its transcript gives the same messages as the whole history (rows T1, P4)."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.model import transcript
from steadyhand.domain.model.growing_transcript import GrowingTranscript
from steadyhand.domain.model.messages import UserMessage
from steadyhand.domain.model.transcript import Invalid, missing_replies, outgoing_messages
from steadyhand.domain.records.identity import Arguments, BadArguments, parse_arguments
from steadyhand.domain.records.record import Assistant, User
from tests.support.histories import Piece, histories
from tests.support.journals import begun, ident, prompt, proposes, ran, says, told

QUICK = UserMessage("quick")


@given(histories(), st.data())
def test_growing_transcript_is_that_of_the_whole_history(history: list[Piece], data: st.DataObject) -> None:
    """T1, T5, T6, G4, G15, S8, case 114: after each piece of any history, where a request may be sent."""
    ledger, kept = Ledger(), GrowingTranscript()
    ledger.apply_unrecorded(begun())
    for piece in history:
        ledger.apply_unrecorded(piece)
        if data.draw(st.booleans()):
            supplied = kept.missing_replies(ledger)
            assert supplied == missing_replies(ledger)
            ledger.apply_unrecorded(supplied)
            assert kept.outgoing_messages(ledger) == outgoing_messages(ledger)
            assert kept.outgoing_messages(ledger, QUICK) == outgoing_messages(ledger, QUICK)


def test_growing_transcript_makes_what_is_closed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Speed: the 60th request reads no more arguments than the 3rd one."""
    parsed: list[str] = []

    def parse(text: str) -> Arguments | BadArguments:
        parsed.append(text)
        return parse_arguments(text)

    monkeypatch.setattr(transcript, "parse_arguments", parse)
    ledger, kept = Ledger(), GrowingTranscript()
    ledger.apply_unrecorded(begun())
    counts: list[int] = []
    for turn in range(60):
        ledger.apply_unrecorded(
            [prompt(f"t {turn}"), proposes(f"t {turn}", f"c {turn}"), *ran(f"c {turn}", f"t {turn}")]
        )
        parsed.clear()
        kept.outgoing_messages(ledger)
        counts.append(len(parsed))
        ledger.apply_unrecorded([says(f"t {turn}", f"done {turn}")])
    assert counts[2:] == [counts[2]] * 58


def test_growing_transcript_finds_a_call_that_stands_twice() -> None:
    """T1: the check of the new messages knows the calls of the earlier ones."""
    ledger, kept = Ledger(), GrowingTranscript()
    ledger.apply_unrecorded([*begun(), prompt("t"), proposes("t", "one"), *ran("one", "t"), says("t", "done")])
    kept.outgoing_messages(ledger)
    ledger.apply_unrecorded([prompt("u")])
    kept.outgoing_messages(ledger)
    ledger.said.append(next(entry for entry in ledger.said if isinstance(entry.record, Assistant)))
    with pytest.raises(Invalid, match="stands twice"):
        kept.outgoing_messages(ledger)


def test_growing_transcript_of_another_history_is_made_anew() -> None:
    """A history that was changed behind its end, as by a rewind, keeps nothing."""
    ledger, kept = Ledger(), GrowingTranscript()
    ledger.apply_unrecorded([*begun(), prompt("t"), says("t", "a"), prompt("u"), says("u", "b"), prompt("v")])
    kept.outgoing_messages(ledger)
    del ledger.said[1:3]
    assert kept.outgoing_messages(ledger) == outgoing_messages(ledger)


def test_message_after_the_request_of_a_revised_prompt_stays_behind_it() -> None:
    """S8, G15: only the message about files directly behind the prompt stands before it; the request had gone out."""
    ledger, kept = Ledger(), GrowingTranscript()
    files = attrs.evolve(told("files", "u"), from_="files")
    ledger.apply_unrecorded([*begun(), prompt("t"), attrs.evolve(prompt("u", "new"), replaces=ident("t")), files])
    kept.outgoing_messages(ledger)
    ledger.apply_unrecorded([told("undone", "u", after="answer"), says("u", "answer")])
    assert isinstance(ledger.said[1].record, User)
    assert kept.outgoing_messages(ledger) == outgoing_messages(ledger)
    ledger.apply_unrecorded([told("later", "u")])
    assert [one.text for one in outgoing_messages(ledger)].index("new") == 1
