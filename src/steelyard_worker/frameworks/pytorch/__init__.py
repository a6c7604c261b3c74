"""PyTorch: eager and compiled."""
