"""Providers behind the port `ports.Model`. Promises: a stream without a finish reason never counts as complete (row
T6).

Does not know: sessions, how tools work. Exports: `catalog.ModelCatalog` (all models), `practice.PracticeModel` (needs
no network).
"""
