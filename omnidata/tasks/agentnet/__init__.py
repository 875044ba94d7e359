"""AgentNet and AgentNetBench (OpenCUA): trajectories on desktops."""
