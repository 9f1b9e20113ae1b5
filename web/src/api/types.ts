// The shapes of docs/rest-api.md, word for word.

export type SweepState = 'running' | 'paused' | 'completed' | 'stopped' | 'failed' | 'killed';
export type TrialState = 'pending' | SweepState;

/** A number, or the words JSON needs for those it cannot carry. */
export type WireNumber = number | 'nan' | 'inf' | '-inf';
export type ConfigValue = number | string | boolean;
export type Config = Record<string, ConfigValue>;
export type WireMetrics = Record<string, WireNumber>;

export interface Metric {
  name: string;
  mode: 'min' | 'max';
}

/** One of the metrics that a sweep improves. */
export interface Objective extends Metric {
  target: number | null;
}

/** Bounds of a metric: a report outside of them does not count. */
export interface Constraint {
  min: number | null;
  max: number | null;
}

export interface Parameter {
  name: string;
  type: 'float' | 'int' | 'categorical' | 'constant' | 'bool';
  min?: number;
  max?: number;
  scale?: 'linear' | 'log';
  step?: number;
  values?: ConfigValue[];
  value?: ConfigValue;
}

export interface Best {
  trial: number;
  step: number;
  /** Of the sweep's first metric. */
  value: WireNumber;
  /** Of all its metrics, in their order. */
  values: WireNumber[];
  config: Config;
  metrics: WireMetrics;
  checkpoint: string | null;
}

/** The newest change of a sweep's specification. */
export interface Edit {
  time: string;
  actor: string;
  changes: string[];
}

/** Limits beside max_trials and max_step; times in seconds, 0: none. */
export interface Limits {
  target: number | null;
  max_time: number;
  max_gpu_hours: number;
  patience: number;
  max_trial_time: number;
  trial_patience: number;
}

export interface Sweep {
  id: string;
  name: string;
  /** The name of the token that it was created with. */
  owner: string;
  state: SweepState;
  reason: string;
  created: string;
  ended: string | null;
  /** The first of `metrics`. */
  metric: Metric;
  metrics: Objective[];
  constraints: Record<string, Constraint>;
  searcher: string;
  scheduler: string;
  rungs: number[];
  max_step: number;
  max_trials: number;
  workers: number;
  priority: number;
  max_concurrent_trials: number;
  external: boolean;
  limits: Limits;
  parameters?: Parameter[];
  trials: Record<TrialState, number>;
  /** The best in the first metric. */
  best: Best | null;
  /** The reports that no other is better than in everything, as they came. */
  front: Best[];
  edited: Edit | null;
  waiting: string;
  /** As what a sweep that starts nothing more will have ended. */
  stopping: '' | SweepState;
  file?: string;
}

/** A sweep or a trial after it was steered: what follows, in a sentence. */
export type Steered<T> = T & { effect: string };

export interface Trial {
  sweep: string;
  number: number;
  state: TrialState;
  reason: string;
  config: Config;
  created: string;
  ended: string | null;
  attempts: number;
  step: number;
  milestone: number;
  seconds: number;
  metrics: WireMetrics;
  best: WireNumber | null;
  checkpoint: string | null;
  /** Why it does not run, while it has not ended. */
  waiting: string;
}

export interface HistoryPoint {
  step: number;
  time: string;
  attempt: number;
  seconds: number;
  metrics: WireMetrics;
}

export interface Rank {
  rank: number;
  executor: string;
  local_rank: number;
  cpus: number;
  gpus: number[];
}

export interface Attempt {
  number: number;
  epoch: number;
  state: 'assigned' | 'running' | 'ended';
  outcome: '' | 'finished' | 'stopped' | 'paused' | 'failed' | 'lost' | 'killed';
  failure: string;
  executor: string;
  resumed_from: number | string | null;
  pids: number[];
  ranks: Rank[];
  decided: string | null;
  started: string | null;
  first_step: string | null;
  ended: string | null;
}

export interface Decision {
  time: string;
  step: number;
  verdict: 'continue' | 'pause' | 'stop' | 'exploit';
  reason: string;
  rule: string;
  rung: number | null;
  value: WireNumber | null;
  cutoff: WireNumber | null;
  rank: number | null;
  peers: number | null;
}

export interface Checkpoint {
  step: number;
  attempt: number;
  path: string;
  digest: string;
  bytes: number;
  time: string;
  pinned: boolean;
  dropped: string | null;
  reason: string;
}

export interface TrialDetail extends Trial {
  history: HistoryPoint[];
  attempts_list: Attempt[];
  decisions: Decision[];
  checkpoints: Checkpoint[];
}

export interface WireCurve {
  number: number;
  steps: number[];
  values: WireNumber[];
}

export interface Curves {
  metric: string;
  seq: number;
  trials: WireCurve[];
}

export interface Executor {
  name: string;
  state: 'online' | 'lost';
  address: string;
  cpus: number;
  cpus_free: number;
  gpus: number;
  gpus_free: number;
  memory_bytes: number;
  memory_free: number;
}

interface EventBase {
  seq: number;
  sweep: string;
  time: string;
  /** Who made it happen: a token or an executor by name, or the service itself: `attune`. */
  actor: string;
}
interface TrialEventBase extends EventBase {
  trial: number;
}

export type SweepCreated = EventBase & { kind: 'sweep_created'; name: string };
export type SweepChanged = EventBase & {
  kind: 'sweep_changed';
  /** Null: as before. */
  state: SweepState | null;
  reason: string;
  stopping: Sweep['stopping'];
};
export type SweepExtended = EventBase & {
  kind: 'sweep_extended';
  max_trials: number;
  max_step: number;
  limits: Limits;
};
export type SweepEdited = EventBase & {
  kind: 'sweep_edited';
  name: string;
  max_trials: number;
  max_step: number;
  priority: number;
  max_concurrent_trials: number;
  limits: Limits;
  changes: string[];
};
export type TrialCreated = TrialEventBase & {
  kind: 'trial_created';
  config: Config;
  state: TrialState;
};
export type TrialChanged = TrialEventBase & {
  kind: 'trial_changed';
  state: TrialState;
  reason: string;
  not_before?: string;
};
export type TrialYielding = TrialEventBase & {
  kind: 'trial_yielding';
  verdict: Decision['verdict'];
  reason: string;
};
export type TrialReported = TrialEventBase & {
  kind: 'trial_reported';
  attempt: number;
  step: number;
  seconds: number;
  metrics: WireMetrics;
};
export type TrialDecided = TrialEventBase &
  Omit<Decision, 'time'> & {
    kind: 'trial_decided';
    milestone: number;
    donor?: number;
    config?: Config;
  };
export type AttemptChanged = TrialEventBase & {
  kind: 'attempt_changed';
  attempt: number;
  state: Attempt['state'];
  outcome: Attempt['outcome'];
  failure: string;
  executor: string;
  resumed_from: Attempt['resumed_from'];
};
export type CheckpointSaved = TrialEventBase & {
  kind: 'checkpoint_saved';
  attempt: number;
  step: number;
  path: string;
  digest: string;
  bytes: number;
};
export type CheckpointPinned = TrialEventBase & {
  kind: 'checkpoint_pinned';
  attempt: number;
  step: number;
  pinned: boolean;
};
export type CheckpointDropped = TrialEventBase & {
  kind: 'checkpoint_dropped';
  attempt: number;
  step: number;
  reason: string;
};
export type ExecutorChanged = Omit<EventBase, 'sweep'> & {
  kind: 'executor_changed';
  executor: string;
  state: Executor['state'];
  cpus: number;
  gpus: number;
  memory_bytes: number;
};

export type AttuneEvent =
  | SweepCreated
  | SweepChanged
  | SweepExtended
  | SweepEdited
  | TrialCreated
  | TrialChanged
  | TrialYielding
  | TrialReported
  | TrialDecided
  | AttemptChanged
  | CheckpointSaved
  | CheckpointPinned
  | CheckpointDropped
  | ExecutorChanged;

export type EventKind = AttuneEvent['kind'];

export const eventKinds: readonly EventKind[] = [
  'sweep_created',
  'sweep_changed',
  'sweep_extended',
  'sweep_edited',
  'trial_created',
  'trial_changed',
  'trial_yielding',
  'trial_reported',
  'trial_decided',
  'attempt_changed',
  'checkpoint_saved',
  'checkpoint_pinned',
  'checkpoint_dropped',
  'executor_changed',
];

/** RFC 9457, as the server sends it. */
export interface Problem {
  type?: string;
  title: string;
  status: number;
  detail?: string;
  errors?: { pointer: string; line?: number; column?: number; message: string }[];
}
