"""Turn options and a study into a plan: its cases, their groups and protocols. Nothing is created or run here."""

from dataclasses import replace
from pathlib import Path

from steelyard.catalog import frameworks, given_weights, workloads
from steelyard.catalog.frameworks import Framework
from steelyard.catalog.workloads import Workload
from steelyard.errors import UserError, nearest
from steelyard.plan import groups, studies
from steelyard.plan.groups import chosen, chosen_environments, joined
from steelyard.plan.options import Options
from steelyard.plan.run_plan import FrameworkFacts, Group, RunPlan
from steelyard.plan.studies import Study
from steelyard.published.gathering import gather
from steelyard_worker.case import INFERENCE

DEFAULT_STUDY = "first-look"


def plan(options: Options, known: dict[str, Workload] | None = None) -> RunPlan:
    """Resolve all names and combine workloads with environments, modes and knobs. UserError: an unknown name.

    A study with sizes has to be given with one of them. `known`: all workloads, if they were read before.
    """
    frameworks.use(options.framework_folders)
    known = known or workloads.find(options.workload_folders, options.workloads)
    study = _study(options, known)
    _check_data(options, study, known)
    environments = [each for cells in study.cells for each in chosen_environments(cells.frameworks)]
    _check_targets(options.modes, options.knobs, environments)
    facts = {name: _facts(frameworks.framework(name)) for name in dict.fromkeys(name for name, _ in environments)}
    found, skipped = groups.groups(study.cells, known, facts)
    planned = [case.environment for group in found for case in group.cases]
    _check_interpreters(options, [*map(joined, environments), *planned])
    if not found:
        reasons = dict.fromkeys(each.reason for each in skipped)
        raise UserError("There is nothing to measure: " + " ".join(reasons))
    options, found = _with_weights(options, found, known)
    folders = {case.workload: str(known[case.workload].folder) for group in found for case in group.cases}
    hashes = {name: frameworks.files_hash(Path(folder)) for name, folder in folders.items()}
    return RunPlan(
        options,
        study,
        tuple(found),
        tuple(dict.fromkeys(skipped)),
        facts,
        folders,
        hashes,
        _user_framework_hashes(),
        gather(study.name, study.published, next(iter(study.sizes), "")),
    )


def here(plan: RunPlan) -> RunPlan:
    """Return a stored plan with the folders of this installation, which may have moved since, or be on another machine."""
    return replace(plan, workload_folders={name: workloads.here(each) for name, each in plan.workload_folders.items()})


def changed_files(plan: RunPlan) -> list[str]:
    """Return the workloads and the user's frameworks of a stored plan whose files have changed, are gone or are new."""
    workloads_now = {name: frameworks.files_hash(Path(folder)) for name, folder in plan.workload_folders.items()}
    pairs = ((plan.workload_hashes, workloads_now), (plan.framework_hashes, _user_framework_hashes()))
    return [name for before, now in pairs for name in {**before, **now} if now.get(name) != before.get(name)]


def _user_framework_hashes() -> dict[str, str]:
    """Return the hashes of all frameworks of the user's own: one that is not in the run may be a reference."""
    own = {name: known.folder for name, known in frameworks.all_frameworks().items() if known.user_folder}
    return {name: frameworks.files_hash(folder) for name, folder in own.items()}


def _study(options: Options, known: dict[str, Workload]) -> Study:
    """Return the study at the requested size, with the axes that the options replace."""
    study = requested_study(options, known)
    if study.sizes or not options.workloads:
        study = study.of_size(options.size)
        options = replace(options, workloads=())  # the rest of the study has no others
    study = studies.of_inference(study) if options.tasks == (INFERENCE,) else study
    # Before the options: `--framework` leaves out frameworks whose modes and knobs the study names.
    for cells in study.cells:
        _check_targets(cells.modes, cells.knobs, chosen_environments(cells.frameworks))
    return studies.with_cells(study, tuple(cells.with_options(options) for cells in study.cells))


def requested_study(options: Options, known: dict[str, Workload]) -> Study:
    """Return the study with only the requested workloads; for workloads that it does not have, a study of these.

    UserError: there is no such study, workload or preset.
    """
    study = studies.study(options.study or DEFAULT_STUDY)
    if not options.workloads:
        return study
    found = [chosen(known, text) for text in options.workloads]
    pairs = [f"{workload.name}:{preset.name}" for workload, preset in found]
    if options.study and study.sizes and (left := studies.only(study, pairs)):
        return left
    # The default study skips the cached batch to be quick; a workload of the user's choice is measured with both inputs.
    protocol = "" if options.study else "sequential"
    return studies.of_workloads(study, options.workloads, [workload for workload, _ in found], protocol)


def _check_targets(modes: tuple[str, ...], knobs: tuple[str, ...], environments: list[tuple[str, str]]) -> None:
    """Reject a mode or a knob for a framework that is not among these."""
    present = {name for pair in environments for name in (pair[0], joined(pair))}
    own = [joined(pair) for pair in environments]
    for text in modes:
        if "=" not in text:
            raise UserError(f"--mode {text}: write FRAMEWORK=MODE, such as {own[0]}={text}.")
    paths = [text.partition("=")[0].rpartition(".") for text in knobs]
    targets = [text.partition("=")[0] for text in modes] + [name for name, dot, _ in paths if dot]
    for name in targets:
        if name not in present:
            raise UserError(f"'{name}' is not in this run.{nearest(name, own)}")
    offered = {knob for framework, _ in environments for knob in frameworks.framework(framework).knobs}
    for _, dot, knob in paths:
        if not dot and knob not in offered:
            raise UserError(f"No framework of this run has a knob '{knob}'.{nearest(knob, sorted(offered))}")


def _check_interpreters(options: Options, environments: list[str]) -> None:
    """Reject an interpreter for an environment that is not in this run."""
    for name in options.external:
        if name not in environments:
            raise UserError(f"--env {name}: '{name}' is not in this run.{nearest(name, sorted(set(environments)))}")


def _check_data(options: Options, study: Study, known: dict[str, Workload]) -> None:
    """Reject a folder of data that no preset of this run would read."""
    requested = dict.fromkeys(text for cells in study.cells for text in cells.workloads)
    found = [chosen(known, text) for text in requested]
    if not options.data:
        return
    if options.synthetic:
        raise UserError(
            "--data and --synthetic contradict each other: random batches need no data. Remove one of them."
        )
    if any(preset.reads_data for _, preset in found):
        return
    reading = [f"{each.name}:{name}" for each, _ in found for name in each.presets if each.preset(name).reads_data]
    hint = f"Presets that read data: {', '.join(reading)}." if reading else "Remove --data."
    names = " and ".join(f"{workload.name}:{preset.name}" for workload, preset in found)
    raise UserError(f"--data has no effect, because {names} computes on random batches. {hint}")


def _with_weights(options: Options, found: list[Group], known: dict[str, Workload]) -> tuple[Options, list[Group]]:
    """Return the options with the framework that reads the given weights, and the groups with their digest in every case.

    UserError: the file cannot be read, or would be that of several networks.
    """
    if not options.weights:
        return options, found
    given = given_weights.checked(options.weights)
    tensors = {
        workloads.described(known[case.workload].folder, case.sizes).parameters: group.name
        for group in found
        for case in group.cases
    }
    if len(tensors) > 1:
        raise UserError(
            f"--weights {given.name}: one file holds the weights of one network, and this run has {len(tensors)} "
            f"({', '.join(tensors.values())}). Choose one with --workload NAME:PRESET."
        )
    digest = given_weights.digest(given)
    with_digest = [
        replace(
            group,
            variants=tuple(replace(each, case=replace(each.case, weights=digest)) for each in group.variants),
        )
        for group in found
    ]
    return replace(options, weights=given.text), with_digest


def _facts(known: Framework) -> FrameworkFacts:
    knobs = {name: knob.default for name, knob in known.knobs.items()}
    # No origin of a network is the usual one, so titles name each.
    default_mode = "" if known.exporters else known.default_mode
    exporters = {mode: each.environment for mode, each in known.exporters.items()}
    exported_to = tuple(name for name, each in frameworks.all_frameworks().items() if known.name in each.exports_of)
    return FrameworkFacts(
        known.title, default_mode, knobs, known.maintained, known.note, exporters, known.maintained_source, exported_to
    )
