"""`ask_user {question, options?}`: a question to the person; the turn is parked until it is answered.

No answer is said as such: a dismissed question is a result, and never a yes. With nobody there it fails at once.
"""

from __future__ import annotations

import attrs

from steadyhand.core.identity import Arguments, canonical_json
from steadyhand.core.model import ToolOffer
from steadyhand.core.record import EffectClass
from steadyhand.tools.arguments import Fields, Unfit
from steadyhand.tools.aside import PlannedAside
from steadyhand.tools.reading import title_of
from steadyhand.tools.tool import Done, Ground, Refusal, Running, reply_bytes_max

question_chars_max = 4000
options_max = 20
option_chars_max = 200

DISMISSED = (
    "The question was dismissed or not answered. That is no yes and no no: go on only with what does not hang on it,"
    " or stop and say what you need to know."
)
NOBODY = "Nobody is there to be asked. Go on only with what does not hang on the answer, or stop and say what you need."
_CUT = " [the answer is cut here]"


class AskUser:
    """The tool; see `tool.Tool`."""

    name = "ask_user"
    effect: EffectClass = "reads"
    offer = ToolOffer(
        name,
        "Ask the user a question that only they can answer, and wait. Give options where there are a few.",
        canonical_json(
            {
                "type": "object",
                "properties": {
                    "question": {"type": "string"},
                    "options": {"type": "array", "minItems": 1, "maxItems": options_max, "items": {"type": "string"}},
                },
                "required": ["question"],
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, ground: Ground) -> PlannedQuestion | Refusal:
        try:
            fields = Fields(self.name, arguments.value, ("question", "options"))
            question = fields.text("question").strip()
            given = fields.listed("options", options_max) if "options" in fields else ()
            options = tuple(_option(number, one) for number, one in enumerate(given))
            if not question or len(question) > question_chars_max:
                raise Unfit(f"ask_user: the field `question` is empty or longer than {question_chars_max} characters.")
            if len(set(options)) < len(options):
                raise Unfit("ask_user: the field `options` holds the same one twice.")
        except Unfit as unfit:
            return unfit.refusal
        return PlannedQuestion(title_of(self.name, question), question, options)


@attrs.frozen
class PlannedQuestion(PlannedAside):
    question: str
    options: tuple[str, ...]

    async def run(self, running: Running) -> Done:
        came = await running.person.ask(self.question, self.options)
        if not came.asked:
            return Done("failed", NOBODY, "not_answered")
        if came.answer is None:
            return Done("returned", DISMISSED, "dismissed")
        answer = came.answer.encode("utf-8", "replace")
        if len(answer) <= reply_bytes_max:
            return Done("returned", answer.decode("utf-8") or "(an empty answer)")
        kept = answer[: reply_bytes_max - len(_CUT)].decode("utf-8", "ignore")
        return Done("returned", kept + _CUT, bytes=len(answer), truncated=True)


def _option(number: int, member: object) -> str:
    text = " ".join(member.split()) if isinstance(member, str) else ""
    if not text or len(text) > option_chars_max:
        raise Unfit(f"ask_user: options[{number}]: not a text of 1 to {option_chars_max} characters.")
    return text
