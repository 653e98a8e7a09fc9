"""What the model may do: one tool, one file, each with its effect class and scope."""
