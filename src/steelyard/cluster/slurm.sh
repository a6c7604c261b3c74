#!/bin/bash
#SBATCH --job-name=steelyard
#SBATCH --nodes=@NODES@
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=@TIME@
#SBATCH --signal=B:TERM@120

# Measures a study with steelyard on the nodes of this allocation. Written by `steelyard slurm-script`; tried with stand-ins for
# srun and scontrol, not yet on a SLURM site. What a site may have to change is marked with SITE.
#
# --exclusive keeps other jobs off the nodes: Ray itself does not. Whoever reaches the ports of Ray can run programs as you, so
# use it only on a network whose users you trust.

set -euo pipefail

# SITE: make `steelyard` and `ray` available on every node, with the same versions, for instance:
# source /shared/venvs/steelyard/bin/activate
RUNS=@RUNS@                        # SITE: where the record is written; a folder that outlives the job
PORT=${STEELYARD_RAY_PORT:-6379}   # SITE: a free port of the first node
TOGETHER_S=300                     # how long the nodes may take to join

mapfile -t NODES < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
HEAD=${NODES[0]}
ADDRESS=$(srun --nodes=1 --ntasks=1 --nodelist="$HEAD" hostname --ip-address | awk '{print $1}')
export RAY_ADDRESS=$ADDRESS:$PORT
export RAY_USAGE_STATS_ENABLED=0   # Ray would report its use to its makers
BLOCKING=()

end() {
    trap - EXIT TERM INT
    for pid in "${BLOCKING[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait || true
}
trap end EXIT
# SLURM sends TERM before the time is over: the run stops, and what is finished is kept. Continue it with --resume latest.
trap 'kill -TERM "${STUDY_PID:-}" 2>/dev/null || true' TERM INT

# `--block` keeps Ray in the foreground of its srun step, so that it ends with the step and leaves nothing behind. Its log monitor
# only copies messages that steelyard does not print, and would take time from the processes that are measured.
srun --nodes=1 --ntasks=1 --overlap --nodelist="$HEAD" \
    ray start --head --node-ip-address="$ADDRESS" --port="$PORT" --node-name="$HEAD" \
    --include-dashboard=false --include-log-monitor=false --disable-usage-stats --block &
BLOCKING+=($!)
until (exec 3<>"/dev/tcp/$ADDRESS/$PORT") 2>/dev/null; do
    if [ "$SECONDS" -gt "$TOGETHER_S" ]; then
        echo "steelyard: Ray did not start on $HEAD within $TOGETHER_S s; its messages are above." >&2
        exit 1
    fi
    sleep 1
done
for node in "${NODES[@]:1}"; do
    srun --nodes=1 --ntasks=1 --overlap --nodelist="$node" \
        ray start --address="$RAY_ADDRESS" --node-name="$node" --include-log-monitor=false --block &
    BLOCKING+=($!)
done

until [ "$(steelyard nodes --on ray --json 2>/dev/null | grep -c '"why_not"')" = "${#NODES[@]}" ]; do
    if [ "$SECONDS" -gt "$TOGETHER_S" ]; then
        echo "steelyard: after $TOGETHER_S s not all of ${NODES[*]} have joined Ray at $RAY_ADDRESS; measuring on those that have." >&2
        break
    fi
    sleep 2
done

srun --nodes=1 --ntasks=1 --overlap --nodelist="$HEAD" \
    steelyard run @STUDY@ --on ray --runs "$RUNS" --plain &
STUDY_PID=$!
CODE=0
while :; do
    if wait "$STUDY_PID"; then CODE=0; else CODE=$?; fi
    kill -0 "$STUDY_PID" 2>/dev/null || break   # a signal also ends `wait`
done
exit "$CODE"
