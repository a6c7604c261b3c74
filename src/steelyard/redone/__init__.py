"""The items of documents that the studies redo: which can get a judgement, on which machine, and the documentation's tables."""
