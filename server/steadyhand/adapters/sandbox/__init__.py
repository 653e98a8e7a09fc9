"""The kernel's limits on children. Promises: a confined child runs inside them or not at all (rows O1, O2).

Does not know: why a command runs, who allowed it. Exports: `system.SystemSandbox`.
"""
