"""The Language Server Protocol. Promises: every request is answered exactly once; stdout holds protocol messages
alone [I14].

Does not know: how sessions keep their promises, or the operating system.
Exports: `app.App`, which `__main__` runs.
"""
