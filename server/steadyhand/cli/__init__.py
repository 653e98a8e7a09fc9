"""The command line beside serving: the way in and out without an editor."""
