"""The output and classification of commands. Promises: output is bounded; a command counts as read-only only if that is
certain.

Does not know: how processes are started (see `adapters.processes`). Exports: `output_buffer.OutputBuffer`,
`job_output.JobOutput`, `readonly.plan_reading`.
"""
