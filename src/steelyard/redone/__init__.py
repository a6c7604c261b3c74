"""What the studies redo of the documents: which items can get a word, on which machine, and the tables of the documentation."""
