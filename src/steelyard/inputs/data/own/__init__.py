"""Data that has no official layout: arrays and texts of the user's own, and what code in the workload's folder makes."""
