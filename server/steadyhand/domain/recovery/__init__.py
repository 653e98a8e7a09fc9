"""Recovery decisions as tables. Promises: exactly one row fits each case; unknown is never read as not run [I3].

Does not know: the disk; it is told what a check found.
Exports: `tables.classify` and `tables.settle`, `postcondition` (how file state compares with evidence), and
`start_order` (which start came later).
"""
