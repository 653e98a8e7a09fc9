"""What goes to a model and comes back. Promises: each open call has exactly one reply [I16]; history only grows (row
T5).

Does not know: HTTP, providers' formats, waiting.
Exports: `messages`, `transcript.outgoing_messages` and `validate`, attachment text, usage, prices, provider profiles.
"""
