import { signal } from '@preact/signals';

import { ApiError, api } from '../api/client';
import { isMeasured, type AttuneEvent } from '../api/events';
import type { LoggedPoint, SweepDetail, TrialDetail } from '../api/contract';
import { appendReport } from '../model/trial_model';
import { yieldingAfter, type Yielding } from '../model/yielding';
import { explain, openStream } from './session';
import { throttle } from './throttle';

const refreshMs = 500;

/**
 * One trial in full. Reports are appended as they arrive. Rarer changes (attempts, decisions,
 * checkpoints) cause a new read, because their events contain less than the trial.
 */
export class LiveTrial {
  readonly sweep = signal<SweepDetail | undefined>(undefined);
  readonly trial = signal<TrialDetail | undefined>(undefined);
  readonly error = signal<ApiError | undefined>(undefined);
  /** Values logged between reports. */
  readonly logged = signal<readonly LoggedPoint[]>([]);
  /** Known only from events; the trial does not contain it. */
  readonly yielding = signal<Yielding | undefined>(undefined);
  /** Grows with each report: a hint that the logs have grown too. */
  readonly reports = signal(0);

  /** Logged metrics that occurred in events. */
  private readonly namesSeen = new Set<string>();
  /** Logged values are read up to this seq; later ones are known only from events. */
  private loggedUntil = 0;
  private readonly abort = new AbortController();
  private readonly closeStream: () => void;

  constructor(
    readonly id: string,
    readonly number: number,
  ) {
    this.closeStream = openStream({
      sweep: id,
      onEvents: (events) => this.take(events),
      onResync: () => this.refresh(),
      onRefused: () => this.refresh(),
    });
    this.refresh();
  }

  close(): void {
    this.abort.abort();
    this.closeStream();
  }

  readonly refresh = throttle(refreshMs, async () => {
    const { signal: aborted } = this.abort;
    if (aborted.aborted) return;
    try {
      const [sweep, trial] = await Promise.all([
        api.sweep(this.id, aborted),
        api.trial(this.id, this.number, aborted),
        this.readLogged(aborted),
      ]);
      this.sweep.value = sweep;
      this.trial.value = trial;
      this.error.value = undefined;
    } catch (error) {
      const problem = explain(error);
      if (problem?.status === 404) this.trial.value = undefined; // deleted with its sweep
      this.error.value = problem;
    }
  });

  private async readLogged(aborted: AbortSignal): Promise<void> {
    const points = await api.logged(this.id, this.number, this.loggedUntil, aborted);
    this.loggedUntil = points.at(-1)?.seq ?? this.loggedUntil;
    this.addLogged(points);
  }

  /** Points that are already known change nothing. */
  private addLogged(points: readonly LoggedPoint[]): void {
    const first = points[0];
    if (!first) return;
    const known = this.logged.peek();
    if (first.seq > (known.at(-1)?.seq ?? 0)) {
      this.logged.value = [...known, ...points];
      return;
    }
    const bySeq = new Map([...known, ...points].map((point) => [point.seq, point]));
    this.logged.value = [...bySeq.values()].sort((a, b) => a.seq - b.seq);
  }

  private take(events: AttuneEvent[]): void {
    let trial = this.trial.peek();
    const logged: LoggedPoint[] = [];
    let rare = false;
    for (const event of events) {
      // `waiting_reason` of a trial changes with its sweep, with executors and with other trials.
      if (
        event.kind === 'sweep_changed' ||
        event.kind === 'sweep_edited' ||
        event.kind === 'sweep_deleted' ||
        event.kind === 'sweep_deletion_scheduled' ||
        event.kind === 'sweep_undeleted'
      )
        rare = true;
      if (trial?.waiting_reason && !isMeasured(event)) rare = true;
      if ('trial' in event && event.trial !== this.number) continue;
      this.yielding.value = yieldingAfter(event, this.yielding.peek());
      if (!('trial' in event)) continue;
      if (!isMeasured(event)) rare = true;
      else if (event.kind === 'metrics_logged') logged.push(event);
      else if (trial) trial = appendReport(trial, event, this.sweep.peek()?.metric);
    }
    this.addLogged(logged);
    // The sweep lists the logged metrics. An unknown name means that the list is outdated.
    for (const name of logged.flatMap(({ metrics }) => Object.keys(metrics))) {
      if (this.namesSeen.has(name)) continue;
      this.namesSeen.add(name);
      rare ||= !this.sweep.peek()?.logged_metrics.includes(name);
    }
    if (trial !== this.trial.peek()) {
      this.trial.value = trial;
      this.reports.value += 1;
    }
    if (rare) this.refresh();
  }
}
