"""Values and decisions: no IO, clock, randomness, async or wire [I11]."""
