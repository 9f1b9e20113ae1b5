import type {
  AttuneEvent,
  MetricsLogged,
  TrialChanged,
  TrialDecided,
  TrialReported,
} from '../api/events';
import type { Curves, SweepDetail, Trial } from '../api/contract';
import { Curve } from './curve';
import { isCounted, joinsFront } from './front';
import { better, fromWire } from './numbers';
import { countStates, isLive } from './states';
import { formatClock } from './time';
import { yieldingAfter, type Yielding } from './yielding';

/** A trial for the page of a sweep, with its numbers parsed. */
export interface TrialRow extends Omit<Trial, 'best' | 'seconds'> {
  seconds: number;
  best: number | undefined;
  yielding: Yielding | undefined;
}

export function rowOf(trial: Trial): TrialRow {
  const best = trial.best === null ? undefined : fromWire(trial.best);
  return { ...trial, best, seconds: fromWire(trial.seconds), yielding: undefined };
}

/**
 * The data of a sweep's page: a snapshot read over REST, kept current by events.
 *
 * The parts of the snapshot are read one after another, curves first. The trials may therefore
 * already contain events after the curves' seq. Applying these again is harmless.
 */
export class SweepModel {
  readonly trials = new Map<number, TrialRow>();
  readonly curves = new Map<number, Curve>();
  /** Names of all metrics that any trial has reported or logged. */
  readonly metricNames: Set<string>;
  /** The step that the newest attempt of a trial resumed from. */
  private readonly resumedFrom = new Map<number, number>();
  /** The last event that the model contains. */
  seq: number;
  private readonly snapshotSeq: number;

  constructor(
    public sweep: SweepDetail,
    trials: Iterable<Trial>,
    curves: Curves,
    /** The metric that the curves show. */
    readonly curveMetric: string,
  ) {
    this.seq = this.snapshotSeq = curves.seq;
    this.metricNames = new Set([sweep.metric.name, ...sweep.logged_metrics]);
    for (const trial of trials) {
      this.trials.set(trial.number, rowOf(trial));
      for (const name of Object.keys(trial.metrics)) this.metricNames.add(name);
    }
    for (const wire of curves.trials) this.curves.set(wire.number, Curve.fromWire(wire));
    this.recount();
  }

  /** Takes a newer snapshot of the sweep. The model keeps its counts of trials, which are newer. */
  refresh(sweep: SweepDetail): void {
    this.sweep = sweep;
    this.recount();
  }

  /**
   * Returns whether to read the sweep again: only the server knows all of what changed (`waiting_reason`, the
   * best trial's checkpoint, times).
   */
  apply(events: readonly AttuneEvent[]): boolean {
    let stale = false;
    for (const event of events) {
      if (event.kind === 'executor_changed') {
        stale ||= this.sweep.waiting_reason !== '';
        this.resetWaiting();
        this.seq = Math.max(this.seq, event.seq);
        continue;
      }
      if (event.sweep !== this.sweep.id || !this.isNew(event)) continue;
      this.seq = event.seq;
      stale = this.applyOne(event) || stale;
    }
    if (events.length > 0) this.recount();
    return stale;
  }

  // One fact can be several events with the same number, and arrive in several parts.
  private isNew({ seq }: AttuneEvent): boolean {
    return seq > this.snapshotSeq && seq >= this.seq;
  }

  get bestRow(): TrialRow | undefined {
    return this.sweep.best ? this.trials.get(this.sweep.best.trial) : undefined;
  }

  private applyOne(event: AttuneEvent): boolean {
    switch (event.kind) {
      case 'sweep_changed':
        this.sweep = {
          ...this.sweep,
          state: event.state ?? this.sweep.state,
          reason: event.reason,
          end_state: event.end_state,
        };
        if (event.state !== null) this.resetWaiting();
        for (const [number, { yielding }] of this.trials)
          if (yielding) this.takeYielding(number, event);
        return true;
      case 'sweep_edited': {
        const { name, max_trials, max_step, priority, max_concurrent_trials, limits } = event;
        const edited = { time: event.time, actor: event.actor, changes: event.changes };
        this.sweep = {
          ...this.sweep,
          ...{ name, max_trials, max_step, priority, max_concurrent_trials, limits, edited },
          ...{ reason: '', end_state: '' as const },
        };
        return true;
      }
      case 'trial_created':
        if (this.trials.has(event.trial)) return false;
        this.trials.set(event.trial, newRow(event));
        return true;
      case 'trial_changed':
        this.update(event.trial, (row) => ({
          ...row,
          state: event.state,
          reason: event.reason,
          config: event.config ?? row.config,
          ended: isLive(event.state) ? null : event.time,
          waiting_reason: event.not_before ? `waits until ${formatClock(event.not_before)}` : '',
        }));
        this.takeClone(event);
        this.takeYielding(event.trial, event);
        return true;
      case 'trial_yielding':
        this.takeYielding(event.trial, event);
        return false;
      case 'trial_reported':
        return this.report(event);
      case 'metrics_logged':
        this.draw(event);
        return false;
      case 'trial_decided':
        this.update(event.trial, (row) => ({
          ...row,
          milestone: event.milestone ?? row.milestone,
          config: event.config ?? row.config,
        }));
        this.takeClone(event);
        this.takeYielding(event.trial, event);
        return false;
      case 'attempt_changed':
        this.update(event.trial, (row) => ({
          ...row,
          attempt_count: Math.max(row.attempt_count, event.attempt),
        }));
        this.resumedFrom.set(event.trial, event.resumed_from ?? 0);
        return true;
      case 'checkpoint_saved':
        this.update(event.trial, (row) => ({ ...row, checkpoint: event.path }));
        return event.trial === this.sweep.best?.trial;
      default:
        return false;
    }
  }

  private report(event: TrialReported): boolean {
    this.draw(event);
    const { name, mode } = this.sweep.metric;
    const judged = isCounted(this.sweep, event.metrics) ? event.metrics[name] : undefined;
    const value = judged === undefined ? undefined : fromWire(judged);
    this.update(event.trial, (row) => ({
      ...row,
      step: event.step,
      seconds: fromWire(event.seconds),
      metrics: event.metrics,
      best: bestOf(mode, row.best, value),
    }));
    if (value === undefined) return false;
    const best = this.takeBest(event, value);
    return best || (this.sweep.metrics.length > 1 && joinsFront(this.sweep, event.metrics));
  }

  private draw({ kind, trial, attempt, step, metrics }: TrialReported | MetricsLogged): void {
    for (const name of Object.keys(metrics)) this.metricNames.add(name);
    const drawn = metrics[this.curveMetric];
    if (drawn === undefined) return;
    let curve = this.curves.get(trial);
    if (!curve) this.curves.set(trial, (curve = new Curve()));
    const value = fromWire(drawn);
    if (kind === 'trial_reported') curve.append(step, value, attempt, this.resumedFrom.get(trial));
    else curve.log(step, value);
  }

  private takeBest(event: TrialReported, value: number): boolean {
    const { best, metric } = this.sweep;
    if (Number.isNaN(value)) return false;
    if (best && !better(metric.mode, value, fromWire(best.value))) return false;
    this.sweep = {
      ...this.sweep,
      best: {
        trial: event.trial,
        step: event.step,
        value,
        values: this.sweep.metrics.map((each) => fromWire(event.metrics[each.name] ?? 'nan')),
        config: this.trials.get(event.trial)?.config ?? {},
        metrics: event.metrics,
        checkpoint: null,
        checkpoint_step: null,
      },
    };
    return true;
  }

  private takeClone(event: TrialDecided | TrialChanged): void {
    const { donor, donor_step: step } = event;
    if (donor !== undefined && step !== undefined)
      this.curves.get(event.trial)?.clone({ donor, step });
  }

  private update(number: number, change: (row: TrialRow) => TrialRow): void {
    const row = this.trials.get(number);
    if (row) this.trials.set(number, change(row));
  }

  private takeYielding(number: number, event: AttuneEvent): void {
    this.update(number, (row) => ({ ...row, yielding: yieldingAfter(event, row.yielding) }));
  }

  // `waiting_reason` of a trial was read with the trial, and no event reports its changes.
  private resetWaiting(): void {
    const waiting_reason = this.sweep.state === 'paused' ? 'its sweep is paused' : '';
    for (const [number, row] of this.trials) {
      const waits = row.state === 'pending' || row.state === 'paused';
      if (waits && row.waiting_reason !== waiting_reason)
        this.trials.set(number, { ...row, waiting_reason });
    }
  }

  private recount(): void {
    const states = [...this.trials.values()].map((trial) => trial.state);
    this.sweep = { ...this.sweep, trials: countStates(states) };
  }
}

function bestOf(
  mode: 'min' | 'max',
  before: number | undefined,
  value: number | undefined,
): number | undefined {
  if (value === undefined) return before;
  if (before === undefined || better(mode, value, before)) return value;
  return before;
}

function newRow(event: Extract<AttuneEvent, { kind: 'trial_created' }>): TrialRow {
  return {
    sweep: event.sweep,
    number: event.trial,
    state: event.state ?? 'pending',
    reason: '',
    config: event.config,
    origin: event.origin,
    created: event.time,
    ended: null,
    attempt_count: 0,
    step: 0,
    milestone: 0,
    seconds: 0,
    metrics: {},
    best: undefined,
    checkpoint: null,
    waiting_reason: '',
    yielding: undefined,
  };
}
