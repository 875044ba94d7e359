"""One builder of `datasets` per module, which is how `datasets` finds it."""
