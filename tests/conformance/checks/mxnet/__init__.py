"""What the MXNet adapter relies on; run by the interpreter of its environment."""

MODULES = (
    "update_rules",
    "restart",
    "layers",
    "recurrence",
    "embedding",
    "execution",
    "settings",
    "dropout",
    "recomputation",
    "accumulation",
)
