"""Checks of each framework, run by the interpreter of its environment, and golden values that they share."""
