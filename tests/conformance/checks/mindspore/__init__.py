"""What the MindSpore adapter relies on; run by the interpreter of its environment."""

# In this order: checks of dropout and recomputation need a oneDNN that has run before in this process.
MODULES = (
    "update_rules",
    "restart",
    "layers",
    "weight_files",
    "recurrence",
    "execution",
    "settings",
    "dropout",
    "recomputation",
    "accumulation",
    "ranks",
)
