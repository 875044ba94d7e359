"""Tables, figures, comparison, ablation and audit of runs."""
