"""The arguments that say what is compared, and how it is measured."""

from steelyard.cli import values
from steelyard.cli.arguments.kinds import flag, several, value
from steelyard.cli.arguments.shared import FOLDERS, INTERPRETERS

# An argument whose name is that of a field of `Options` becomes that option; without a value, the option has its default.
SELECTION = [
    value("study", "STUDY", "a predefined comparison (default first-look), or a .toml file of your own", nargs="?"),
    value(
        "--size", "NAME", "size of the study: P as published, C for two cores, Q quick (default: the largest that fits)"
    ),
    several(
        "-w --workload",
        "NAME[:PRESET]",
        "network, and its size; may be repeated (default: the study's)",
        dest="workloads",
    ),
    several(
        "-f --framework",
        "NAME[@VERSION]",
        "framework to compare; may be repeated (default: the study's)",
        dest="frameworks",
    ),
    several("--mode", "FRAMEWORK=MODE[,MODE]", "execution modes of a framework; may be repeated", dest="modes"),
    several(
        "--knob",
        "[FRAMEWORK.]KNOB=VALUE[,VALUE]",
        "a setting that changes the speed but not the results; may be repeated",
        dest="knobs",
    ),
    several(
        "--accumulate",
        "N[,N]",
        "compute a step's batch in N parts, one after the other, and add their gradients (the knob accumulate)",
        type=values.parts,
        dest="knobs",
    ),
    INTERPRETERS,
    several(
        "--set", "SIZE=VALUE[,VALUE]", "another value of a size that the preset names; may be repeated", dest="set"
    ),
    value(
        "--task",
        "NAME[,NAME]",
        "train (training, default), or compute the forward pass only (inference)",
        type=values.texts,
        dest="tasks",
    ),
    value(
        "--optimizer",
        "NAME[,NAME]",
        "another optimizer of the workload (default: the preset's)",
        type=values.texts,
        dest="optimizers",
    ),
    value(
        "--optimizer-implementation",
        None,
        "the framework's own optimizer (native, default), or the canonical formula written out (reference)",
        choices=("native", "reference"),
    ),
    several(
        "--strategy",
        "NAME:PARTS[@WHERE]",
        "spread the training over devices or processes, such as processes:2, or "
        "single:1 to compare with; @1gbit puts ranks on two hosts with such a link, @2nodes on nodes of a cluster "
        "(experimental); may be repeated; see steelyard list strategies",
        dest="strategies",
    ),
    value("--device", "NAME", "cpu (default), cuda or ascend"),
    value("--precision", "NAME[,NAME]", "float32 (default) or float64", type=values.texts, dest="precisions"),
    value(
        "--threads",
        "N[,N]",
        "threads per framework, or 'default' for each framework's own default (default: one per core)",
        type=values.threads,
    ),
    flag("--deterministic", "use only deterministic algorithms"),
    value(
        "--batch",
        "N[,N]",
        "samples per step or forward pass (default: the preset's)",
        type=values.batches,
        dest="batches",
    ),
    flag("--synthetic", "use random batches even if the preset has a data set"),
    value(
        "--data", "DIR", "folder with data sets in their official layouts; see steelyard list data", type=values.folder
    ),
    value(
        "--weights",
        "[FRAMEWORK:]FILE",
        "a file of trained weights to begin with: .npz or .safetensors by the names of network.py, or a checkpoint of a "
        "framework (.pt, .pth, .bin, .index, .ckpt, .params; default: weights are drawn by the seed)",
        type=values.weights,
    ),
    *FOLDERS,
    value(
        "--train-limit",
        "N[,N]",
        "training samples of the data set that are used (default: all)",
        type=values.samples,
        dest="train_limits",
    ),
    value(
        "--memory-limit",
        "SIZE[,SIZE]",
        "main memory that each measuring process may use, such as 4GB (default: no limit)",
        type=values.texts,
        dest="memory_limits",
    ),
    value(
        "--seed", "N[,N]", "seeds for weights, data order and round order (default 1)", type=values.seeds, dest="seeds"
    ),
]
MEASURING = [
    value(
        "--protocol",
        "NAME",
        "sequential, fixed:10+200, second-epoch, epochs:20, total:20 or another (default: the study's, usually sequential)",
    ),
    value(
        "--threshold",
        "VALUE[,VALUE]",
        "values of the test metric: show when trainings of whole epochs reach them",
        type=values.thresholds,
        dest="thresholds",
    ),
    value("--rounds", "N or LOW-HIGH", "number of rounds: processes per framework (default: the protocol's)"),
    value(
        "--minutes",
        "N",
        "start no new round after this time; 0 means no limit (default: the study's limit)",
        type=values.minutes,
    ),
    value(
        "--profiles",
        "N",
        "after the rounds, profile N processes of each contender: where does its time go? (default: the study's)",
        type=values.profiles,
    ),
    value(
        "--delta",
        "SHARE",
        "treat smaller relative differences as equal (default 0.02, which is 2 %%)",
        type=values.delta,
    ),
    value(
        "--loader-workers",
        "N[,N]",
        "processes of each framework's own data loader (default 0)",
        type=values.loader_workers,
    ),
    flag("--fresh", "measure every cell of a study anew, even if an earlier run has measured it in the same way"),
    flag(
        "--no-certify",
        "measure without certificates; results are marked and get no verdict",
        "store_false",
        dest="certify",
    ),
    flag("--no-guard", "do not repeat rounds during which the machine was disturbed", "store_false", dest="guard"),
    value(
        "--silence",
        "SECONDS",
        "stop a worker that writes no event for this long (default 600)",
        type=values.silence,
        dest="silence_s",
    ),
]


def typed(field: str) -> str:
    """Return the argument of `steelyard run` that sets a field of `Options`."""
    arguments = [*SELECTION, *MEASURING]
    return next(names[-1] for names, more in arguments if more.get("dest", names[-1][2:].replace("-", "_")) == field)
