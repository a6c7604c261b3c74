"""The speed of the tool itself: ratios measured side by side in one run, printed as one table by `make bench`."""
