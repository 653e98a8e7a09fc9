"""Child processes and the process table. Promises: children end with this process; survivors are found by their mark
(row E5).

Does not know: why a command runs. Exports: `system.SystemProcesses`.
"""
