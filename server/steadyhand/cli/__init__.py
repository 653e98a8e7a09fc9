"""The command line: sessions, recovery and jobs without an editor. Promises: the same checks in the same order as the
wire.

Does not know: LSP, adapters. Exports: `arguments.parse_arguments`, `program.CommandLine`.
"""
