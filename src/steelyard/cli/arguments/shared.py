"""Arguments that several commands have."""

from steelyard.cli import values
from steelyard.cli.arguments.kinds import flag, several, value

QUANTITIES = (
    "step time (default), throughput, first step, time to first step, peak memory, energy, largest batch; cost, with --price; "
    "of an inference latency p50, p95, p99; of whole epochs total time, epoch, first epoch, second epoch, evaluation time; "
    "memory of import, build, first step, warm-up, counted steps, evaluation"
)
PRICE = value(
    "--price",
    "AMOUNT/h",
    "show what steps, samples, epochs and trainings cost at this price of the machine, such as 1.2/h, 1.20EUR/h or '$1.2/h' (a "
    "shell needs the quotes), or of energy, such as 0.30/kWh, which needs a meter; it is in no record",
    type=values.price,
)
HIDE = several(
    "--hide", "WORD", "hide this word as well, such as the name of another machine; may be repeated", default=[]
)
SIGN_OF_LIFE = "where there is none for 30 s, one says that the command goes on"
RUNS = value("--runs", "DIR", "folder that holds the runs")
PLAIN = flag("--plain", f"print plain lines instead of the live view; {SIGN_OF_LIFE}")
WAIT = [
    value(
        "--wait",
        "MINUTES",
        "wait no longer than this for other commands on this machine (default: until it is free)",
        type=values.wait_minutes,
        dest="wait_minutes",
    ),
    flag("--no-wait", "end at once with one sentence if another command uses this machine"),
]
FRAMEWORKS = several(
    "--frameworks", "DIR", "folder with frameworks of your own", type=values.folder, dest="framework_folders"
)
INTERPRETERS = several(
    "--env",
    "NAME=PYTHON",
    "use your own Python interpreter, in which the framework is installed; may be repeated",
    type=values.interpreter,
    dest="external",
)
FOLDERS = [
    several("--workloads", "DIR", "folder with workloads of your own", type=values.folder, dest="workload_folders"),
    FRAMEWORKS,
]
# The title of arguments of commands that run the processes of an earlier run.
ALLOWING = "to allow what the record of a run from somebody else would execute"
