"""`ask_user {question, options?}`: ask the user a question; the turn is parked until the answer.

A missing answer is reported as such: a dismissed question is a result, and never a yes. Without a user the call fails
at once.
"""

from __future__ import annotations

from steadyhand.domain.model.messages import ToolOffer
from steadyhand.domain.records.identity import Arguments, canonical_json
from steadyhand.domain.records.record import EffectClass
from steadyhand.tools.arguments import ArgumentFields, InvalidArguments
from steadyhand.tools.builtin.planned_no_effect import PlannedNoEffect
from steadyhand.tools.builtin.planned_read import title_of
from steadyhand.tools.contract import REPLY_BYTES_MAX, CallContext, Refusal, ToolContext, ToolOutcome
from steadyhand_values import frozen

QUESTION_CHARS_MAX = 4000
OPTIONS_MAX = 20
OPTION_CHARS_MAX = 200

DISMISSED = (
    "The user dismissed the question or did not answer. That is neither yes nor no. Continue only with what does not"
    " depend on the answer, or stop and say what you need to know."
)
NO_USER = (
    "There is no user to ask. Continue only with what does not depend on the answer, or stop and say what you need."
)
_CUT = " [the rest of the answer is cut]"


class AskUser:
    """The tool; see `contract.Tool`."""

    name = "ask_user"
    effect: EffectClass = "reads"
    offer = ToolOffer(
        name,
        "Ask the user a question that only they can answer, and wait. Give options if there are only a few answers.",
        canonical_json(
            {
                "type": "object",
                "properties": {
                    "question": {"type": "string"},
                    "options": {"type": "array", "minItems": 1, "maxItems": OPTIONS_MAX, "items": {"type": "string"}},
                },
                "required": ["question"],
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, tool_context: ToolContext) -> PlannedQuestion | Refusal:
        try:
            fields = ArgumentFields(self.name, arguments.value, ("question", "options"))
            question = fields.text("question").strip()
            given = fields.sequence("options", OPTIONS_MAX) if "options" in fields else ()
            options = tuple(_option(number, one) for number, one in enumerate(given))
            if not question or len(question) > QUESTION_CHARS_MAX:
                raise InvalidArguments(
                    f"ask_user: the field `question` is empty or longer than {QUESTION_CHARS_MAX} characters."
                )
            if len(set(options)) < len(options):
                raise InvalidArguments("ask_user: the field `options` contains the same option twice.")
        except InvalidArguments as invalid:
            return invalid.refusal
        return PlannedQuestion(title_of(self.name, question), question, options)


@frozen
class PlannedQuestion(PlannedNoEffect):
    """One call; see `contract.Planned`."""

    question: str
    options: tuple[str, ...]

    async def run(self, running: CallContext) -> ToolOutcome:
        reply = await running.person.ask(self.question, self.options)
        if not reply.was_asked:
            return ToolOutcome("failed", NO_USER, "not_answered")
        if reply.answer is None:
            return ToolOutcome("returned", DISMISSED, "dismissed")
        answer = reply.answer.encode("utf-8", "replace")
        if len(answer) <= REPLY_BYTES_MAX:
            return ToolOutcome("returned", answer.decode("utf-8") or "(an empty answer)")
        head = answer[: REPLY_BYTES_MAX - len(_CUT)].decode("utf-8", "ignore")
        return ToolOutcome("returned", head + _CUT, bytes=len(answer), is_truncated=True)


def _option(number: int, member: object) -> str:
    text = " ".join(member.split()) if isinstance(member, str) else ""
    if not text or len(text) > OPTION_CHARS_MAX:
        raise InvalidArguments(f"ask_user: options[{number}] must be a text of 1 to {OPTION_CHARS_MAX} characters.")
    return text
