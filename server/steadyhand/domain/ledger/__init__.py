"""The fold of a journal. Promises: folding on gives what folding anew gives (row J1); an attempt ends once (row J14).

Does not know: where records come from, or what a person is shown.
Exports: `ledger.Ledger` and `fold`, the state classes in `state`, the transition table in `attempt_states`.
"""
