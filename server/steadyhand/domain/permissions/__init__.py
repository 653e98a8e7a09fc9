"""What a call may do. Promises: a workspace's own rules only tighten (row G2).

Does not know: who asks, or how a question is shown.
Exports: `policy.decide_admission`, `rules`, `grants`, protected names, read-only commands,
a child's environment.
"""
