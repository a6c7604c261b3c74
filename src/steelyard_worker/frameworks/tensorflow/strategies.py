"""The strategies of `framework.toml`: what each one sets up before TensorFlow computes anything, and the trainer that it has."""

from __future__ import annotations

import itertools
import json
import os
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from steelyard_worker.frameworks.tensorflow import cluster
from steelyard_worker.protocol import Refusal
from steelyard_worker.strategy import ALONE, MICRO_BATCHES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard_worker.batches import Source
    from steelyard_worker.case import Settings
    from steelyard_worker.communication import AllReduce
    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.frameworks.tensorflow.predictor import Wrap
    from steelyard_worker.frameworks.tensorflow.trainer import Learner
    from steelyard_worker.ranks import Ranks

# Seconds that a rank waits for the others: until all have started, in one exchange, for a sign of life, and at the end.
LONGEST_START_S, LONGEST_WAIT_S, LOST_S, LONGEST_END_S = 300, 300, 60, 10


class Alone:
    """A rank that exchanges nothing, so it is a process like any other."""

    def __init__(self, ranks: Ranks, settings: Settings) -> None:
        del settings
        self._ranks = ranks

    def observed(self) -> str:
        """Return the strategy: nothing of TensorFlow is involved."""
        return self._ranks.strategy


class Replicas:
    """A strategy of `tf.distribute` that keeps all variables on every replica."""

    def __init__(self, ranks: Ranks, strategy: tf.distribute.Strategy) -> None:
        self._name, self._strategy = ranks.name, strategy

    def observed(self) -> str:
        """Return the strategy, with the number of replicas that TensorFlow reports."""
        return f"{self._name}:{self._strategy.num_replicas_in_sync}"

    def trainer(self, outer: Wrap, compiled: bool, *built: Any) -> Learner:
        """Build the network on every replica."""
        from steelyard_worker.frameworks.tensorflow.replicas import ReplicaTrainer

        return ReplicaTrainer(self._strategy, outer, compiled, *built)


class Mirrored(Replicas):
    """`tf.distribute.MirroredStrategy` over logical CPU devices of this process."""

    def __init__(self, ranks: Ranks, settings: Settings) -> None:
        logical_devices(ranks.parts, settings)
        devices = [f"CPU:{number}" for number in range(ranks.parts)]
        super().__init__(ranks, self._strategy_of(devices))

    def _strategy_of(self, devices: list[str]) -> tf.distribute.Strategy:
        return tf.distribute.MirroredStrategy(devices)

    def pipeline(self, trainer: Any, source: Source, workers: int) -> Iterable[Any]:
        """Return batches whose shares `tf.distribute` gives to the replicas."""
        from steelyard_worker.frameworks.tensorflow import feed

        def shares(context: tf.distribute.InputContext) -> tf.data.Dataset:
            del context  # one process reads for all replicas, and the first share is for the first of them
            return feed.in_shares(feed.dataset(trainer, source, workers), self._strategy.num_replicas_in_sync)

        return iter(self._strategy.distribute_datasets_from_function(shares))


class CentralStorage(Mirrored):
    """`tf.distribute.experimental.CentralStorageStrategy` over logical CPU devices of this process."""

    def _strategy_of(self, devices: list[str]) -> tf.distribute.Strategy:
        from steelyard_worker.frameworks.tensorflow.central import STORE

        return tf.distribute.experimental.CentralStorageStrategy(devices, STORE)

    def trainer(self, outer: Wrap, compiled: bool, *built: Any) -> Learner:
        """Build the network on the storing device."""
        from steelyard_worker.frameworks.tensorflow.central import CentralTrainer

        return CentralTrainer(self._strategy, outer, compiled, *built)


class MultiWorker(Replicas):
    """`tf.distribute.MultiWorkerMirroredStrategy`: every rank is a worker with one device, and has its own batches."""

    def __init__(self, ranks: Ranks, settings: Settings) -> None:
        only_cpu(settings)
        workers = [f"{address}:{port}" for address, port in zip(ranks.addresses, ranks.ports[1:], strict=False)]
        task = {"type": "worker", "index": ranks.rank}
        os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": task})
        _limit_waiting(len(workers))
        options = tf.distribute.experimental.CommunicationOptions(
            implementation=tf.distribute.experimental.CommunicationImplementation.RING, timeout_seconds=LONGEST_WAIT_S
        )
        super().__init__(ranks, tf.distribute.MultiWorkerMirroredStrategy(communication_options=options))

    def all_reduce(self, array: Array) -> AllReduce:
        """Return the all-reduce of all workers."""
        from steelyard_worker.frameworks.tensorflow.communication import ReplicaReduce

        return ReplicaReduce(array, self._strategy)


class Horovod:
    """Ranks that average their gradients by Horovod; otherwise each is a process like any other."""

    def __init__(self, ranks: Ranks, settings: Settings) -> None:
        import horovod.tensorflow as hvd

        only_cpu(settings)
        hvd.init()
        self._name, self._size = ranks.name, hvd.size

    def observed(self) -> str:
        """Return the strategy, with the number of processes that Horovod knows."""
        return f"{self._name}:{self._size()}"

    def trainer(self, outer: Wrap, compiled: bool, *built: Any) -> Learner:
        """Build the network."""
        from steelyard_worker.frameworks.tensorflow.horovod_trainer import HorovodTrainer

        return HorovodTrainer(outer, compiled, *built)

    def all_reduce(self, array: Array) -> AllReduce:
        """Return the all-reduce of Horovod."""
        from steelyard_worker.frameworks.tensorflow.horovod_trainer import HorovodReduce

        return HorovodReduce(array)


class Split:
    """A network whose parts are placed with `tf.device` on logical CPU devices of this process."""

    def __init__(self, ranks: Ranks, settings: Settings) -> None:
        # Only one part computes at a time, so one device's number of threads is enough. More of them would compute several
        # operations of one part at once, because logical devices have no threads of their own.
        logical_devices(ranks.parts, settings, together=False)
        self._name, self._devices = ranks.name, [f"/CPU:{number}" for number in range(ranks.parts)]

    def observed(self) -> str:
        """Return the strategy, with the number of devices on which TensorFlow has placed small variables."""
        found = set()
        for device in self._devices:
            with tf.device(device):
                found.add(tf.Variable(0.0).device)
        return f"{self._name}:{len(found)}"

    def trainer(self, outer: Wrap, compiled: bool, *built: Any) -> Learner:
        """Build the network with a part on every device."""
        from steelyard_worker.frameworks.tensorflow.split import SplitTrainer

        del outer, compiled
        return SplitTrainer(self._devices, 1, *built)


class Cluster:
    """Ranks that compute for rank 0, which alone has the trainer."""

    def __init__(self, ranks: Ranks, settings: Settings) -> None:
        only_cpu(settings)
        self._ranks, self._threads, self._micro = ranks, settings.threads, settings.knobs[MICRO_BATCHES]
        if settings.threads:
            waiting = cluster.waiting_threads(ranks, settings.threads)
            tf.config.threading.set_inter_op_parallelism_threads(waiting)

    def observed(self) -> str:
        """Return the strategy, with the number of workers in the cluster that TensorFlow has set up."""
        if not self._ranks.leads:
            jobs = self._member.server_def.cluster.job
            return f"{self._ranks.name}:{sum(len(job.tasks) for job in jobs if job.name == cluster.WORKER)}"
        places = [tf.DeviceSpec.from_string(each.name) for each in tf.config.list_logical_devices("CPU")]
        return f"{self._ranks.name}:{len({each.task for each in places if each.job == cluster.WORKER})}"

    def trainer(self, outer: Wrap, compiled: bool, *built: Any) -> Any:
        """Build the network, from the first rank; the other ranks only work."""
        del outer, compiled
        return self._leading(*built) if self._ranks.leads else cluster.Follower()

    def pipeline(self, trainer: Any, source: Source, workers: int) -> Iterable[Any]:
        """Return whole batches on the first rank, which divides and sends them; nothing on the others."""
        from steelyard_worker.frameworks.tensorflow import feed

        return iter(feed.dataset(trainer, source, workers)) if self._ranks.leads else itertools.repeat(None)


class ParameterServer(Cluster):
    """`tf.distribute.ParameterServerStrategy`: every rank is a worker, rank 0 also coordinates, another process serves."""

    def __init__(self, ranks: Ranks, settings: Settings) -> None:
        super().__init__(ranks, settings)
        members = cluster.of_servers(ranks)
        self._member = cluster.start(ranks, members, cluster.WORKER, ranks.rank, settings.threads)
        if ranks.leads:
            from steelyard_worker.frameworks.tensorflow import parameter_server

            self._strategy = parameter_server.connect(ranks)

    def _leading(self, *built: Any) -> Any:
        from steelyard_worker.frameworks.tensorflow.parameter_server import CoordinatingTrainer

        return CoordinatingTrainer(self._strategy, self._ranks.parts, *built)

    def counting_trainer(self, *built: Any) -> Any:
        """Build the network, from the first rank, and count the updates of all workers."""
        from steelyard_worker.frameworks.tensorflow.staleness import CountingTrainer

        return CountingTrainer(self._strategy, self._ranks.parts, *built) if self._ranks.leads else cluster.Follower()


class Pipeline(Cluster):
    """A network whose parts are placed with `tf.device` on the processes of a cluster; micro-batches follow each other."""

    def __init__(self, ranks: Ranks, settings: Settings) -> None:
        super().__init__(ranks, settings)
        members = cluster.of_workers(ranks)
        if ranks.leads:
            tf.config.experimental_connect_to_cluster(members, job_name=cluster.WORKER, task_index=0, protocol="grpc")
        else:
            self._member = cluster.start(ranks, members, cluster.WORKER, ranks.rank, settings.threads)

    def _leading(self, *built: Any) -> Any:
        from steelyard_worker.frameworks.tensorflow.split import SplitTrainer

        devices = [f"/job:{cluster.WORKER}/replica:0/task:{task}/device:CPU:0" for task in range(self._ranks.parts)]
        batch = built[3]["batch"]
        if batch % self._micro:
            raise Refusal("unsupported", f"A batch of {batch} cannot be divided into {self._micro} micro-batches.")
        return SplitTrainer(devices, self._micro, *built)


def _limit_waiting(workers: int) -> None:
    """Set the service by which workers find each other as the strategy would, but with limits: its own is an hour."""
    from tensorflow.python.distribute.collective_all_reduce_strategy import coordination_config_pb2
    from tensorflow.python.eager import context

    context.context().configure_coordination_service(
        service_type="standalone",
        service_leader="/job:worker/replica:0/task:0",
        coordinated_jobs=[coordination_config_pb2.CoordinatedJob(name="worker", num_tasks=workers)],
        cluster_register_timeout_in_ms=LONGEST_START_S * 1000,
        heartbeat_timeout_in_ms=LOST_S * 1000,
        shutdown_barrier_timeout_in_ms=LONGEST_END_S * 1000,
    )


STRATEGIES = {
    ALONE: Alone,
    "mirrored": Mirrored,
    "multi-worker": MultiWorker,
    "horovod": Horovod,
    "split": Split,
    "central-storage": CentralStorage,
    "staged": Pipeline,
    "parameter-server": ParameterServer,
}


def logical_devices(count: int, settings: Settings, together: bool = True) -> None:
    """Divide the CPU into devices; `together`: operations of all of them run at the same time, by a thread more for each."""
    only_cpu(settings)
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
    if settings.threads and together:
        tf.config.threading.set_inter_op_parallelism_threads(settings.threads * count)


def only_cpu(settings: Settings) -> None:
    """Refuse other devices."""
    if settings.device != "cpu":
        raise Refusal("unsupported", "Strategies were not tried on GPUs, for lack of hardware.")


def _refuse_untried(settings: Settings) -> None:
    """Refuse modes and knobs with which the trainers of strategies would do something else."""
    if settings.mode == "fit":
        raise Refusal("unsupported", "Strategies were not built for Keras's fit.")
    for knob, values in {"embedding": ("dense",), "update": ("auto", "fused"), "loss": ("as-described",)}.items():
        if settings.knobs[knob] not in values:
            raise Refusal("unsupported", f"Strategies were built for {knob}={values[-1]} only.")


def of(ranks: Ranks, settings: Settings) -> Any:
    """Set up the strategy of a case; None: a single process."""
    if ranks.spread is None:
        return None
    if ranks.name not in STRATEGIES:
        raise Refusal("unsupported", f"TensorFlow has no strategy {ranks.name!r} here.")
    if ranks.name != ALONE:
        _refuse_untried(settings)
    return STRATEGIES[ranks.name](ranks, settings)
