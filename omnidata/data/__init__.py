"""Applications that make and change datasets."""
