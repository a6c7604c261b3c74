"""NumPy with a scripted clock: exact numbers within a second on any machine, and a template for new adapters."""
