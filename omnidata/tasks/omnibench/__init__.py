"""OmniBench: task graphs of subtasks, and the trajectories that follow them."""
