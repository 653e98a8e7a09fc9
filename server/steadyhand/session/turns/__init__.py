"""One turn: ask the model, run its calls, until it stops. Promises: no request is sent unvalidated (row T1).

Does not know: how one call is run, or which client asked.
Exports: `loop.run_turn`; the other modules are its steps.
"""
