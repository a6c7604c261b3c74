"""How to drive each framework: one folder per framework, each with `framework.toml` and `adapter.py`."""
