"""What the user does with the changes of a session as a whole: list, keep, undo, rewind.

Promises: no file changes but by a checked attempt, and nothing that somebody else wrote is replaced. Does not know:
JSON-RPC, the loop of a turn. Exports: review, rewind.
"""
