"""A provider that speaks the Responses API and holds clients to its rules, for `ScriptedProvider(answering=…)`.

It refuses what a real one refuses: an unknown member, a stored conversation, a call without its one output, an output
without its call, an item of an unknown form, and encrypted reasoning that it has not given itself. Each answer begins
with a reasoning item that it encrypts, so a later request must bring that back unchanged or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import attrs

from tests.models.streams import Step, Think, plain, written
from tests.support.scripted_provider import Asked, Scripted

_MEMBERS = {
    "model", "tools", "instructions", "input", "stream", "store", "include", "max_output_tokens", "tool_choice",
}  # fmt: skip
_ITEMS = {
    "message": {"type", "role", "content"},
    "function_call": {"type", "call_id", "name", "arguments"},
    "function_call_output": {"type", "call_id", "output"},
    "reasoning": {"type", "summary", "encrypted_content"},
}


@attrs.define
class FakeResponses:
    """`answers` in order. `forgets`: its own encrypted reasoning is not accepted any more."""

    answers: list[Sequence[Step]]
    forgets: bool = False
    given: list[str] = attrs.field(factory=list)  # encrypted reasoning, in order
    refused: list[str] = attrs.field(factory=list)
    bodies: list[dict[str, Any]] = attrs.field(factory=list)

    def __call__(self, asked: Asked) -> Scripted:
        body = json.loads(asked.body)
        self.bodies.append(body)
        trouble = self._trouble(asked, body)
        if trouble is not None:
            self.refused.append(trouble[1])
            error = {"error": {"message": trouble[1], "type": "invalid_request_error", "code": trouble[0]}}
            return Scripted([json.dumps(error).encode()], 400, {"content-type": "application/json"}, "length")
        self.given.append(f"encrypted-{len(self.given)}")
        stream = plain(written("responses", (Think("Hm."), *self.answers.pop(0))))
        return Scripted([stream.replace(b"Z2VoZWlt", self.given[-1].encode())])

    def _trouble(self, asked: Asked, body: dict[str, Any]) -> tuple[str, str] | None:
        """The code and the message of what is wrong with a request; None: nothing."""
        if asked.target != "/v1/responses" or set(body) - _MEMBERS:
            return "unknown_parameter", f"Unknown parameter in {sorted(body)}"
        if body["store"] is not False or body["include"] != ["reasoning.encrypted_content"]:
            return "invalid_value", "This account stores nothing"
        owed: list[str] = []
        for item in body["input"]:
            if set(item) != _ITEMS.get(item.get("type"), set()):
                return "invalid_value", f"Invalid item {sorted(item)}"
            if item["type"] == "reasoning" and (self.forgets or item["encrypted_content"] not in self.given):
                return "invalid_encrypted_content", "The encrypted content could not be verified"
            if item["type"] == "function_call":
                owed.append(item["call_id"])
            elif item["type"] == "function_call_output":
                if item["call_id"] not in owed:
                    return "invalid_value", f"No tool call found for call_id {item['call_id']}"
                owed.remove(item["call_id"])
            elif owed and item["type"] == "message" and item["role"] == "user":
                return "invalid_value", f"No tool output found for call_id {owed[0]}"
        return ("invalid_value", f"No tool output found for call_id {owed[0]}") if owed else None
