"""Units, terms and words that several rooms share: numbers as text, and words that depend on the task."""
