"""What the TensorFlow adapter relies on; run by the interpreter of its environment."""

MODULES = (
    "update_rules",
    "restart",
    "layers",
    "weight_files",
    "recurrence",
    "embedding",
    "execution",
    "settings",
    "fit",
    "dropout",
    "mistakes",
    "graph_passes",
    "recomputation",
    "accumulation",
)
