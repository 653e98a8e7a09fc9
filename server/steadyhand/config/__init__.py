"""Settings as values. Promises: an invalid value becomes its default and one sentence; a workspace may only make
permissions stricter.

Does not know: LSP, sessions.
Exports: `settings.read_settings`, `sources`, `prices`.
"""
