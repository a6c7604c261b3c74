"""NumPy with a scripted clock: exact numbers in a second on any laptop, and the template for the next adapter."""
