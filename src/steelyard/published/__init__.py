"""What was published: figures and claims of earlier comparisons as data, and what a study is held against."""
