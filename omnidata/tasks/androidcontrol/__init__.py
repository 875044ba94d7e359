"""AndroidControl: episodes with a goal, and an instruction for each step."""
