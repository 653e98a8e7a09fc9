"""The real world behind the ports: disk, model, processes, clock and ids."""
