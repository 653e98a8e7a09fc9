"""What one journal line says. Promises: records are additive; a reader passes over what it does not know (row X1).

Does not know: bytes, checksums, files (see `journal`), or what records mean together (see `domain.ledger`).
Exports: the record classes in `record`, and the values they hold in `prompt`, `identity` and `scope`.
"""
