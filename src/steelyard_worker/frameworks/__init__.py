"""Adapters: one folder per framework with `framework.toml` and `adapter.py`, and the parts that all adapters share."""
