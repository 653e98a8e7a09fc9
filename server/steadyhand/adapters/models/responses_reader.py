"""The reader of the Responses API (row P6): items that grow, and one event at the end that names the status.

Each event names its item by `output_index`. An item may come in deltas, whole when it ends, or only in the last event;
each of its texts is read once. A call counts only when the last event has come (row T6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from steadyhand.adapters.models.errors import ProviderErrors
from steadyhand.adapters.models.finish_reasons import closed_arguments, input_text, make_finish
from steadyhand.adapters.models.json_body import Value, text_of
from steadyhand.adapters.models.stream_parser import (
    SurrogateJoiner,
    TooManyCalls,
    UnreadableStream,
    decimal_text,
    object_of,
    replace_surrogates,
    storable_arguments,
    string_of,
    token_count,
)
from steadyhand.domain.model.messages import CallProposed, ProviderError, ReasoningPart, StreamPart, UsagePart
from steadyhand_values import define

ITEMS_MAX = 512  # of one response
ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done")
_TEXT_DELTAS = ("response.output_text.delta", "response.refusal.delta")
_REASONING_DELTAS = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")


@define
class _ItemFragment:
    """One output item that is being assembled."""

    kind: str
    item: dict[str, Any]  # as it began, later as it ended
    pieces: list[str] = attrs.field(factory=list)  # of its text, its reasoning or its arguments

    def text(self) -> str:
        return "".join(self.pieces)


class ResponsesReader:
    """`stream_parser.StreamReader` of the Responses API."""

    def __init__(
        self, errors: ProviderErrors, model: str, origin: str, window: int | None = None, has_cost: bool = False
    ) -> None:
        """`origin`: of the provider, for `sealed`."""
        self.progress_count = 0
        self.is_finished = False
        self.is_closed = False
        self.failure: ProviderError | None = None
        self._errors = errors
        self._model = model
        self._origin = origin
        self._window = window
        self._has_cost = has_cost
        self._text = SurrogateJoiner()
        self._reasoning = SurrogateJoiner()
        self._items: dict[int, _ItemFragment] = {}
        self._index_by_id: dict[str, int] = {}  # of a server that gives items no index
        self._usage: Mapping[str, Any] | None = None
        self._word = ""

    def read_event(self, payload: Mapping[str, Any]) -> list[StreamPart]:
        kind = payload.get("type")
        if kind in ENDS:
            return self._end(object_of(payload.get("response")), str(kind))
        if kind == "response.created":
            self.progress_count += 1
        if not isinstance(kind, str) or not kind.startswith("response."):
            return []  # keep-alives, and events of a later version
        if kind in _TEXT_DELTAS:
            return self._add_text(self._item(payload, "message"), payload.get("delta"))
        if kind in _REASONING_DELTAS:
            return self._add_text(self._item(payload, "reasoning"), payload.get("delta"))
        if kind == "response.reasoning_summary_part.added" and payload.get("summary_index"):
            return self._add_text(self._item(payload, "reasoning"), "\n\n")
        if kind == "response.function_call_arguments.delta":
            self._item(payload, "function_call").pieces.append(string_of(payload.get("delta")))
            self.progress_count += 1
        elif kind == "response.function_call_arguments.done":
            self._set_arguments(self._item(payload, "function_call"), payload.get("arguments"))
        elif kind == "response.output_item.added":
            self._begin(self._index(payload), object_of(payload.get("item")))
        elif kind == "response.output_item.done":
            return self._end_item(self._index(payload), object_of(payload.get("item")))
        return []

    def read_whole(self, payload: Mapping[str, Any]) -> list[StreamPart]:
        if not isinstance(payload.get("output"), list) or not isinstance(payload.get("status"), str):
            raise UnreadableStream("a response")
        return self._end(payload, f"response.{payload['status']}")

    def finish(self) -> list[StreamPart]:
        usage: list[StreamPart] = [] if self._usage is None else [self._usage_part(self._usage)]
        if not self.is_finished or self.failure is not None:
            return usage
        used = [item for _, item in sorted(self._items.items()) if item.kind == "function_call"]
        finish = make_finish(self._word, bool(used))
        if finish.reason == "filtered":
            return [*usage, finish]  # a filtered response proposes no call
        calls: list[StreamPart] = [
            CallProposed(
                replace_surrogates(str(call.item.get("name") or "")),
                closed_arguments(storable_arguments(call.text()), self._word),
                str(call.item.get("call_id") or call.item.get("id") or "") or None,
            )
            for call in used
        ]
        return [*self._seal(), *calls, *usage, finish]

    def _index(self, payload: Mapping[str, Any]) -> int:
        """Return the item's place in the response."""
        index = payload.get("output_index")
        if index is None:
            id = string_of(payload.get("item_id") or object_of(payload.get("item")).get("id"))
            return self._index_by_id.setdefault(id, len(self._index_by_id))
        if not isinstance(index, int) or isinstance(index, bool):
            raise UnreadableStream("an index")
        return index

    def _item(self, payload: Mapping[str, Any], kind: str) -> _ItemFragment:
        """Return the item of an event; one that was not announced begins with it."""
        index = self._index(payload)
        item = self._items.get(index) or self._begin(index, {"type": kind})
        if item.kind != kind:
            raise UnreadableStream("a delta of another kind")
        return item

    def _begin(self, index: int, item: Mapping[str, Any]) -> _ItemFragment:
        if index in self._items:
            raise UnreadableStream("an item that begins twice")
        if len(self._items) >= ITEMS_MAX:
            raise TooManyCalls(ITEMS_MAX)
        self.progress_count += 1
        begun = self._items[index] = _ItemFragment(str(item.get("type")), dict(item))
        return begun

    def _end_item(self, index: int, item: Mapping[str, Any]) -> list[StreamPart]:
        """Take an item that is whole, and return what its deltas did not have."""
        known = self._items.get(index) or self._begin(index, item)
        if known.kind != item.get("type"):
            raise UnreadableStream("an item that changes its kind")
        known.item.update(item)
        if known.kind == "function_call":
            self._set_arguments(known, item.get("arguments"))
        if known.kind == "message":
            return self._add_rest(known, _content_text(item.get("content")))
        if known.kind == "reasoning":
            whole = _content_text(item.get("summary"), "\n\n") or _content_text(item.get("content"))
            return self._add_rest(known, whole)
        return []

    def _end_listed_item(self, index: int, item: Mapping[str, Any]) -> list[StreamPart]:
        """Take an item of the last event's list. The list may leave out items, so an id says more than the place."""
        same = (at for at, known in self._items.items() if item.get("id") and known.item.get("id") == item["id"])
        index = next(same, index)
        known = self._items.get(index)
        if known is not None and known.kind != item.get("type"):
            return []
        return self._end_item(index, item)

    def _add_rest(self, item: _ItemFragment, whole: str) -> list[StreamPart]:
        so_far = item.text()
        return self._add_text(item, whole[len(so_far) :] if whole.startswith(so_far) else "")

    def _add_text(self, item: _ItemFragment, delta: object) -> list[StreamPart]:
        thinks = item.kind == "reasoning"
        parts = (self._reasoning if thinks else self._text).parts(string_of(delta), reasoning=thinks)
        item.pieces += [part.delta for part in parts if hasattr(part, "delta")]
        self.progress_count += bool(parts)
        return parts

    def _set_arguments(self, item: _ItemFragment, arguments: object) -> None:
        """Take the whole arguments; they replace the deltas."""
        whole = string_of(arguments) if isinstance(arguments, str) else input_text(arguments)
        item.pieces = [whole] if whole else item.pieces
        self.progress_count += 1

    def _end(self, response: Mapping[str, Any], kind: str) -> list[StreamPart]:
        """Take the last event: the whole response, its status, and its error."""
        parts: list[StreamPart] = []
        for index, item in enumerate(_list(response.get("output"))):
            parts += self._end_listed_item(index, object_of(item))
        if isinstance(response.get("usage"), Mapping):
            self._usage = response["usage"]
        status = response.get("status")
        word = status if isinstance(status, str) and status else kind.removeprefix("response.")
        if word == "incomplete":
            word = string_of(object_of(response.get("incomplete_details")).get("reason")) or word
        if word in ("in_progress", "queued"):
            return parts  # it has not ended
        self._word = word
        self.progress_count += 1
        self.is_finished = self.is_closed = True
        if response.get("error") or word in ("failed", "cancelled"):
            details = {name: response.get(name) for name in ("error", "incomplete_details")}
            self.failure = self._errors.in_stream(details if any(details.values()) else {"message": f"status {word}"})
        return parts

    def _seal(self) -> list[StreamPart]:
        """Return the encrypted reasoning with the places of texts and calls around it; nothing if there is none."""
        entries: list[Value] = []
        for _, item in sorted(self._items.items()):
            encrypted = item.item.get("encrypted_content")
            if item.kind == "message":
                entries.append(len(item.text()))
            elif item.kind == "function_call":
                entries.append("call")
            elif item.kind == "reasoning" and isinstance(encrypted, str) and encrypted:
                summary = [
                    {"type": "summary_text", "text": replace_surrogates(str(part.get("text") or ""))}
                    for part in _list(item.item.get("summary"))
                    if isinstance(part, Mapping)
                ]
                entries.append({"type": "reasoning", "summary": summary, "encrypted_content": encrypted})
        if not any(isinstance(entry, Mapping) for entry in entries):
            return []
        return [ReasoningPart("", text_of({"origin": self._origin, "model": self._model, "items": entries}))]

    def _usage_part(self, usage: Mapping[str, Any]) -> UsagePart:
        read = token_count(usage, "input_tokens")
        hit = token_count(usage, "input_tokens_details", "cached_tokens")
        miss = max(0, read - hit) if read is not None and hit is not None else None
        billed = decimal_text(usage.get("cost")) if self._has_cost else None
        return UsagePart(read, token_count(usage, "output_tokens"), hit, miss, self._window, None, billed)


def _content_text(parts: object, between: str = "") -> str:
    """Return the text of an item's content parts."""
    if isinstance(parts, str):
        return parts
    found = [
        string_of(part.get("text")) or string_of(part.get("refusal"))
        for part in _list(parts)
        if isinstance(part, Mapping)
    ]
    return replace_surrogates(between.join(found))


def _list(payload: object) -> Sequence[Any]:
    return payload if isinstance(payload, list) else []
