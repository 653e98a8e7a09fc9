"""How facts survive: the one file per session, its lines, barriers and load."""
