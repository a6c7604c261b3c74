"""What the JAX adapter relies on; run by the interpreter of its environment."""

# In this order: XLA reads its variables once per process, so that settings come first.
MODULES = (
    "settings",
    "update_rules",
    "restart",
    "layers",
    "pools",
    "recurrence",
    "cudnn_lstm",
    "embedding",
    "execution",
    "sharding",
    "dropout",
    "recomputation",
    "accumulation",
)
