"""What callers ask of sessions: open, list, prompt, delete. Promises: a session that cannot be read fails alone (row
S6).

Does not know: JSON-RPC, or how a turn runs.
Exports: `registry.SessionRegistry`, `prompt_queue`, `resolutions.resolve`, `startup_scan.scan_sessions`,
`slash_commands`, `session_settings`.
"""
