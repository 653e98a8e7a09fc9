"""One feature a module: settings, requests, commands, diagnostics, code actions, code lenses, virtual documents.

Does not know: frames and ids of JSON-RPC, or how sessions work inside.
Exports: one class a module; `lsp.app` builds them.
"""
