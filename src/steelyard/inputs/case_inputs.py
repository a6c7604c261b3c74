"""The inputs of cases, made once and shared: initial weights, prepared data and its order, a synthetic batch."""

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from steelyard.catalog import given_weights, workloads
from steelyard.catalog.workloads import SYNTHETIC
from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.files.paths import cache_folder
from steelyard.inputs import data, rates, trained_weights, weights
from steelyard.inputs.data.order import write_order
from steelyard.inputs.data.sample_arrays import check_inputs as check_samples
from steelyard.inputs.data.synthetic import check_inputs, synthesise, synthesise_adversarial, synthesise_set
from steelyard.inputs.data.work import Known
from steelyard.inputs.metric_fit import check_metric
from steelyard.plan.run_plan import RunPlan
from steelyard_worker import tensors
from steelyard_worker.case import INFERENCE, OWN, PADDED, TRAINING, Case
from steelyard_worker.network import Input, Network, Parameter
from steelyard_worker.protocol import Data

SYNTHETIC_SEED = 20
FEWEST_ORDERED_STEPS = 2000
OPENED_BEFORE_WAITING, OPENED_FOR_A_PLAN = 1000, 50  # files of each split, see `inspect`
OF_THE_USER = {"arrays": "your arrays", "text": "your text", "own": "what data.py made"}
CHECKED = {"official": "checksums agree with the official data", "pinned": "checksums agree with the known files"}


@dataclass(frozen=True)
class CaseInputs:
    """Folders that jobs name. `origin` describes the data in words; `identity` is a hash of everything.

    `steps_per_epoch`: whole batches in the training split; 0 without data. `rates`: the learning rate of every step; None where
    it is constant.
    """

    weights: Path
    data: Data
    origin: str
    meta: dict[str, Any]
    identity: str
    steps_per_epoch: int = 0
    rates: Path | None = None


def check(plan: RunPlan) -> None:
    """Check, before anything is created, that the inputs of every case can be made.

    UserError: parameters or inputs of a network are declared wrongly, or its data is neither in the folder nor downloaded.
    """
    for group, case in {recipe(each.case): (each.group, each.case) for each in plan.variants}.values():
        network = _network(plan, case)
        rates.check(case)
        weights.check(network.parameters)
        if plan.options.weights:
            folder = Path(plan.workload_folders[case.workload])
            trained_weights.check(given_weights.parsed(plan.options.weights), case, network, folder)
        check_inputs(network, case.batch, SYNTHETIC_SEED)
        _check_lengths(network, case)
        if case.data and case.data["name"] != SYNTHETIC:
            request = _request(plan, case)
            if case.task == TRAINING:
                check_metric(plan.group(group).metric, network, f"{case.workload}:{case.preset}")
            data.check(request)
            if given := data.samples(request):
                check_samples(network.inputs, given, request.name, f"{case.workload}:{case.preset}")


def inspect(plan: RunPlan, most: int) -> list[str]:
    """Describe the data that the user names, and what is left out or changed, after opening at most `most` files of each split.

    It takes one core, because others may be measuring. UserError names all files that cannot be used, of those that were opened.
    """
    cases = {
        recipe(variant.case): variant.case
        for variant in plan.variants
        if variant.case.data and variant.case.data["name"] != SYNTHETIC
    }
    opened: dict[str, tuple[list[str], Known]] = {}
    sentences: list[str] = []
    for case in cases.values():
        request = _request(plan, case)
        if repr(request) not in opened:
            opened[repr(request)] = data.inspect(request, most)
        counted, known = opened[repr(request)]
        found = [*counted, *_counts(known), *_heads(_network(plan, case), case, known.classes)]
        sentences += [f"Data {request.name}. {text}" for text in found]
    return list(dict.fromkeys(sentences))


def _counts(known: Known) -> list[str]:
    classes = f" in {known.classes:,} classes" if known.classes else ""
    if not known.train:
        return []
    return [f"Samples: {known.train:,} for training and {known.test:,} for testing{classes}."]


def _heads(network: Network, case: Case, classes: int) -> list[str]:
    """Say that the network tells more classes apart than its data has, with the size that fits, where there is one."""
    label = next((each for each in network.inputs if each.name == "label" and not each.shape), None)
    if not classes or label is None or label.high <= classes:
        return []
    names = [name for name, value in case.sizes.items() if value == label.high and not isinstance(value, bool)]
    remedy = f" --set {names[0]}={classes} fits the network to the data." if len(names) == 1 else ""
    return [f"The network of {case.workload}:{case.preset} tells {label.high:,} classes apart.{remedy}"]


def prepare(
    plan: RunPlan, report: Callable[[data.Progress], None], read: trained_weights.Read | None = None
) -> dict[str, CaseInputs]:
    """Make or reuse the inputs of every case; returns {recipe: inputs}, as cases with the same recipe share theirs.

    `read`: lets a framework read its own file of weights; None: the plan has no such file.
    UserError when the inputs of a case differ from those that a run began with.
    """
    found: dict[str, CaseInputs] = {}
    for variant in plan.variants:
        key = recipe(variant.case)
        if key not in found:
            found[key] = _prepare(plan, variant.case, report, read)
        if variant.case.inputs not in ("", found[key].identity):
            raise UserError(
                f"The data or the initial weights of {variant.group} have changed since this run began, so it cannot be "
                "continued. Start a new run."
            )
    return found


def recipe(case: Case) -> str:
    """Return a key of everything in a case that decides its inputs."""
    rule = case.optimizer
    scheduled = (rule.learning_rate, asdict(rule.schedule)) if rule.schedule.changes else ()
    given = [case.weights] if case.weights else []
    return atomic.key(
        "inputs", case.specification, sorted(case.sizes.items()), case.data, case.seed, case.task, scheduled, *given
    )


def _prepare(
    plan: RunPlan, case: Case, report: Callable[[data.Progress], None], read: trained_weights.Read | None
) -> CaseInputs:
    network = _network(plan, case)
    initial = _initial(plan, case, network, read)
    synthetic = synthesise(network, case.batch, SYNTHETIC_SEED, case.specification)
    found = Data(
        str(synthetic),
        adversarial=str(synthesise_adversarial(network, case.batch, SYNTHETIC_SEED, case.specification)),
        cut={each.name: tuple(each.lengths.items()) for each in network.inputs if each.lengths and case.cuts_batches},
        multiple=case.sizes.get("multiple", 1),
    )
    if not case.data:
        changing = rates.write(case.optimizer, _steps(plan, case, 0), 0)
        return CaseInputs(initial, found, "synthetic batches", {}, _identity(initial, found, changing), 0, changing)
    prepared = _prepared(plan, case, network, report)
    _check_fit(network, prepared, f"{case.workload}:{case.preset}")
    if not case.weights:
        initial = _with_embedding(initial, prepared.folder)
    arrays = tensors.read(prepared.folder)
    count = len(arrays["position/train"])
    _check_limit(case, count)
    per_epoch = count // case.batch
    steps = _steps(plan, case, per_epoch)
    buckets, changing = case.sizes.get("buckets", 1), rates.write(case.optimizer, steps, per_epoch)
    lengths = arrays[f"train/{network.ranked_by}"] if buckets > 1 else None
    order = write_order(count, case.batch, steps, case.seed, lengths, buckets)
    found = replace(found, prepared=str(prepared.folder), order=str(order))
    identity = _identity(initial, found, changing)
    origin = _origin(prepared.meta) + _lengths(network, arrays, found, buckets)
    return CaseInputs(initial, found, origin, prepared.meta, identity, per_epoch, changing)


def _check_lengths(network: Network, case: Case) -> None:
    """Check the sizes `lengths` and `buckets`: their values, and that the network says which axes have lengths of their own."""
    value, preset = case.sizes.get("lengths", PADDED), f"{case.workload}:{case.preset}"
    if value not in (PADDED, OWN):
        raise UserError(f"The size 'lengths' of {preset} is '{PADDED}' or '{OWN}', not '{value}'.")
    if (case.cuts_batches or case.sizes.get("buckets", 1) > 1) and not network.ranked_by:
        raise UserError(
            f"{preset} cannot cut or sort batches by length: none of its inputs has 'lengths' in its network.py."
        )


def _prepared(plan: RunPlan, case: Case, network: Network, report: Callable[[data.Progress], None]) -> data.Prepared:
    """Return the prepared data set of a case, or the samples that are drawn in its place."""
    if case.data["name"] != SYNTHETIC:
        return data.prepare(_request(plan, case), report)
    folder = synthesise_set(network, case.data["samples"], SYNTHETIC_SEED, case.specification)
    return data.Prepared(folder, tensors.read_meta(folder))


def _network(plan: RunPlan, case: Case) -> Network:
    return workloads.described(Path(plan.workload_folders[case.workload]), case.sizes)


def _initial(plan: RunPlan, case: Case, network: Network, read: trained_weights.Read | None) -> Path:
    """Return the weights of the file that the user gives, as they are, or draw them."""
    if case.weights and plan.options.weights:
        folder = Path(plan.workload_folders[case.workload])
        return trained_weights.placed(given_weights.parsed(plan.options.weights), case, network, folder, read)
    return weights.initialise(_parameters(network, case), case.seed)


def _parameters(network: Network, case: Case) -> tuple[Parameter, ...]:
    """Return the parameters with their initial values; an inference has values as training might have left them."""
    return weights.as_if_trained(network.parameters) if case.task == INFERENCE else network.parameters


def _check_fit(network: Network, prepared: data.Prepared, preset: str) -> None:
    """Check that the prepared samples are those that the network declares. UserError names the first input that differs."""
    arrays, name = tensors.read(prepared.folder), prepared.meta["data"]
    for declared in network.inputs:
        held, shape = arrays.get(f"train/{declared.name}"), tuple(declared.shape)
        _check_shape(declared, held.shape[1:] if held is not None else None, name, preset)
        if held is not None and not shape and declared.high and held.max() >= declared.high:
            raise _unfit(declared, f"has values up to {held.max()}", f"values below {declared.high}", name, preset)


def _check_shape(declared: Input, held: tuple[int, ...] | None, name: str, preset: str) -> None:
    shape = tuple(declared.shape)
    if held is None:
        raise _unfit(declared, "is missing", f"it with the shape {shape}", name, preset)
    if held != shape:
        raise _unfit(declared, f"has the shape {held} per sample", f"{shape}", name, preset)


def _unfit(declared: Input, held: str, expected: str, name: str, preset: str) -> UserError:
    return UserError(
        f"{preset}: the input '{declared.name}' {held} in the data '{name}', but the network declares {expected}; change the "
        "sizes or the [data] table of the preset."
    )


def _check_limit(case: Case, count: int) -> None:
    """Check that the data has as many training samples as are asked for: fewer would be shown as more than they are."""
    wanted = case.data.get("train_limit", 0)
    if wanted > count:
        raise UserError(
            f"{case.workload}:{case.preset} is to train on {wanted:,} samples (train_limit), and the data has {count:,} "
            "that fit. Ask for fewer."
        )


def _request(plan: RunPlan, case: Case) -> data.DataRequest:
    options = {key: value for key, value in case.data.items() if key != "name"}
    folder = Path(plan.options.data) if plan.options.data else None
    code = data.OwnCode(Path(plan.workload_folders[case.workload]), dict(case.sizes), folder)
    return data.DataRequest(case.data["name"], folder, options, _network(plan, case).inputs, code)


def _with_embedding(initial: Path, prepared: Path) -> Path:
    """Replace the random word vectors by those that come with the data, where there are any."""
    vectors = tensors.read(prepared).get("embedding")
    if vectors is None:
        return initial
    folder = cache_folder() / "weights" / atomic.key("embedded", initial.name, prepared.name)
    replaced = {"embedding.weight": vectors}
    return atomic.place_tensors(folder, lambda: {**tensors.read(initial), **replaced}, tensors.read_meta(initial))


def _origin(meta: dict[str, Any]) -> str:
    """Describe the data: which, how much of it, how it was checked, and what is left out or changed.

    Only checksums make data the official data.
    """
    if meta.get("data") == SYNTHETIC:
        return f"{meta['train_count']:,} synthetic training samples."
    count = f"{meta['train_count']:,} training and {meta['test_count']:,} test samples"
    counted = "".join(f" {sentence}" for sentence in data.sentences(meta))
    if meta["verified"] in CHECKED:
        return f"{meta['title']}: {count}; {CHECKED[meta['verified']]}.{counted}"
    if whose := OF_THE_USER.get(meta.get("data", "")):
        return f"{whose}: {count}.{counted}"
    name = meta["title"].partition(":")[0]
    checked = f"{count}; no checksum shows that it is the official data."
    return f"your data in the layout of {name} ({meta['layout']}): {checked}{counted}"


def _lengths(network: Network, arrays: dict[str, Any], made: Data, buckets: int) -> str:
    """Describe the lengths of the training samples, where the network declares any, and what is made of them."""
    names = dict.fromkeys(name for each in network.inputs for name in each.lengths.values())
    found = {name: arrays[f"train/{name}"] for name in names}
    parts = [f"{name} {each.min():,} to {each.max():,}, {each.mean():,.0f} on average" for name, each in found.items()]
    sentences = [f"Lengths of the training samples: {'; '.join(parts)}."] if parts else []
    if buckets > 1:
        sentences.append(f"Batches are drawn from {buckets} buckets of samples of like length.")
    if made.cut:
        rounded = f", to the next multiple of {made.multiple}" if made.multiple > 1 else ""
        sentences.append(f"Every batch is cut to its longest sample{rounded}.")
    return "".join(f" {each}" for each in sentences)


def _steps(plan: RunPlan, case: Case, per_epoch: int) -> int:
    """Return the steps that order and learning rates cover, all epochs of a training included; after them the order repeats."""
    same = recipe(case)
    groups = [group for group in plan.groups if any(recipe(each.case) == same for each in group.variants)]
    steps = [
        max(group.train_steps + each.warmup_cap_steps + each.counted_max, each.epochs * per_epoch)
        for group in groups
        for each in (group.protocol.schedule,)
    ]
    return max(FEWEST_ORDERED_STEPS, *steps)


def _identity(initial: Path, found: Data, changing: Path | None) -> str:
    """Return a hash of the folders' contents."""
    folders = [str(each) for each in (initial, found.synthetic, found.prepared, found.order, changing) if each]
    contents = [tensors.identity(Path(folder)) for folder in folders]
    return hashlib.sha256("\0".join(contents).encode()).hexdigest()[:16]
