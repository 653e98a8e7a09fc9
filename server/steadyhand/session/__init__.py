"""Sessions: conversation, calls and recovery. Promises: the order prepare, intent, permission, started, run, result
[I1, I2].

Does not know: JSON-RPC, the operating system.
Exports: `service.registry.SessionRegistry` and `service.build_context` to callers; `session.Session` and
`context.SessionContext` to its packages.
"""
