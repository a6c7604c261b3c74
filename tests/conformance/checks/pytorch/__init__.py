"""What the PyTorch adapter relies on; run by the interpreter of its environment."""

MODULES = (
    "update_rules",
    "restart",
    "layers",
    "recurrence",
    "embedding",
    "settings",
    "shapes",
    "dropout",
    "strategies",
    "recomputation",
    "accumulation",
)
