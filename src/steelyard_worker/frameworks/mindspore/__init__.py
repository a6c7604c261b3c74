"""MindSpore: graph and PyNative mode."""
