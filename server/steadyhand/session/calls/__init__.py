"""One call from proposal to reply. Promises: the body runs only after *started* is durable [I1], and its result is
kept [I2].

Does not know: the model, or the turn around it.
Exports: `execute.run_call` and `run_prepared`, `replies`, `redo.REDO` (restore and retry), `cancel.stop_turn`.
"""
