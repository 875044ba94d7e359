"""What users hold, frozen: a redesign may move code, never a number, a prompt or a file."""
