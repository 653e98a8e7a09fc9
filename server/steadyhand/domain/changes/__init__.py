"""Whose content a file has: the chain of a path over all sessions, and what of it is under review.

Promises: what no attempt of ours explains is never called ours. Does not know: files; the caller says which digest a
path has now. Exports: chain, review, rewind.
"""
