"""What the model may do. Promises: an effect has evidence before it starts, and a check or a verifier after it (rows
W1, W2).

Does not know: sessions, journals, permission, the model.
Exports: `contract` (what a tool is), `registry.TOOLS` (the list), `arguments`, `reply_lines`.
"""
