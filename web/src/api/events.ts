import type {
  Attempt,
  Config,
  Decision,
  Executor,
  Limits,
  Sweep,
  SweepState,
  TrialState,
  Metrics,
  Real,
} from './contract';

/** An event of the stream; see docs/reference/rest-api.md. */
interface EventBase {
  seq: number;
  sweep: string;
  time: string;
  /** Who caused the event: the name of a token or an executor, or `attune` for the service. */
  actor: string;
}
interface TrialEventBase extends EventBase {
  trial: number;
}

export type SweepCreated = EventBase & {
  kind: 'sweep_created';
  name: string;
  warm_start: string[];
};
export type SweepChanged = EventBase & {
  kind: 'sweep_changed';
  /** Null: unchanged. */
  state: SweepState | null;
  reason: string;
  end_state: Sweep['end_state'];
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
export type SweepAnnotated = EventBase & {
  kind: 'sweep_annotated';
  /** Absent: unchanged; so are absent tags. */
  note?: string;
  tags?: string[];
};
export type SweepDeleted = EventBase & {
  kind: 'sweep_deleted';
};
export type SweepDeletionScheduled = EventBase & {
  kind: 'sweep_deletion_scheduled';
};
export type SweepUndeleted = EventBase & {
  kind: 'sweep_undeleted';
};
export type TrialCreated = TrialEventBase & {
  kind: 'trial_created';
  config: Config;
  state: TrialState;
  origin: string;
  reason: string;
};
export type TrialChanged = TrialEventBase & {
  kind: 'trial_changed';
  state: TrialState;
  reason: string;
  not_before?: string;
  donor?: number;
  donor_step?: number;
  config?: Config;
};
export type TrialYielding = TrialEventBase & {
  kind: 'trial_yielding';
  verdict: Decision['verdict'];
  reason: string;
};
export type TrialAnnotated = TrialEventBase & {
  kind: 'trial_annotated';
  /** Absent: unchanged; so are absent tags. */
  note?: string;
  tags?: string[];
};
export type TrialReported = TrialEventBase & {
  kind: 'trial_reported';
  attempt: number;
  step: number;
  seconds: Real;
  metrics: Metrics;
};
export type MetricsLogged = TrialEventBase & {
  kind: 'metrics_logged';
  attempt: number;
  /** 2.25: a quarter of the way from step 2 to step 3. */
  step: number;
  metrics: Metrics;
};
export type TrialDecided = TrialEventBase &
  Omit<Decision, 'time' | 'policy'> & {
    kind: 'trial_decided';
    milestone: number;
    donor?: number;
    donor_step?: number;
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
  /** Null: unchanged; the executor was drained or resumed. */
  state: Executor['state'] | null;
  cpus: number;
  gpus: number;
  memory_bytes: number;
};

export type AttuneEvent =
  | SweepCreated
  | SweepChanged
  | SweepEdited
  | SweepAnnotated
  | SweepDeleted
  | SweepDeletionScheduled
  | SweepUndeleted
  | TrialCreated
  | TrialChanged
  | TrialYielding
  | TrialAnnotated
  | TrialReported
  | MetricsLogged
  | TrialDecided
  | AttemptChanged
  | CheckpointSaved
  | CheckpointPinned
  | CheckpointDropped
  | ExecutorChanged;

/** Whether the event brings only measured values: it changes no state. */
export function isMeasured(event: AttuneEvent): event is TrialReported | MetricsLogged {
  return event.kind === 'trial_reported' || event.kind === 'metrics_logged';
}

export type EventKind = AttuneEvent['kind'];

export const eventKinds: readonly EventKind[] = [
  'sweep_created',
  'sweep_changed',
  'sweep_edited',
  'sweep_annotated',
  'sweep_deleted',
  'sweep_deletion_scheduled',
  'sweep_undeleted',
  'trial_created',
  'trial_changed',
  'trial_yielding',
  'trial_annotated',
  'trial_reported',
  'metrics_logged',
  'trial_decided',
  'attempt_changed',
  'checkpoint_saved',
  'checkpoint_pinned',
  'checkpoint_dropped',
  'executor_changed',
];
