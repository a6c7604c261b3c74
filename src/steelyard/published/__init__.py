"""Published figures and claims of earlier comparisons as data, and the statements that a study is compared with."""
