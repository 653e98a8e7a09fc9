"""JSON-RPC over stdio. Promises: one answer for each request, bounded messages, exit codes of the LSP.

Does not know: sessions, or what a method does.
Exports: `server.Server`; the other modules are its parts.
"""
