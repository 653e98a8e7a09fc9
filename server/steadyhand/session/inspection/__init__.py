"""Comparing an attempt with the present files. Promises: it reads; it never says what happened, only what is there
[I9].

Does not know: decisions that rest on it.
Exports: `file_state` (`check_files`, `clear_and_check`), `inspect`, `verifier.inspect_now`, `versions`.
"""
