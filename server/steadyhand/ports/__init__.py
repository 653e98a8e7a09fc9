"""Interfaces to everything outside the process. Promises: each method's durability and error contract.

An adapter raises `OSError` with its errno if the disk or a child fails. The caller turns that into a recorded result
or a refusal. Only methods that wait for a model, a person or a child process are async.

Does not know: who implements them; `__main__` alone chooses.
Exports: `disk.Disk`, `processes.Processes`, `model.Models` and `Providers`, `editor.Editor`, `system.Clock` and `Ids`.
"""
