"""AndroidWorld: results of agents on a phone."""
