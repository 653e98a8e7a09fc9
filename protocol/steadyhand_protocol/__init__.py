"""The wire types of Steadyhand: the messages between editor and server beyond standard LSP.

`methods` is the table of methods, commands and errors. The other modules define the values that it names; `wire`
converts them to JSON and back, strictly. Every type is a value without behaviour. This package does no I/O and knows
nothing of the server, pygls or lsprotocol, so other programs can be written against it alone.
"""
