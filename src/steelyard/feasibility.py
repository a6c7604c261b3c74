"""Which cells of a study, and which of its sizes, this machine can measure; nothing is created."""

from dataclasses import replace
from pathlib import Path

from steelyard import environments, host
from steelyard.catalog import workloads
from steelyard.certificates import capacity
from steelyard.certificates.processes import PROCESSES_AT_ONCE
from steelyard.errors import UserError, named
from steelyard.inputs import case_inputs
from steelyard.inputs.data import training_samples
from steelyard.measure import bandwidth, gemm
from steelyard.plan import estimate, memory, resolve
from steelyard.plan.options import Options
from steelyard.plan.run_plan import Group, RunPlan, Skipped
from steelyard.profiles import quantities as profiled
from steelyard.results import quantities
from steelyard.statistics import scores
from steelyard.statistics.claims import WEAK_SCALING

# A size of a study is chosen without being asked for only if it takes no longer than this.
LONGEST_S = 3600.0
# Quantities that documents are compared with and that no report ranks.
OTHER_QUANTITIES = (*scores.QUANTITIES, WEAK_SCALING, quantities.NODES)


def planned(options: Options) -> tuple[RunPlan, str]:
    """Return the plan of a run, and why it has its size; empty if there was nothing to choose.

    Without a requested size it is the largest that fits this machine and an hour. In a study with sizes, cells that
    cannot be measured here are skipped. UserError: nothing can be measured, an interpreter or a quantity does not exist.
    """
    plan, which = _planned(options)
    _check_interpreters(plan)
    return plan, which


def _planned(options: Options) -> tuple[RunPlan, str]:
    known = workloads.find(options.workload_folders, options.workloads)
    study = resolve.requested_study(options, known)
    for held in study.published:
        known_quantities = dict.fromkeys((*quantities.QUANTITIES, *profiled.QUANTITIES, *OTHER_QUANTITIES))
        named(known_quantities, held.quantity, f"There is no quantity '{held.quantity}'.")
        if held.levels and held.quantity not in profiled.QUANTITIES:
            raise UserError(
                f"{held.entry} is held with 'levels' against {held.quantity}, which is no quantity of profiles. Documents' "
                f"values of it are compared as ratios. Remove 'levels', or choose one of {', '.join(profiled.QUANTITIES)}."
            )
    if not study.sizes:
        plan = resolve.plan(options, known)
        _check_machine(plan)
        return plan, ""
    if options.size:
        return feasible(resolve.plan(options, known)), ""
    reasons: list[str] = []
    *larger, smallest = study.sizes
    for size in larger:
        plan = resolve.plan(replace(options, size=size), known)
        if reason := _obstacle(plan):
            reasons.append(f"{size} {reason}")
        else:
            return plan, _sentence(size, reasons)
    return feasible(resolve.plan(replace(options, size=smallest), known)), _sentence(smallest, reasons)


def known_here() -> estimate.Known:
    """Return what is known of data sets, and of this machine from an earlier run that measured its peak and its bandwidth."""
    threads, machine = host.usable_cores(), host.describe().fingerprint()
    found = estimate.Known(training_samples())
    if peaks := gemm.peaks(machine, threads):
        found = replace(found, core_flops=1e9 * max(peaks.values()) / threads)
    if gbps := bandwidth.known_gbps(machine, threads):
        found = replace(found, bandwidth=1e9 * gbps)
    return found


def check(plan: RunPlan) -> None:
    """Reject a plan that cannot run here: interpreters and data that the user named, device, memory."""
    _check_interpreters(plan)
    _check_machine(plan)


def _check_interpreters(plan: RunPlan) -> None:
    """Reject interpreters that are not there, before anything is begun; those of a cluster's nodes are checked there."""
    if not host.usable_nodes():
        for name, python in plan.options.external.items():
            environments.checked_path(name, Path(python))


def _check_machine(plan: RunPlan) -> None:
    # An interpreter of the user's own may reach accelerators that are not listed here.
    own = plan.options.external
    for device in dict.fromkeys(
        each.case.settings.device for each in plan.variants if each.case.environment not in own
    ):
        if device != "cpu" and not host.accelerators(device):
            raise UserError(
                f"--device {device}: no such device was found on this machine. Check its driver, or use --device cpu."
            )
    memory.check(plan)
    case_inputs.check(plan)


def leaves_half_of_memory(plan: RunPlan) -> bool:
    """Report whether the certificates of a plan need at most half of the free memory, so that others can be made beside them.

    Estimated as if the largest process computed in float64, as references do, and as many of its size ran at once as may.
    """
    largest = max(
        (
            capacity.needed_bytes(
                replace(each.case, settings=replace(each.case.settings, precision="float64")),
                workloads.described(Path(plan.workload_folders[each.case.workload]), each.case.sizes),
            )
            for each in plan.variants
        ),
        default=0,
    )
    at_once = min(PROCESSES_AT_ONCE, host.usable_cores())
    return at_once * largest <= host.available_memory_bytes() / 2


def feasible(plan: RunPlan) -> RunPlan:
    """Return the plan without the groups that cannot run here; they are listed as skipped. UserError: none can."""
    obstacles = {group.name: _obstacle_of(plan, group) for group in plan.groups}
    kept = tuple(group for group in plan.groups if not obstacles[group.name])
    if not kept:
        raise UserError("There is nothing to measure: " + " ".join(dict.fromkeys(obstacles.values())))
    skipped = [
        Skipped(each.group, each.case.environment, plan.title(each.case), obstacles[each.group])
        for each in plan.variants
        if obstacles[each.group]
    ]
    return replace(plan, groups=kept, skipped=(*plan.skipped, *dict.fromkeys(skipped)))


def _obstacle_of(plan: RunPlan, group: Group) -> str:
    try:
        _check_machine(replace(plan, groups=(group,)))
    except UserError as error:
        return str(error)
    return ""


def _obstacle(plan: RunPlan) -> str:
    """Return why a whole size does not fit this machine and an hour; empty if it does."""
    for group in plan.groups:
        if reason := _obstacle_of(plan, group):
            return f"does not fit this machine ({reason.rstrip('.')})"
    found = estimate.estimate(plan, known_here())
    seconds = found["certificates"] + found["rounds"] + found["profiles"] + found["graphs"] + found["exchange"]
    return f"would take about {estimate.in_words(seconds)}" if seconds > LONGEST_S else ""


def _sentence(size: str, reasons: list[str]) -> str:
    because = f", because {'; '.join(reasons)}" if reasons else ", the largest of this study"
    return f"Size {size} is measured{because}. Another can be chosen with --size."
