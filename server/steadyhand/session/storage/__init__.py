"""The state directory. Promises: a session folder is whole or not there; its lock dies with its process [I15].

Does not know: what records mean beyond the summary.
Exports: `directory`, `lock.SessionLock`, `summary`, `delete`, `grants.Grants`.
"""
