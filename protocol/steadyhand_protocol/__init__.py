"""The wire types of Steadyhand: what editor and server say to each other beyond standard LSP.

`methods` holds the table of methods, commands and errors; the other rooms hold the values it names; `wire`
turns them into JSON and back, strictly. Everything here is a value without behaviour. No IO, no knowledge
of the server, of pygls or of lsprotocol: other programs may be written against this package alone.
"""
