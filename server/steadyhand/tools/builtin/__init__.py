"""The built-in tools, one module each: arguments, plan and effect. Promises: `prepare` only reads; `run` changes only
what the evidence names.

Does not know: how the other tools work. Exports: one `Tool` class for each module; `planned_read` and
`planned_no_effect` hold what several plans share.
"""
