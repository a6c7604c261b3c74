"""One side of a port: a user's own model, unmodified, in its framework's interpreter; it answers requests about its tensors."""
