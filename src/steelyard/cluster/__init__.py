"""A run on the nodes of a cluster. Every node prepares, certifies and measures by itself, and sends its record back as it grows.

Only `engine` talks to Ray. What runs on a node (`agent`, `node_run`) is plain Python.
"""
