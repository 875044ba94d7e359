"""The run folder, scheduling, resume, scoring."""
