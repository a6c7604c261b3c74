"""Benchmarks of steelyard itself: ratios of two things measured alternately, printed as one table by `make bench`."""
