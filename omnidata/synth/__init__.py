"""Made-up data at scale, for training: `episodes` makes audio-visual episodes."""
