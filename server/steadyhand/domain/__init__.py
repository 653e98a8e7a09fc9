"""Values and decisions. Promises: the same answer for the same arguments, whenever and wherever it runs [I11].

Does not know: files, clocks, randomness, waiting, the wire.
Exports: `errors.Refused` (an expected refusal), `settings.Settings`, and the packages below.
"""
