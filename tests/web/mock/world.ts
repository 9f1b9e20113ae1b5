import type { AttuneEvent, EventKind } from '../../../web/src/api/events';
import type {
  AccessToken,
  Annotation,
  Best,
  Config,
  Decision,
  Executor,
  ExecutorEnvironment,
  ExecutorOccupancy,
  HeldAttempt,
  Importance,
  LoggedPoint,
  Fleet,
  Replay,
  QueuedGang,
  ScheduledDeletion,
  Schedule,
  Session,
  SweepCost,
  SweepDetail,
  SweepState,
  TrialCheckpoint,
  TrialDetail,
  TrialState,
  Curve,
  Metrics,
  Real,
  UserAction,
} from '../../../web/src/api/contract';
import { better, fromWire } from '../../../web/src/model/numbers';
import { CurvePages } from './curve_pages';
import { newSweep, newTrial } from './defaults';

const epochMs = Date.parse('2026-11-21T10:00:00Z');

export interface Points {
  steps: number[];
  values: number[];
}
export type Recording = (trial: number, metric: string) => Points | undefined;

type Told = [kind: EventKind, fields: Record<string, unknown>];
type Listener = (event: AttuneEvent, lastOfFact: boolean) => void;

/** The data of the mock server. Every change appends an event, like in the real server. */
export class World {
  readonly sweeps = new Map<string, SweepDetail>();
  readonly trials = new Map<string, TrialDetail[]>();
  readonly logs = new Map<string, string>();
  /** By metric. */
  readonly importances = new Map<string, Importance>();
  /** The previous state, by sweep. */
  readonly replays = new Map<string, Replay>();
  /** By sweep and trial, s1/3. */
  readonly schedules = new Map<string, Schedule>();
  /** By sweep, trial and attempt, s1/3/1. */
  readonly environments = new Map<string, ExecutorEnvironment[]>();
  readonly logged = new Map<string, LoggedPoint[]>();
  /** By sweep and trial, s1/3: the trials whose checkpoints it has resumed from. */
  readonly clones = new Map<string, Curve['clones']>();
  /** Points that were reported before the history of a trial, by sweep. */
  readonly recorded = new Map<string, Recording>();
  readonly packed = new CurvePages();
  readonly events: AttuneEvent[] = [];
  /** By sweep. */
  readonly costs = new Map<string, SweepCost>();
  /** The actions of users, newest first, by sweep. */
  readonly actions = new Map<string, UserAction[]>();
  /** The sweeps that the page has created, by the key of the request. */
  readonly createdBy = new Map<string, string>();
  /** The role of the browser's token. */
  role: Session['role'] = 'admin';
  executors: Executor[] = [];
  occupancy: ExecutorOccupancy[] = [];
  /** The attempts of the timeline, whatever its period. */
  held: HeldAttempt[] = [];
  queue: QueuedGang[] = [];
  pilots: Fleet[] = [];
  tokens: AccessToken[] = [];
  private readonly listeners = new Set<Listener>();
  private seconds = 0;

  onEvent(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  get seq(): number {
    return this.events.at(-1)?.seq ?? 0;
  }

  /** Returns the events after a number, each with whether it is the last of its fact. */
  eventsAfter(seq: number): [AttuneEvent, boolean][] {
    const { events } = this;
    return events.flatMap((event, i) =>
      event.seq > seq ? [[event, events[i + 1]?.seq !== event.seq]] : [],
    );
  }

  addSweep(sweep: Partial<SweepDetail> & { id: string }): SweepDetail {
    const made = newSweep(this.now(), sweep);
    this.sweeps.set(made.id, made);
    this.trials.set(made.id, []);
    this.emit('sweep_created', { sweep: made.id, name: made.name, warm_start: [] });
    return made;
  }

  scheduleDeletion(id: string, seconds: number): ScheduledDeletion {
    const sweep = this.sweep(id);
    sweep.deletion ??= { time: this.now(), actor: 'ada', seconds_left: seconds };
    this.emit('sweep_deletion_scheduled', { sweep: id });
    return sweep.deletion;
  }

  undelete(id: string): void {
    delete this.sweep(id).deletion;
    this.emit('sweep_undeleted', { sweep: id });
  }

  deleteSweep(id: string): void {
    this.sweeps.delete(id);
    this.trials.delete(id);
    this.emit('sweep_deleted', { sweep: id });
  }

  addTrial(sweep: string, config: Config, state: TrialState = 'pending'): TrialDetail {
    const all = this.trialsOf(sweep);
    const trial = newTrial(this.now(), sweep, all.length, config, state);
    all.push(trial);
    this.sweep(sweep).trials[state] += 1;
    const { origin } = trial;
    this.emit('trial_created', {
      sweep,
      trial: trial.number,
      config,
      state,
      origin,
      reason: trial.rationale?.text,
    });
    return trial;
  }

  start(trial: TrialDetail, executor = 'box'): void {
    const number = trial.attempt_count + 1;
    trial.attempt_count = number;
    const { workers } = this.sweep(trial.sweep);
    const ranks = Array.from({ length: workers }, (_, rank) => ({
      rank,
      executor,
      local_rank: rank,
      cpus: 1,
      gpus: [],
    }));
    const moments = [this.now(), this.now(), this.now()];
    trial.attempts.push({
      number,
      epoch: this.seq,
      state: 'running',
      outcome: '',
      failure: '',
      executor,
      resumed_from: trial.step > 0 ? trial.step : null,
      pids: ranks.map((each) => 800 + trial.number * workers + each.rank),
      ranks,
      decided: moments[0] as string,
      started: moments[1] as string,
      first_step: moments[2] as string,
      ended: null,
    });
    const attempt = {
      sweep: trial.sweep,
      trial: trial.number,
      attempt: number,
      state: 'running',
      outcome: '',
      failure: '',
      executor,
      resumed_from: null,
    };
    this.tell(['attempt_changed', attempt], this.moved(trial, 'running', ''));
  }

  report(trial: TrialDetail, step: number, metrics: Metrics, seconds = step * 4.1): void {
    const sweep = this.sweep(trial.sweep);
    const value = metrics[sweep.metric.name] as Real;
    Object.assign(trial, { step, metrics, seconds });
    trial.history.push({
      step,
      time: this.now(),
      attempt: trial.attempt_count,
      seconds,
      metrics,
    });
    if (trial.best === null || this.isBetter(sweep, value, trial.best)) trial.best = value;
    const { number, attempt_count, config } = trial;
    const values = sweep.metrics.map(({ name }) => fromWire(metrics[name] ?? 'nan'));
    const told: Best = {
      ...{ trial: number, step, value: fromWire(value), values, config, metrics },
      ...{ checkpoint: null, checkpoint_step: null },
    };
    if (sweep.best === null || this.isBetter(sweep, value, sweep.best.value)) sweep.best = told;
    if (!sweep.pareto_front.some((known) => noWorse(sweep, known, told)))
      sweep.pareto_front = [
        ...sweep.pareto_front.filter((known) => !noWorse(sweep, told, known)),
        told,
      ];
    this.emit('trial_reported', {
      sweep: sweep.id,
      trial: number,
      attempt: attempt_count,
      step,
      seconds,
      metrics,
    });
  }

  /** Adds values that a trial logs between its reports. */
  logMetrics(trial: TrialDetail, step: number, metrics: Metrics): void {
    const { sweep: id, number, attempt_count: attempt } = trial;
    const sweep = this.sweep(id);
    sweep.logged_metrics = [...new Set([...sweep.logged_metrics, ...Object.keys(metrics)])].sort();
    this.emit('metrics_logged', { sweep: id, trial: number, attempt, step, metrics });
    const key = `${id}/${number}`;
    const point = { seq: this.seq, time: this.now(), attempt, step, metrics };
    this.logged.set(key, [...(this.logged.get(key) ?? []), point]);
  }

  checkpoint(trial: TrialDetail, bytes = 431_232): void {
    const path = `/srv/attune/data/sweeps/${trial.sweep}/trials/${trial.number}/checkpoints/step-${trial.step}-attempt-${trial.attempt_count}`;
    const digest = 'sha256:9f2c4a';
    const saved = {
      step: trial.step,
      attempt: trial.attempt_count,
      path,
      digest,
      bytes,
    };
    const kept = { pinned: false, dropped: null, reason: '' };
    trial.checkpoints.push({ ...saved, ...kept, time: this.now() });
    trial.checkpoint = path;
    const { best } = this.sweep(trial.sweep);
    if (best?.trial === trial.number) best.checkpoint = path;
    this.emit('checkpoint_saved', {
      sweep: trial.sweep,
      trial: trial.number,
      ...saved,
    });
  }

  pin(trial: TrialDetail, attempt: number, step: number, pinned: boolean): void {
    this.saved(trial, attempt, step).pinned = pinned;
    const { sweep, number } = trial;
    this.emit('checkpoint_pinned', { sweep, trial: number, attempt, step, pinned });
  }

  drop(trial: TrialDetail, attempt: number, step: number, reason: string): void {
    Object.assign(this.saved(trial, attempt, step), { dropped: this.now(), reason });
    const { sweep, number } = trial;
    this.emit('checkpoint_dropped', { sweep, trial: number, attempt, step, reason });
  }

  yield(trial: TrialDetail, verdict: Decision['verdict'], reason: string): void {
    const { sweep, number } = trial;
    this.emit('trial_yielding', { sweep, trial: number, verdict, reason });
  }

  decide(trial: TrialDetail, decision: Omit<Decision, 'time' | 'attempt' | 'policy'>): void {
    trial.decisions.push({
      ...decision,
      policy: 0,
      attempt: trial.attempt_count,
      time: this.now(),
    });
    const { sweep, number, milestone } = trial;
    const decided: Told = ['trial_decided', { sweep, trial: number, ...decision, milestone }];
    if (decision.verdict === 'pause')
      this.tell(decided, this.moved(trial, 'paused', decision.reason));
    else this.tell(decided);
  }

  change(trial: TrialDetail, state: TrialState, reason: string): void {
    this.tell(this.moved(trial, state, reason));
  }

  /** Resumes a trial that the scheduler has paused. */
  promote(trial: TrialDetail, reason: string): void {
    const { attempt_count, step } = trial;
    const verdict: Decision = {
      ...{
        attempt: attempt_count,
        step,
        verdict: 'promote',
        rule: 'asha',
        reason,
        time: this.now(),
      },
      ...{ rung: 0, value: null, cutoff: null, rank: 0, peers: 0, policy: 0 },
    };
    trial.decisions.push(verdict);
    this.change(trial, 'pending', reason);
    this.start(trial);
  }

  /** Lets a trial continue from another trial's checkpoint, in a new attempt. */
  clone(trial: TrialDetail, donor: number, step: number): void {
    const { sweep, number } = trial;
    const known = this.clones.get(`${sweep}/${number}`) ?? [];
    this.clones.set(`${sweep}/${number}`, [...known, { donor, step }]);
    const decision: Omit<Decision, 'time'> = {
      ...{ attempt: trial.attempt_count, step: trial.step, verdict: 'exploit', rule: 'pbt' },
      reason: `clones trial ${donor} of step ${step} at step ${trial.step}`,
      ...{ rung: 0, value: null, cutoff: null, rank: 0, peers: 0, policy: 0 },
    };
    trial.decisions.push({ ...decision, time: this.now() });
    const { config } = trial;
    const told = { sweep, trial: number, ...decision, milestone: 0, config };
    this.emit('trial_decided', { ...told, donor, donor_step: step });
    const attempt = trial.attempts.at(-1);
    if (attempt) Object.assign(attempt, { state: 'ended', outcome: 'paused', ended: this.now() });
    this.change(trial, 'pending', `continues as a clone of trial ${donor}`);
    this.start(trial);
  }

  private moved(trial: TrialDetail, state: TrialState, reason: string): Told {
    const { trials } = this.sweep(trial.sweep);
    trials[trial.state] -= 1;
    trials[state] += 1;
    trial.state = state;
    trial.reason = reason;
    const over = state !== 'running' && state !== 'pending';
    const attempt = trial.attempts.at(-1);
    if (over && attempt && attempt.state !== 'ended') {
      attempt.state = 'ended';
      attempt.outcome = state === 'completed' ? 'finished' : state;
      attempt.ended = this.now();
    }
    if (over && state !== 'paused') trial.ended = this.now();
    return ['trial_changed', { sweep: trial.sweep, trial: trial.number, state, reason }];
  }

  changeSweep(id: string, state: SweepState, reason: string): void {
    const sweep = this.sweep(id);
    Object.assign(sweep, { state, reason, end_state: '', ended: null });
    if (state !== 'running' && state !== 'paused') sweep.ended = this.now();
    this.emit('sweep_changed', { sweep: id, state, reason, end_state: '' });
  }

  stopSweep(id: string, end_state: SweepState, reason: string): void {
    Object.assign(this.sweep(id), { end_state, reason });
    this.emit('sweep_changed', { sweep: id, state: null, reason, end_state });
  }

  edit(id: string, change: Partial<SweepDetail>, changes: string[]): void {
    const sweep = Object.assign(this.sweep(id), change);
    sweep.resolved_file_as_sent ||= sweep.file;
    sweep.resolved_file = sweep.resolved_file_as_sent.replace(
      /max_trials: \d+/,
      `max_trials: ${sweep.max_trials}`,
    );
    const { name, max_trials, max_step, priority, max_concurrent_trials, limits } = sweep;
    const time = this.now();
    sweep.edited = { time, actor: 'admin', changes };
    this.emit('sweep_edited', {
      ...{ sweep: id, name, max_trials, max_step, priority, max_concurrent_trials, limits },
      ...{ changes, time },
    });
  }

  /** Changes the note and the tags of a sweep, or of a trial of it, as the server does. */
  annotate(of: SweepDetail | TrialDetail, changes: Annotation): void {
    const { note, tags, add_tags = [], remove_tags = [] } = changes;
    const kept = tags ?? of.tags.filter((tag) => !remove_tags.includes(tag));
    Object.assign(of, {
      note: note ?? of.note,
      tags: [...new Set([...kept, ...add_tags])],
    });
    const told = { note: of.note, tags: of.tags };
    if ('number' in of)
      this.emit('trial_annotated', { sweep: of.sweep, trial: of.number, ...told });
    else this.emit('sweep_annotated', { sweep: of.id, ...told });
  }

  /** Null resumes the executor. Returns undefined if no executor has this name. */
  drain(name: string, asked: { reason?: unknown; now?: unknown } | null): Executor | undefined {
    const found = this.executors.find((executor) => executor.name === name);
    if (!found) return undefined;
    const reason = typeof asked?.reason === 'string' ? asked.reason : '';
    found.drain = asked && { since: this.now(), reason, now: asked.now === true };
    if (found.state !== 'lost') found.state = asked ? 'draining' : 'online';
    this.emit('executor_changed', { executor: name, state: null, drained: asked !== null });
    return found;
  }

  log(trial: TrialDetail, rank: number, text: string): void {
    const key = logKey(trial.sweep, trial.number, trial.attempt_count, rank);
    this.logs.set(key, (this.logs.get(key) ?? '') + text);
  }

  /** All points of a trial in a metric. */
  pointsOf({ sweep, number, history }: TrialDetail, metric: string): Points {
    const recorded = this.recorded.get(sweep)?.(number, metric);
    const points = history.filter((point) => metric in point.metrics);
    return {
      steps: [...(recorded?.steps ?? []), ...points.map(({ step }) => step)],
      values: [
        ...(recorded?.values ?? []),
        ...points.map(({ metrics }) => fromWire(metrics[metric] as Real)),
      ],
    };
  }

  sweep(id: string): SweepDetail {
    const sweep = this.sweeps.get(id);
    if (!sweep) throw new Error(`the mock has no sweep ${id}`);
    return sweep;
  }

  trialsOf(id: string): TrialDetail[] {
    const trials = this.trials.get(id);
    if (!trials) throw new Error(`the mock has no sweep ${id}`);
    return trials;
  }

  private saved(trial: TrialDetail, attempt: number, step: number): TrialCheckpoint {
    const found = trial.checkpoints.find((each) => each.attempt === attempt && each.step === step);
    if (!found) throw new Error(`the mock has no checkpoint ${attempt}-${step}`);
    return found;
  }

  trial(sweep: string, number: number): TrialDetail {
    const trial = this.trialsOf(sweep)[number];
    if (!trial) throw new Error(`the mock has no trial ${number} in ${sweep}`);
    return trial;
  }

  // Grows with every read, so that events are two seconds apart, independent of the clock.
  private now(): string {
    this.seconds += 2;
    return new Date(epochMs + this.seconds * 1000).toISOString().replace('Z', '000Z');
  }

  private isBetter(sweep: SweepDetail, a: Real, b: Real): boolean {
    return better(sweep.metric.mode, fromWire(a), fromWire(b));
  }

  private emit(...told: Told): void {
    this.tell(told);
  }

  // A fact is one event or several events with the same number.
  private tell(...fact: Told[]): void {
    const seq = this.seq + 1;
    fact.forEach(([kind, fields], i) => {
      const event = { kind, seq, time: this.now(), actor: 'admin', ...fields } as AttuneEvent;
      this.events.push(event);
      for (const listener of this.listeners) listener(event, i === fact.length - 1);
    });
  }
}

// Whether a report is at least as good as another one in all metrics.
function noWorse({ metrics }: SweepDetail, one: Best, other: Best): boolean {
  return metrics.every(
    ({ mode }, i) =>
      !better(mode, fromWire(other.values[i] ?? 'nan'), fromWire(one.values[i] ?? 'nan')),
  );
}

export function logKey(sweep: string, trial: number, attempt: number, rank: number): string {
  return `${sweep}/${trial}/${attempt}/${rank}`;
}
