"""Background commands of a session. Promises: each ends with its session, or is listed (row E5).

Does not know: turns, permission.
Exports: `jobs.CallJobs`, `listing`, `stored_output`.
"""
