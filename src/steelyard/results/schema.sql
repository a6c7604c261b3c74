-- An index of run folders. The event files are the primary record; the index can be rebuilt from them at any time.
CREATE TABLE IF NOT EXISTS runs (
    id       TEXT PRIMARY KEY,
    folder   TEXT NOT NULL,
    study    TEXT NOT NULL,
    created  TEXT NOT NULL,
    state    TEXT NOT NULL,          -- running, interrupted, complete
    machine  TEXT NOT NULL,
    method   INTEGER NOT NULL,
    plan     TEXT NOT NULL           -- JSON
);
CREATE TABLE IF NOT EXISTS trials (
    run            TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    id             TEXT NOT NULL,
    kind           TEXT NOT NULL,    -- measure
    case_id        TEXT NOT NULL,
    round          INTEGER NOT NULL,
    attempt        INTEGER NOT NULL, -- a disturbed round is repeated with the next number; the last attempt counts
    framework      TEXT NOT NULL,
    workload       TEXT NOT NULL,
    preset         TEXT NOT NULL,
    mode           TEXT NOT NULL,
    method         INTEGER NOT NULL,
    worker_hash    TEXT NOT NULL,
    job            TEXT NOT NULL,    -- JSON
    applied        TEXT NOT NULL,    -- JSON: settings as the framework reported them
    libraries      TEXT NOT NULL,    -- JSON
    phases_ns      TEXT NOT NULL,    -- JSON
    to_first_step_ns    INTEGER,
    peak_resident_bytes INTEGER,
    peak_device_bytes   INTEGER,
    evaluation     TEXT,             -- JSON
    warnings       TEXT NOT NULL,    -- JSON
    error_kind     TEXT,
    error_message  TEXT,
    done           INTEGER NOT NULL,
    folder         TEXT NOT NULL,
    PRIMARY KEY (run, id)
);
CREATE TABLE IF NOT EXISTS blocks (
    run        TEXT NOT NULL,
    trial      TEXT NOT NULL,
    input      TEXT NOT NULL,        -- pipeline, cached
    phase      TEXT NOT NULL,        -- first, training, warm-up, counted
    steps      INTEGER NOT NULL,
    start_ns   INTEGER NOT NULL,     -- the worker's monotonic clock
    elapsed_ns INTEGER NOT NULL,
    first_step INTEGER NOT NULL,     -- index of its first value in samples.i64 and losses.f32 of the trial's folder
    cpu_ns     INTEGER NOT NULL,     -- CPU time of all threads
    epoch      INTEGER NOT NULL,     -- from 1; 0 where the process does not train whole epochs
    FOREIGN KEY (run, trial) REFERENCES trials (run, id) ON DELETE CASCADE
);
CREATE INDEX IF NOT EXISTS blocks_of_trial ON blocks (run, trial);
