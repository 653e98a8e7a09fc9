"""The editor as the port `ports.Editor`. Promises: no answer never counts as consent.

Does not know: sessions beyond their views.
Exports: `editor.LspEditor`, `progress.Progress`.
"""
