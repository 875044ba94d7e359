"""Critics: whether answers of models, to a step or throughout an episode, are right."""
