"""OSWorld: rollouts of agents on a desktop."""
