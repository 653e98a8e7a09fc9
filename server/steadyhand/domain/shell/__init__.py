"""What a shell would run for a line of text, as far as the text shows it (row G2, cases 115 and 116).

Promises: nothing runs, no file is read, and the time is bounded. Does not know: rules, permission, the workspace.
Exports: `reader.read_shell_line`, the simple commands of a line; `starters.started_by`, the commands that a command
starts; `line.runnable_commands`, both of them together.
"""
