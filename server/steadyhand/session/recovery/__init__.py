"""Opening a session and deciding on its uncertain effects. Promises: nothing runs because of reading a journal [I4].

Does not know: turns, prompts, the model.
Exports: `open.open_owned`, `resolve.resolve`, `survivors`, `by_model`.
"""
