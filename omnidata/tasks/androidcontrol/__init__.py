"""AndroidControl: episodes told by a goal or step by step."""
