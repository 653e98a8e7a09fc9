"""What editors and models are shown. Promises: every view is a fold of the ledger; sentences keep their words (row
T2).

Does not know: the wire's spelling, or who is connected.
Exports: view classes in `types`, `notifications`, `questions`, the snapshot, `render` and `sentences`.
"""
