"""What runs inside a framework's environment: standard library, that framework and its NumPy, nothing else."""
