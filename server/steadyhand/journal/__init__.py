"""The append-only journal of a session. Promises: what was acknowledged is durable and in order; a failed append
breaks it [I12].

Does not know: sessions, tools, what records mean.
Exports: `journal.Journal` and `load` (the only writer), `format` (bytes and checksums), `codec` (members),
`torn_start`.
"""
