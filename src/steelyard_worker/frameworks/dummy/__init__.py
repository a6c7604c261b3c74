"""A second scripted framework, so that comparisons can be tested: NumPy through einsum."""
