"""A run on the nodes of a cluster: each node makes, certifies and measures for itself; the record comes home as it grows.

Only `engine` talks to Ray. What runs on a node (`agent`, `node_run`) is plain Python.
"""
