"""The language server: alone in knowing JSON-RPC and the wire types [I14]."""
