"""Settings of ONNX Runtime: they belong to a session, and are read back from a small one."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import onnx
import onnxruntime
from onnx import TensorProto, helper

from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from steelyard_worker.case import Settings

LEVELS = {
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "none": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
}
SPINNING = "session.intra_op.allow_spinning"
PROVIDERS = ["CPUExecutionProvider"]
ERRORS_ONLY = 3
# Channels of the probe's image: ONNX Runtime's own layout holds blocks of 8 or 16 channels.
CHANNELS = 32


def options(settings: Settings) -> onnxruntime.SessionOptions:
    """Return the options of every session of this process; operators run one after the other, as is the default."""
    found = onnxruntime.SessionOptions()
    found.intra_op_num_threads = settings.threads
    found.inter_op_num_threads = 1
    found.graph_optimization_level = LEVELS[settings.knobs["optimisation"]]
    found.use_deterministic_compute = settings.deterministic
    found.log_severity_level = ERRORS_ONLY
    found.add_session_config_entry(SPINNING, str(int(settings.knobs["spinning"])))
    return found


def check(settings: Settings) -> None:
    """Refuse what ONNX Runtime does not have here."""
    if settings.device != "cpu":
        raise Refusal("unsupported", f"ONNX Runtime was not tried on the device {settings.device!r}; it has cpu.")
    if settings.precision != "float32":
        raise Refusal("unsupported", f"ONNX Runtime has no precision {settings.precision!r} here; it has float32.")
    if not settings.mode.startswith("from-"):
        raise Refusal(
            "unsupported", f"ONNX Runtime has no mode {settings.mode!r}; a mode says who exported the network."
        )


def read_back(settings: Settings) -> dict[str, Any]:
    """Return the settings as a small session has them.

    Threads are counted, and the optimisations are known by the graph that is left of a probe. The mode is no setting of ONNX
    Runtime: it says which file is loaded.
    """
    chosen = options(settings)
    with TemporaryDirectory() as folder:
        optimised = Path(folder) / "optimised.onnx"
        chosen.optimized_model_filepath = str(optimised)
        before = _threads()
        session = onnxruntime.InferenceSession(_probe(), chosen, providers=PROVIDERS)
        started = _threads() - before
        left = onnx.load(optimised).graph.node
    used = session.get_session_options()
    return {
        "mode": settings.mode,
        "device": "cpu" if session.get_providers() == PROVIDERS else "unknown",
        # The calling thread computes as well.
        "threads": started + 1 if before else used.intra_op_num_threads,
        "precision": {"tensor(float)": "float32"}.get(session.get_outputs()[0].type, "unknown"),
        "deterministic": used.use_deterministic_compute,
        "optimisation": _level({node.op_type for node in left}, {node.domain for node in left}),
        "spinning": used.get_session_config_entry(SPINNING) == "1",
    }


def _threads() -> int:
    """Return the threads of this process; 0 where the system does not list them."""
    listed = Path("/proc/self/task")
    return len(list(listed.iterdir())) if listed.is_dir() else 0


def _level(operators: set[str], domains: set[str]) -> str:
    if "Identity" in operators:
        return "none"
    if "com.microsoft.nchwc" in domains:
        return "all"
    return "extended" if "FusedConv" in operators else "basic"


def _probe() -> bytes:
    """Return a network that every level of optimisation changes: an identity, a convolution and its activation."""
    kernel = helper.make_tensor("kernel", TensorProto.FLOAT, (CHANNELS, CHANNELS, 1, 1), [1.0] * CHANNELS * CHANNELS)
    shape = (1, CHANNELS, 4, 4)
    nodes = [
        helper.make_node("Identity", ["image"], ["same"]),
        helper.make_node("Conv", ["same", "kernel"], ["mixed"]),
        helper.make_node("Relu", ["mixed"], ["positive"]),
    ]
    graph = helper.make_graph(
        nodes,
        "probe",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("positive", TensorProto.FLOAT, shape)],
        [kernel],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    found: bytes = model.SerializeToString()
    return found
