"""What a process prints, bounded while it runs, and the sentences on what it has printed and left behind.

The launcher looks at the length of the log where it looks for new events.
"""

from steelyard.files.bounded_log import KEPT_BYTES, BoundedLog
from steelyard.measure.processes import LEFT
from steelyard.results.trials import Trial
from steelyard_worker import job_kinds
from steelyard_worker.protocol import Job

# The variable with which libraries log what they compute. Such a log is never shortened, because the part left out may be the one
# that is needed.
ASKED_FOR = "ONEDNN_VERBOSE"
LONGEST_READ_BYTES = 4 * 10**9


class Output:
    """The log of a process of a job."""

    def __init__(self, log: BoundedLog, job: Job) -> None:
        self._log = log
        self._is_read = ASKED_FOR in job.variables or job_kinds.of(job.kind).log_is_read

    def look(self) -> str:
        """Shorten a log that has become too long; return why the process cannot go on, empty: it can."""
        if not self._is_read:
            self._log.bound()
        elif self._log.size > LONGEST_READ_BYTES:
            return (
                f"The process printed more than {LONGEST_READ_BYTES / 1e9:.2g} GB into a log that is read afterwards, and was "
                "stopped."
            )
        return ""

    def end(self) -> str:
        """Shorten the log of a process that has ended; return a sentence about it; empty: it is whole."""
        if self._is_read:
            return ""
        self._log.end()
        if not self._log.left_out:
            return ""
        printed = 2 * KEPT_BYTES + self._log.left_out
        return (
            f"It printed at least {printed / 1e6:,.0f} MB; the log keeps the first and the last {KEPT_BYTES >> 20} MiB."
        )


def left_behind(trial: Trial) -> str:
    """Return a sentence on the processes that those of a trial have left behind; empty: there were none."""
    for warning in trial.warnings:
        if warning["name"] == LEFT:
            count, programs = warning["count"], ", ".join(warning["programs"])
            if count == 1:
                return f"It left 1 process behind ({programs}), which was ended."
            return f"It left {count} processes behind ({programs}), which were ended."
    return ""


def with_more(message: str, sentence: str) -> str:
    """Return a message with a further sentence, if there is one."""
    return f"{message.rstrip('.')}. {sentence}" if sentence else message
