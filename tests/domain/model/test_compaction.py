"""What goes to the model after a compaction, where one can be cut, and what its first message says (rows K1, K4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.ledger.compaction import NOTHING_CUT
from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.ledger.state import TranscriptEntry
from steadyhand.domain.model.compaction import cut_place, messages_before, messages_behind, omittable_calls
from steadyhand.domain.model.first_message import BY_MODEL, END, HEAD, first_message
from steadyhand.domain.model.growing_transcript import GrowingTranscript
from steadyhand.domain.model.messages import OutMessage, ReplyMessage, UserMessage
from steadyhand.domain.model.readings import fold_readings
from steadyhand.domain.model.token_estimate import BYTES_PER_TOKEN
from steadyhand.domain.model.transcript import OMITTED_REPLY, missing_replies, outgoing_messages, validate
from steadyhand.domain.model.usage import known_input_tokens, usage_view
from steadyhand.domain.model.view_text import pieces_of
from steadyhand.domain.records.prompt import FileAttachment
from steadyhand.domain.records.record import (
    Compaction,
    CompactionCut,
    Record,
    Rewind,
    Settlement,
    Shown,
    SizeAfter,
    SizeBefore,
    Stamped,
    Told,
    Usage,
)
from steadyhand.domain.views.sentences import unknown_reply
from tests.support.histories import Piece, histories
from tests.support.journals import (
    allows,
    attempt_id,
    begun,
    ends,
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
    told,
    verdict,
)


class Journal:
    """A ledger whose records have their places in a journal."""

    def __init__(self, *records: Record) -> None:
        self.ledger = Ledger()
        self.records: list[Record] = []
        self.add(*begun(), *records)

    def add(self, *records: Record) -> None:
        for record in records:
            self.records.append(record)
            seq = len(self.records)
            self.ledger.apply(Stamped(seq=seq, at="2026-01-02T03:04:05.678Z", sum=f"{seq:08x}", record=record))

    def compact(self, place: int | None = None, name: str = "compaction", text: str = "Summary.") -> Compaction:
        """Record a compaction, as the session does; None: at the last place where that can be."""
        where = cut_place(self.ledger, None) if place is None else place
        last = self.ledger.said[where - 1]
        record = compaction(name, CompactionCut(seq=last.seq, sum=last.sum), text)
        self.add(record)
        return record

    def sent(self) -> tuple[OutMessage, ...]:
        return outgoing_messages(self.ledger)


def compaction(name: str, cut: CompactionCut, text: str = "Summary.", omitted: Sequence[str] = ()) -> Compaction:
    return Compaction(
        message_id=ident(name),
        turn_id=ident("turn"),
        epoch=ident("epoch 1"),
        cut=cut,
        text=text,
        automatic=False,
        before=SizeBefore(messages=9, context_tokens=99),
        after=SizeAfter(messages=1),
        omitted=tuple(omitted),
    )


def texts(messages: Iterable[OutMessage]) -> list[str]:
    return [message.text for message in messages]


def left_unknown(call: str) -> list[Record]:
    """A write in the turn "one" that a kill cut off."""
    return [intends(call, "one"), starts(call), verdict(call, "unknown_after_restart", "one")]


TWO_TURNS = (prompt("one", "first"), says("one", "1"), prompt("two", "second"), says("two", "2"))


# What is sent.


def test_compaction_stands_in_the_place_of_what_was_before_its_cut() -> None:
    """K4: the message goes out first; what is recorded later follows it, and the chat keeps everything."""
    journal = Journal(*TWO_TURNS)
    journal.compact()
    journal.add(prompt("three", "third"))
    assert texts(journal.sent()) == ["Summary.", "third"]
    assert len(journal.ledger.said) == 6


def test_compaction_keeps_what_came_while_it_was_made() -> None:
    """K1, K4, case 88: the cut was made at the second message; the two that were appended meanwhile are kept."""
    journal = Journal(*TWO_TURNS)
    journal.compact(place=2)
    assert texts(journal.sent()) == ["Summary.", "second", "2"]


def test_later_compaction_replaces_the_earlier_one() -> None:
    """K4: only the latest goes out."""
    journal = Journal(*TWO_TURNS)
    journal.compact(place=2)
    journal.compact(text="Later.")
    assert texts(journal.sent()) == ["Later."]


@pytest.mark.parametrize(("target", "expected"), [("one", []), ("two", []), ("three", ["Summary."])])
def test_rewind_to_before_the_cut_makes_a_compaction_void(target: str, expected: list[str]) -> None:
    """K4, G4: to after the cut it stays, though it was recorded in a turn that is taken back. An undo brings it
    back.
    """
    journal = Journal(*TWO_TURNS, prompt("three", "third"))
    journal.compact(place=4)
    journal.add(says("three", "3"))
    back = Rewind(turn_id=ident("back"), target=ident(target), what="both", epoch=ident("epoch 2"))
    journal.add(prompt("back", "rewind", command=True), back)
    before = {"one": [], "two": ["first", "1"], "three": []}[target]
    assert texts(journal.sent()) == before + expected
    undo = Rewind(turn_id=ident("undo"), target=ident("back"), what="both", epoch=ident("epoch 3"))
    journal.add(prompt("undo", "rewind", command=True), undo)
    assert texts(journal.sent()) == ["Summary.", "third", "3"]


def test_revise_of_a_turn_before_the_cut_makes_a_compaction_void() -> None:
    """K4, S8: the other prompt follows what was before the revised one, and no summary."""
    journal = Journal(*TWO_TURNS)
    journal.compact()
    journal.add(attrs.evolve(prompt("new", "other"), replaces=ident("two"), epoch=ident("epoch 2")))
    assert texts(journal.sent()) == ["first", "1", "other"]
    journal = Journal(*TWO_TURNS, prompt("three", "third"))
    journal.compact(place=4)
    journal.add(attrs.evolve(prompt("new", "other"), replaces=ident("three"), epoch=ident("epoch 2")))
    assert texts(journal.sent()) == ["Summary.", "other"]


def test_compaction_whose_cut_is_damaged_counts_no_more() -> None:
    """K4, [I3]: the whole history goes out, because nobody knows what the summary stands for."""
    journal = Journal(*TWO_TURNS)
    journal.add(compaction("lost", CompactionCut(seq=5, sum="ffffffff")))
    assert texts(journal.sent()) == ["first", "1", "second", "2"]


def test_outputs_that_a_compaction_names_are_left_out() -> None:
    """K4, T5: the same words each time; what is unknown or short is not left out, nor its state changed."""
    long = "x" * 500
    journal = Journal(
        prompt("one", "first"),
        proposes("one", "look a", "look b", "lost"),
        *looked("look a", "one", long),
        *looked("look b", "one", "short"),
        *left_unknown("lost"),
        proposes("one", "look c"),
        *looked("look c", "one", long),
    )
    journal.add(*missing_replies(journal.ledger))
    old, every = omittable_calls(journal.ledger, False), omittable_calls(journal.ledger, True)
    assert (old, every) == ((ident("look a"),), (ident("look a"), ident("look c")))
    journal.add(compaction("out", NOTHING_CUT, "", old))
    shown = [message.text for message in journal.sent() if isinstance(message, ReplyMessage)]
    assert shown[:2] == [OMITTED_REPLY, "short"]
    assert shown[2].startswith("The outcome of this call is unknown")
    assert shown[3] == long
    assert omittable_calls(journal.ledger, True) == (ident("look c"),)
    journal.add(compaction("more", NOTHING_CUT, "", every[1:]))
    again = [message.text for message in journal.sent() if isinstance(message, ReplyMessage)]
    assert again == [*shown[:3], OMITTED_REPLY]


def test_what_a_compaction_removed_is_not_known_of_files_any_more() -> None:
    """V3, K4: neither a reading before the cut nor one whose output is left out counts."""
    shown = (Shown(path="/a", digest="d", from_=1, to=1, whole=True),)

    def read(name: str, turn: str) -> list[Record]:
        return [intends(name, turn, "reads"), attrs.evolve(replies(name, turn=turn), shown=shown)]

    journal = Journal(prompt("one"), proposes("one", "look a"), *read("look a", "one"), says("one", "1"))
    journal.add(prompt("two"), proposes("two", "next"))
    assert "/a" in fold_readings(journal.ledger, ident("next")).files
    journal.compact(place=3)
    assert "/a" not in fold_readings(journal.ledger, ident("next")).files
    journal = Journal(prompt("one"), proposes("one", "look a"), *read("look a", "one"), says("one", "1"))
    journal.add(compaction("out", NOTHING_CUT, "", [ident("look a")]), prompt("two"), proposes("two", "next"))
    assert "/a" not in fold_readings(journal.ledger, ident("next")).files


def test_usage_of_a_summary_is_counted_apart() -> None:
    """K4, U1: it is billed, and says nothing of how full the window is; nor does a count from before a compaction."""
    used = Usage(turn_id=ident("two"), complete=True, input=10, output=5, context=15)
    own = attrs.evolve(used, model=Ledger().model)
    journal = Journal(*TWO_TURNS, own, attrs.evolve(own, input=100, output=7, context=107, auxiliary=True))
    view = usage_view(journal.ledger)
    assert view.auxiliary is not None
    assert attrs.astuple(view.auxiliary) == (1, 100, 7)
    assert (view.billed.input, view.billed.output, view.context) == (110, 12, 15)
    assert known_input_tokens(journal.ledger, journal.sent()) == (10, 3)
    journal.compact()
    assert known_input_tokens(journal.ledger, journal.sent()) == (None, None)


# Where it is cut.


def test_cut_is_behind_everything_where_nothing_runs() -> None:
    """K4: all of an idle session can be summarised."""
    journal = Journal(*TWO_TURNS)
    assert cut_place(journal.ledger, None) == 4


def test_cut_is_before_the_prompt_that_is_answered() -> None:
    """K4: also before the one that is sent again."""
    journal = Journal(*TWO_TURNS, attrs.evolve(prompt("again", "second"), again=ident("two")))
    assert cut_place(journal.ledger, ident("two")) == 2
    assert cut_place(journal.ledger, ident("again")) == 2


def test_cut_is_before_an_open_call() -> None:
    """K1, K4, case 7: a kept reply has its call, and a kept call its reply."""
    journal = Journal(*TWO_TURNS, prompt("three"), proposes("three", "one"), intends("one", "three"))
    assert cut_place(journal.ledger, None) == 5


@pytest.mark.parametrize(
    ("records", "place"),
    [
        ([notice("n")], 4),
        ([told("t")], 4),
        ([told("t", "two")], 4),
        ([notice("n"), prompt("three"), says("three", "3")], 7),
        ([told("t", "two"), prompt("three"), says("three", "3")], 7),
        ([prompt("three"), told("t", "three", after="answer 3"), says("three", "3")], 5),
    ],
)
def test_cut_is_not_behind_a_message_that_has_not_gone_out(records: list[Record], place: int) -> None:
    """K4, G15: a notice goes out with the next prompt, a stored message of a turn with its next request."""
    assert cut_place(Journal(*TWO_TURNS, *records).ledger, None) == place


def test_cut_before_a_kept_prompt_keeps_the_notice_that_goes_out_with_it() -> None:
    """K4: the notice stands directly before the prompt of the running turn."""
    journal = Journal(*TWO_TURNS, notice("n"), prompt("three", "third"))
    place = cut_place(journal.ledger, ident("three"))
    journal.compact(place)
    assert texts(journal.sent()) == ["Summary.", "[Notice] n", "third"]


def test_cut_before_an_open_call_keeps_the_notice_that_goes_out_behind_it() -> None:
    """K4: the notice waits for the prompt behind the call, so it stays on the side of that prompt."""
    journal = Journal(*TWO_TURNS, notice("n"), proposes("two", "one"), intends("one", "two"), starts("one"))
    journal.add(prompt("three", "third"), says("three", "3"))
    assert cut_place(journal.ledger, None) == 4


@given(histories(), st.data())
def test_compacted_history_is_sound_and_only_grows(history: list[Piece], data: st.DataObject) -> None:
    """K1, T1, T5, P4, cases 7, 8, 88: cut anywhere that it can be, any history stays valid, is the same for a session
    that made it step by step, loses nothing behind the cut, and is the same from the journal's records alone."""
    journal, kept = Journal(), GrowingTranscript()
    for piece in history:
        journal.add(*piece)
        if not data.draw(st.booleans()):
            continue
        journal.add(*kept.missing_replies(journal.ledger))
        if data.draw(st.booleans()):
            start = journal.ledger.standing.place
            place = cut_place(journal.ledger, None)
            if place > start:
                behind, before = messages_behind(journal.ledger, place), messages_before(journal.ledger, place)
                assert [*before, *behind] == [*journal.sent()]
                journal.compact(place, name=f"compaction {len(journal.records)}")
                assert journal.sent()[1:] == behind
        sent = journal.sent()
        validate(sent)
        assert kept.outgoing_messages(journal.ledger) == sent
    journal.add(*missing_replies(journal.ledger))
    again = Journal()
    again.add(*journal.records[2:])
    assert again.sent() == journal.sent()


@given(histories())
def test_every_cut_leaves_its_messages_to_one_side(history: list[Piece]) -> None:
    """K4, cases 7, 8: at each place that may be chosen the two parts are the whole, and both are valid alone."""
    journal = Journal(*(record for piece in history for record in piece))
    journal.add(*missing_replies(journal.ledger))
    for turn in [None, *journal.ledger.turns]:
        place = cut_place(journal.ledger, turn)
        before, behind = messages_before(journal.ledger, place), messages_behind(journal.ledger, place)
        assert [*before, *behind] == [*journal.sent()]
        validate(before)
        validate(behind)


# The first message.


def message_of(journal: Journal, window: int | None = 100_000, summary: str = "All is well.") -> str:
    said: Sequence[TranscriptEntry] = journal.ledger.said
    return first_message(journal.ledger, tuple(said), None, window, summary)


def rich() -> Journal:
    """A session with something for each part of the message."""
    plan = '{"items": [{"text": "write it", "state": "done"}, {"text": "test it", "state": "doing"}]}'
    given = attrs.evolve(prompt("one", "first\nof two lines"), attachments=(FileAttachment("notes.md"),))
    journal = Journal(
        given,
        attrs.evolve(told("Follow the rules."), from_="instructions"),
        proposes("one", "written", "lost", "settled"),
        *ran("written", "one"),
        *left_unknown("lost"),
        *left_unknown("settled"),
        Settlement(attempt_id=attempt_id("settled"), call_id=ident("settled"), settled="waived", by="user"),
        proposes("one", "plan", tool="todo", arguments=plan),
        intends("plan", "one", "reads", tool="todo"),
        replies("plan", turn="one"),
        says("one", "done"),
        prompt("two", "second"),
        says("two", "done"),
        prompt("help", "/help", command=True),
    )
    journal.add(*missing_replies(journal.ledger))
    return journal


def test_first_message_says_what_the_journal_knows_word_for_word() -> None:
    """K4: every part of it in its order, and the summary last but one."""
    journal = rich()
    lost = journal.ledger.attempts[attempt_id("lost")]
    assert message_of(journal) == "\n\n".join(
        [
            HEAD,
            "What was told about the workspace:\n[1 of 1]\nFollow the rules.",
            "Messages of the user, newest first:\n[1 of 2]\nsecond\n[2 of 2]\nfirst\nof two lines",
            f"Effects whose outcome is unknown:\n- write_file lost.txt: {unknown_reply(lost)}",
            "Effects that were settled:\n- The uncertain call “write_file settled.txt” is settled: unknown, waived by"
            f" the user. Its attempt is {attempt_id('settled')}.",
            "The plan:\n- done: write it\n- doing: test it",
            "Files changed so far:\n- written.txt: modified, 3 bytes",
            "Attachments so far:\n- notes.md",
            f"{BY_MODEL}\nAll is well.",
            END,
        ]
    )
    assert attempt_id("lost") in message_of(journal)


def test_file_that_has_its_first_content_again_is_no_changed_file() -> None:
    """K4, G4: a change that was taken back is not stated below the words that the journal is right."""
    journal = Journal(prompt("one"), proposes("one", "a", "b"), *ran("a", "one"), *ran("b", "one"), says("one", "done"))
    end = ends("a", turn="one")
    (change,) = end.files
    back = attrs.evolve(change, before=change.after, after=change.before)
    journal.add(prompt("two"), proposes("two", "back"), intends("back", "two"), allows("back"), starts("back"))
    journal.add(attrs.evolve(ends("back", turn="two"), files=(back,)), replies("back", turn="two"), says("two", "done"))
    text = message_of(journal)
    assert "- b.txt: modified" in text
    assert "a.txt: modified" not in text


def test_summary_that_states_a_falsehood_is_contradicted_by_the_lines_above() -> None:
    """K4: what the model writes stands below its heading, and what the journal knows stands above it."""
    text = message_of(rich(), summary="written.txt was deleted, and lost.txt was certainly written.")
    above, _, below = text.partition(BY_MODEL)
    assert "- written.txt: modified, 3 bytes" in above
    assert "The outcome of this call is unknown" in above
    assert below.endswith(END)


def test_effect_settled_long_ago_is_not_listed() -> None:
    """K4: those of the last 5 turns are."""
    journal = rich()
    for turn in range(3):
        journal.add(prompt(f"later {turn}"), says(f"later {turn}", "done"))
    assert "Effects that were settled" in message_of(journal)
    journal.add(prompt("sixth"), says("sixth", "done"))
    assert "Effects that were settled" not in message_of(journal)


@given(
    st.lists(st.integers(1, 9000), max_size=6),
    st.integers(0, 30_000),
    st.sampled_from(["x", "ü", "🌍", "\n", "\ud83d"]),
    st.integers(1_024, 60_000),
    st.booleans(),
)
def test_first_message_stays_within_its_share_of_the_window(
    prompts: list[int], summary: int, letter: str, window: int, is_rich: bool
) -> None:
    """K4, [I13]: at most 40 % of the window; the person's messages at most 20 %; the head and the end always stand."""
    journal = rich() if is_rich else Journal()
    for number, length in enumerate(prompts):
        journal.add(prompt(f"p {number}", f"p{letter * length}"))
    made = message_of(journal, window, letter * summary)
    size = len(made.encode("utf-8", "surrogatepass"))
    assert size <= window * 0.4 * BYTES_PER_TOKEN
    assert made.startswith(HEAD)
    assert made.endswith(END)
    person = made.partition("Messages of the user, newest first:")[2].partition("\n\nEffects")[0]
    if is_rich and person:
        assert len(person.encode("utf-8", "surrogatepass")) <= window * 0.2 * BYTES_PER_TOKEN


def test_messages_that_do_not_fit_are_named() -> None:
    """K4: the newest stay whole, the next is cut and says so, the older ones are counted."""
    journal = Journal(*(prompt(f"p {number}", f"{number} " + "x" * 4000) for number in range(9)))
    made = message_of(journal, 20_000)
    assert "[1 of 9]\n8 " in made
    assert "[cut: it has 4002 bytes]" in made
    assert made.count("older messages are left out]") == 1


def test_first_message_of_an_unknown_window_is_bounded() -> None:
    """K4, [I13]: where nobody tells the window, a usual one is assumed."""
    journal = Journal(*(prompt(f"p {number}", "x" * 40_000) for number in range(9)))
    assert len(message_of(journal, None, "y" * 40_000)) <= 32_768 * 0.4 * BYTES_PER_TOKEN


@given(st.text(max_size=400), st.integers(8, 50))
def test_pieces_of_a_text_are_the_text(text: str, bytes_max: int) -> None:
    """K4: nothing is lost between two pieces, and none is too long."""
    pieces = pieces_of(text, bytes_max)
    assert "".join(pieces) == text
    assert all(0 < len(piece.encode()) <= bytes_max for piece in pieces)


def test_prompt_of_the_server_is_no_prompt_of_the_person() -> None:
    """K4, S2: quick questions, slash commands and stored messages are not among the person's messages."""
    quick = attrs.evolve(prompt("q", "quick"), aside=True)
    journal = Journal(prompt("one", "first"), quick, prompt("help", "/help", command=True), told("told"))
    assert "[1 of 1]\nfirst" in message_of(journal)
    assert isinstance(journal.sent()[0], UserMessage)
    assert isinstance(journal.ledger.said[-1].record, Told)
