"""What the client sends about itself: capabilities, folders, open documents. Promises: texts follow every didChange.

Does not know: sessions.
Exports: `documents.Documents`, `client_capabilities.Client`, `positions`.
"""
