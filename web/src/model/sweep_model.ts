import type {
  AttuneEvent,
  MetricsLogged,
  TrialChanged,
  TrialDecided,
  TrialReported,
} from '../api/events';
import type { SweepDetail, Trial } from '../api/contract';
import type { CurvePage } from '../api/curves';
import { CurveStore } from './curve_store';
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

const recentMs = 30_000;
const mostRecent = 2000;

/**
 * The data of a sweep's page: parts read over REST, kept current by events.
 *
 * The parts are read one after another. The model keeps the events that arrive meanwhile, and applies
 * to each part those that the part does not include. Applying an event again is harmless.
 */
export class SweepModel {
  readonly trials = new Map<number, TrialRow>();
  curves = new CurveStore();
  /** Names of all metrics that any trial has reported or logged. */
  readonly metricNames: Set<string>;
  /** The rows that changed with the newest `commit`; undefined: many did. */
  changes: ReadonlySet<number> | undefined;
  /** Grows with each `commit`. */
  revision = 0;
  private pending: Set<number> | undefined = new Set();
  /** Whether all trials are in `trials`. If not, the server counts them. */
  private complete = false;
  private readonly counts = countStates([]);
  /** Trials whose state or verdict depends on the sweep or on executors. */
  private readonly waiting = new Set<number>();
  private readonly yielding = new Set<number>();
  /** Recent events, because a part that is read later may not include them. */
  private recent: AttuneEvent[] = [];
  /** The step that the newest attempt of a trial resumed from. */
  private readonly resumedFrom = new Map<number, number>();
  /** The last event that the model contains. */
  seq: number;
  /** `trials` has only the rows that were read, because there are very many. */
  isWindowed = false;

  constructor(
    public sweep: SweepDetail,
    /** The last event that the first part includes. */
    private snapshotSeq: number,
    /** The metric that the curves show. */
    public curveMetric: string = sweep.metric.name,
  ) {
    this.seq = snapshotSeq;
    this.metricNames = new Set([sweep.metric.name, ...sweep.logged_metrics]);
  }

  get isComplete(): boolean {
    return this.complete;
  }

  /** Adds trials that the model does not have. `seq`: the last event that they include. */
  addTrials(trials: Iterable<Trial>, seq: number): void {
    const added = new Set<number>();
    for (const trial of trials) {
      if (this.trials.has(trial.number)) continue;
      this.setRow(rowOf(trial));
      for (const name in trial.metrics) this.metricNames.add(name);
      added.add(trial.number);
    }
    this.repeat(seq, added, (event) => this.applyToRow(event));
  }

  /** Removes rows, which may be read again later. */
  dropTrials(numbers: Iterable<number>): void {
    for (const number of numbers) this.forgetRow(number);
    this.pending = undefined;
  }

  /** Adds curves. `points`: the most points of a curve that were asked for. */
  addCurves(page: CurvePage, points: number, metric = this.curveMetric): void {
    if (metric !== this.curveMetric) {
      // The page shows the curves of the old metric until it has some of the new one.
      this.curveMetric = metric;
      this.curves = new CurveStore();
    }
    const added = this.curves.add(page, points);
    this.repeat(page.seq, added, (event) => this.applyToCurve(event));
  }

  /** All trials are read. */
  completeTrials(): void {
    this.complete = true;
    this.recount();
  }

  /** Begins with events after `seq`, if a part is older than the first. Returns the event to begin after. */
  startAfter(seq: number): number {
    this.seq = this.snapshotSeq = Math.min(this.snapshotSeq, seq);
    return this.seq;
  }

  /** Makes the changes since the last call visible in `changes`. */
  commit(): void {
    this.changes = this.pending;
    this.pending = new Set();
    this.revision += 1;
  }

  get hasChanges(): boolean {
    return this.pending === undefined || this.pending.size > 0;
  }

  /** Takes a newer answer. The model keeps its counts of trials, which are newer. */
  refresh(sweep: SweepDetail): void {
    this.sweep = withSameParts(this.sweep, sweep);
    for (const name of sweep.logged_metrics) this.metricNames.add(name);
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
      this.recent.push(event);
      this.applyToRow(event);
      this.applyToCurve(event);
      stale = this.applyToSweep(event) || stale;
    }
    if (events.length > 0) this.recount();
    this.forgetOld();
    return stale;
  }

  // One fact can be several events with the same number, and arrive in several parts.
  private isNew({ seq }: AttuneEvent): boolean {
    return seq > this.snapshotSeq && seq >= this.seq;
  }

  // An answer is at most a few seconds older than the newest event.
  private forgetOld(): void {
    if (this.recent.length < mostRecent) return;
    const newest = Date.parse(this.recent.at(-1)?.time ?? '');
    const old = this.recent.findIndex(({ time }) => newest - Date.parse(time) < recentMs);
    if (old > mostRecent / 2) this.recent = this.recent.slice(old);
  }

  private repeat(
    after: number,
    trials: ReadonlySet<number>,
    apply: (event: AttuneEvent) => void,
  ): void {
    for (const event of this.recent)
      if (event.seq > after && 'trial' in event && trials.has(event.trial)) apply(event);
  }

  private applyToSweep(event: AttuneEvent): boolean {
    switch (event.kind) {
      case 'sweep_changed':
        this.sweep = {
          ...this.sweep,
          state: event.state ?? this.sweep.state,
          reason: event.reason,
          end_state: event.end_state,
        };
        if (event.state !== null) this.resetWaiting();
        for (const number of this.yielding) this.takeYielding(number, event);
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
      case 'sweep_annotated': {
        const { note = this.sweep.note, tags = this.sweep.tags } = event;
        this.sweep = { ...this.sweep, note, tags };
        return false;
      }
      case 'sweep_deletion_scheduled':
      case 'sweep_undeleted':
        return true;
      case 'trial_reported':
        return this.takeReport(event);
      case 'metrics_logged':
        for (const name in event.metrics) this.metricNames.add(name);
        return false;
      case 'trial_created':
      case 'trial_changed':
      case 'attempt_changed':
        return true;
      case 'checkpoint_saved':
        return event.trial === this.sweep.best?.trial;
      default:
        return false;
    }
  }

  private applyToRow(event: AttuneEvent): void {
    switch (event.kind) {
      case 'trial_created':
        if (!this.isWindowed && !this.trials.has(event.trial)) this.setRow(newRow(event));
        return;
      case 'trial_changed':
        this.update(event.trial, (row) => ({
          ...row,
          state: event.state,
          reason: event.reason,
          config: event.config ?? row.config,
          ended: isLive(event.state) ? null : event.time,
          waiting_reason: event.not_before ? `waits until ${formatClock(event.not_before)}` : '',
          yielding: yieldingAfter(event, row.yielding),
        }));
        return;
      case 'trial_yielding':
        return this.takeYielding(event.trial, event);
      case 'trial_reported': {
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
        return;
      }
      case 'trial_decided':
        this.update(event.trial, (row) => ({
          ...row,
          milestone: event.milestone ?? row.milestone,
          config: event.config ?? row.config,
          yielding: yieldingAfter(event, row.yielding),
        }));
        return;
      case 'trial_annotated':
        this.update(event.trial, (row) => ({ ...row, tags: event.tags ?? row.tags }));
        return;
      case 'attempt_changed':
        this.update(event.trial, (row) => ({
          ...row,
          attempt_count: Math.max(row.attempt_count, event.attempt),
        }));
        return;
      case 'checkpoint_saved':
        this.update(event.trial, (row) => ({ ...row, checkpoint: event.path }));
        return;
      default:
        return;
    }
  }

  private applyToCurve(event: AttuneEvent): void {
    switch (event.kind) {
      case 'trial_reported':
      case 'metrics_logged':
        return this.draw(event);
      case 'trial_changed':
      case 'trial_decided':
        return this.takeClone(event);
      case 'attempt_changed':
        this.resumedFrom.set(event.trial, event.resumed_from ?? 0);
        return;
      default:
        return;
    }
  }

  // Whether the sweep must be read again.
  private takeReport(event: TrialReported): boolean {
    for (const name in event.metrics) this.metricNames.add(name);
    const { name } = this.sweep.metric;
    const judged = isCounted(this.sweep, event.metrics) ? event.metrics[name] : undefined;
    if (judged === undefined) return false;
    const best = this.takeBest(event, fromWire(judged));
    return best || (this.sweep.metrics.length > 1 && joinsFront(this.sweep, event.metrics));
  }

  private draw({ kind, trial, attempt, step, metrics }: TrialReported | MetricsLogged): void {
    const drawn = metrics[this.curveMetric];
    if (drawn === undefined) return;
    const value = fromWire(drawn);
    this.curves.change(trial, (curve) => {
      if (kind === 'trial_reported')
        curve.append(step, value, attempt, this.resumedFrom.get(trial));
      else curve.log(step, value);
    });
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
    if (donor !== undefined && step !== undefined && this.curves.has(event.trial))
      this.curves.change(event.trial, (curve) => curve.clone({ donor, step }));
  }

  private update(number: number, change: (row: TrialRow) => TrialRow): void {
    const row = this.trials.get(number);
    if (row) this.setRow(change(row));
  }

  private setRow(row: TrialRow): void {
    const { number, state } = row;
    const before = this.trials.get(number);
    if (before) this.counts[before.state] -= 1;
    this.counts[state] += 1;
    this.trials.set(number, row);
    this.pending?.add(number);
    if (state === 'pending' || state === 'paused') this.waiting.add(number);
    else this.waiting.delete(number);
    if (row.yielding) this.yielding.add(number);
    else this.yielding.delete(number);
  }

  private forgetRow(number: number): void {
    const before = this.trials.get(number);
    if (!before) return;
    this.counts[before.state] -= 1;
    for (const set of [this.trials, this.waiting, this.yielding]) set.delete(number);
  }

  private takeYielding(number: number, event: AttuneEvent): void {
    this.update(number, (row) => ({ ...row, yielding: yieldingAfter(event, row.yielding) }));
  }

  // `waiting_reason` of a trial was read with the trial, and no event reports its changes.
  private resetWaiting(): void {
    const waiting_reason = this.sweep.state === 'paused' ? 'its sweep is paused' : '';
    for (const number of this.waiting) {
      const row = this.trials.get(number);
      if (row && row.waiting_reason !== waiting_reason) this.setRow({ ...row, waiting_reason });
    }
  }

  private recount(): void {
    if (this.complete) this.sweep = { ...this.sweep, trials: { ...this.counts } };
  }
}

// Parts that did not change stay the same objects, so that nothing that depends on them is computed again.
function withSameParts(before: SweepDetail, after: SweepDetail): SweepDetail {
  const parts = ['parameters', 'metrics', 'metric', 'rungs', 'constraints'] as const;
  const same = parts.filter((key) => JSON.stringify(before[key]) === JSON.stringify(after[key]));
  return { ...after, ...Object.fromEntries(same.map((key) => [key, before[key]])) };
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
    tags: [],
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
