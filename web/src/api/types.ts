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
  /** Of its step, where that one is kept; else its trial's newest. */
  checkpoint: string | null;
  checkpoint_step: number | null;
}

/** The newest change of a sweep's specification. */
export interface Edit {
  time: string;
  actor: string;
  changes: string[];
}

/** A trial whose metric has come to rest is over; with `std` by its deviation, else by `min_delta`. */
export interface Plateau {
  metric: string;
  mode: 'min' | 'max';
  patience: number;
  min_delta?: number;
  std?: number;
  grace_period: number;
}

/** A trial whose metric has come to a bound is over. */
export interface Threshold {
  at_least?: number;
  at_most?: number;
  grace_period: number;
}

/** Limits beside max_trials and max_step; times in seconds, 0: none. */
export interface Limits {
  target: number | null;
  max_time: number;
  max_gpu_hours: number;
  patience: number;
  max_trial_time: number;
  trial_patience: number;
  plateau: Plateau | null;
  /** By metric. */
  threshold: Record<string, Threshold>;
}

export interface Sweep {
  id: string;
  name: string;
  tags: string[];
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
  /** What it has taken of earlier sweeps, in words, one each. */
  warm_start: string[];
  scheduler: string;
  rungs: number[];
  /** The metric that steps are counted in; empty: by the program. */
  time_attr: string;
  max_step: number;
  max_trials: number;
  workers: number;
  /** `workers`, where its gangs are all of one size. */
  min_workers: number;
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
  /** Names of the metrics that its trials log between reports. */
  logged: string[];
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
  /** Who proposed it: the searcher, `initial_points` or `enqueued`. */
  origin: string;
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

/** Why a trial has its configuration. */
export interface Rationale {
  rule: string;
  /** Trials that it was made of, or lies near. */
  from: number[];
  /** Of trials, that were learned from. */
  results: number;
  score: WireNumber | null;
  text: string;
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
  attempt: number;
  step: number;
  verdict: 'continue' | 'pause' | 'stop' | 'exploit' | 'resize' | 'promote';
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

/** What a trial logs between reports. */
export interface LoggedPoint {
  seq: number;
  time: string;
  attempt: number;
  /** 2.25: a quarter of the way from step 2 to step 3. */
  step: number;
  metrics: WireMetrics;
}

export interface TrialDetail extends Trial {
  rationale: Rationale | null;
  history: HistoryPoint[];
  attempts_list: Attempt[];
  decisions: Decision[];
  checkpoints: Checkpoint[];
}

/** How much each parameter decides about being among the best trials in a metric. */
export interface Importance {
  metric: string;
  trials: number;
  best: number;
  /** Why there is none; else empty. */
  reason: string;
  /** The most important first; they add up to 1. */
  parameters: { name: string; importance: number }[];
}

export interface WireCurve {
  number: number;
  /** Of reports, as they came: a step that is not new replaces what lies from there on. */
  steps: number[];
  values: WireNumber[];
  /** Of what was logged between them, if anything was. They grow. */
  logged_steps?: number[];
  logged_values?: WireNumber[];
  /** In order of time: whose checkpoints the trial has gone on from, and of which step. */
  clones: { donor: number; step: number }[];
}

export interface Curves {
  metric: string;
  seq: number;
  trials: WireCurve[];
}

export interface Executor {
  name: string;
  /** `draining` while something still runs on an executor that takes nothing more. */
  state: 'online' | 'draining' | 'drained' | 'unwell' | 'set_aside' | 'lost';
  address: string;
  labels: Record<string, string>;
  cpus: number;
  cpus_free: number;
  gpus: number;
  gpus_free: number;
  memory_bytes: number;
  memory_free: number;
  /** Parts of gangs there; `ranks` are the first and the last. */
  running: { sweep: string; trial: number; attempt: number; ranks: [number, number] }[];
  drain: { since: string; reason: string; now: boolean } | null;
  /** What it says is wrong with it, as the end of a sentence: nothing more starts there. */
  problem: string | null;
  /** Its gangs kept failing: nothing more starts there for a while. */
  set_aside: { until: string; reason: string } | null;
  /** Of its data folder, and of all memory; null where it does not say. */
  disk_free_bytes: number | null;
  memory_available_bytes: number | null;
  /** Since it was heard last; null while it is not connected. */
  silent_seconds: number | null;
}

/** Hours of nodes, of CPUs and of GPUs. */
export interface Amount {
  nodes: number;
  cpus: number;
  gpus: number;
}

/** What pilots had, and what became of it; `unseen` while nobody looked. */
export interface Hours {
  held: Amount;
  in_use: Amount;
  idle: Amount;
  unseen: Amount;
}

/** A job that brings executors. */
export interface Pilot {
  name: string;
  job: string;
  /** In the batch system's words, as is `reason`. */
  state: string;
  reason: string;
  nodes: number;
  /** Their names, once it has them. */
  node: string;
  ends: string;
  ran_seconds: number;
  /** Those that have joined, by name. */
  executors: string[];
}

/** What a keeper of pilots has said last. */
export interface PilotFleet {
  fleet: string;
  system: string;
  host: string;
  partition: string;
  poll_seconds: number;
  nodes_min: number;
  nodes_max: number;
  nodes_per_pilot: number;
  pilots: Pilot[];
  /** Why gangs that wait get no pilots; `sweep` is empty where it is true of all. */
  hindrances: { sweep: string; text: string }[];
  hours: Hours;
  silent_seconds: number;
  stale: boolean;
}

/** RFC 9457, as the server sends it. */
export interface Problem {
  type?: string;
  title: string;
  status: number;
  detail?: string;
  errors?: { pointer: string; line?: number; column?: number; message: string }[];
}

/** A sweep as it was, or had been. */
export interface Course {
  slot_hours: number;
  cpu_hours: number;
  gpu_hours: number;
  wall_seconds: number;
  steps: number;
  trials: Record<TrialState, number>;
  best: { trial: number; step: number; value: number } | null;
}

export interface ReplayedCourse extends Course {
  /** How much worse its best is than what was recorded; null where it has none. */
  regret: number | null;
  keeps_winner: boolean;
  reason: string;
}

export interface TrialEnd {
  state: TrialState;
  step: number;
  reason: string;
}

/** What a sweep had been under another scheduler. */
export interface Replay {
  metric: string;
  slots: number;
  scheduler: { name: string };
  recorded_scheduler: { name: string };
  /** Trials that go on beyond what was recorded of them. */
  unknown: number;
  recorded: Course;
  /** If those become the worst from there on, and the best. */
  if_worst: ReplayedCourse;
  if_best: ReplayedCourse;
  trials: {
    number: number;
    unknown: boolean;
    recorded: { state: TrialState; step: number };
    if_worst: TrialEnd;
    if_best: TrialEnd;
  }[];
}

/** What a trial's weights were trained with, from each step on, and by which trial. */
export interface Schedule {
  schedule: { step: number; trial: number; config: Config }[];
}
