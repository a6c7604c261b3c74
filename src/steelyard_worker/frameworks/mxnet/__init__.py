"""MXNet 1.9 (Gluon): hybridized and imperative."""
