"""What the MXNet adapter relies on; run by the interpreter of its environment."""

MODULES = (
    "update_rules",
    "restart",
    "layers",
    "weight_files",
    "recurrence",
    "embedding",
    "execution",
    "settings",
    "dropout",
    "recomputation",
    "accumulation",
)
