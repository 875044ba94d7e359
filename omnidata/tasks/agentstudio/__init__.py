"""AgentStudio: GroundUI, IDM-Single, IDM-Multiple and CriticBench."""
