"""Certificates: proof that an implementation computes the same function as the reference, and how it was shown."""
