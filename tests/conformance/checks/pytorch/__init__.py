"""What the PyTorch adapter relies on; run by the interpreter of its environment."""

MODULES = (
    "update_rules",
    "restart",
    "layers",
    "weight_files",
    "recurrence",
    "embedding",
    "settings",
    "shapes",
    "dropout",
    "strategies",
    "recomputation",
    "accumulation",
)
