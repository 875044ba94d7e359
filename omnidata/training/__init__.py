"""Training data: exports, the way back, and steps for PyTorch."""
