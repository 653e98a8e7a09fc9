"""One owner per session: takes commands one at a time, decides, performs, emits events."""
