"""How many steps one process should count: the optimum between paying starts and paying steps."""

from math import ceil, sqrt

FEWEST_STEPS = 10
MOST_STEPS = 200


def steps_per_process(start_seconds: float, step_seconds: float, step_noise: float, process_noise: float) -> int:
    """Return n* = ceil(sqrt(c_start / c_step * s_step^2 / s_proc^2)), within [10, 200].

    `start_seconds`: import, build, compile and warm-up; `step_seconds`: one step. `step_noise`: relative sd
    of a step, inflated for autocorrelation (`Summary.relative_sd`); `process_noise`: relative sd from process
    to process (`NoiseFloor.process_sd`). Without process noise more steps always help: 200.
    Source: Kalibera and Jones 2013, "Rigorous benchmarking in reasonable time", optimal repetition counts.
    """
    if not (start_seconds >= 0 and step_seconds > 0 and step_noise >= 0 and process_noise >= 0):
        raise ValueError("Costs and noises cannot be negative, and a step takes time.")
    if process_noise == 0:
        return MOST_STEPS
    best = sqrt(start_seconds / step_seconds) * step_noise / process_noise
    return max(FEWEST_STEPS, min(MOST_STEPS, ceil(min(best, MOST_STEPS))))
