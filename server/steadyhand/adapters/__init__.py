"""The ports over the real system. Promises: what `steadyhand.ports` says, or `OSError`.

Does not know: sessions, tools, the journal, LSP. Exports: `disk`, `processes`, `models`, `clock`, `ids`, `ripgrep`.
"""
