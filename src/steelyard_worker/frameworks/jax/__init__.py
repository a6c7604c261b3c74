"""JAX: jit-compiled by XLA, or operation by operation."""
