"""Where work is done in parallel: processes of this machine that may die, or a cluster of Ray's."""
