import { signal } from '@preact/signals';

import { ApiError, api } from '../api/client';
import type { AttuneEvent } from '../api/events';
import type { Sweep, TrialDetail } from '../api/types';
import { appendReport } from '../model/trial_model';
import { yieldingAfter, type Yielding } from '../model/yielding';
import { explain, openStream } from './session';
import { throttle } from './throttle';

const refreshMs = 500;

/**
 * One trial in full. Reports are appended as they come; everything rarer (attempts, decisions,
 * checkpoints) makes the trial be read again, because its events tell less than the trial does.
 */
export class LiveTrial {
  readonly sweep = signal<Sweep | undefined>(undefined);
  readonly trial = signal<TrialDetail | undefined>(undefined);
  readonly error = signal<ApiError | undefined>(undefined);
  /** As far as events told; the trial itself does not say. */
  readonly yielding = signal<Yielding | undefined>(undefined);
  /** Grows with each report: a hint that the logs have grown too. */
  readonly reports = signal(0);

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

  private readonly refresh = throttle(refreshMs, async () => {
    const { signal: aborted } = this.abort;
    if (aborted.aborted) return;
    try {
      const [sweep, trial] = await Promise.all([
        api.sweep(this.id, aborted),
        api.trial(this.id, this.number, aborted),
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

  private take(events: AttuneEvent[]): void {
    let trial = this.trial.peek();
    let rare = false;
    for (const event of events) {
      // What a trial waits for changes with its sweep, with executors and with other trials.
      if (
        event.kind === 'sweep_changed' ||
        event.kind === 'sweep_extended' ||
        event.kind === 'sweep_edited' ||
        event.kind === 'sweep_deleted'
      )
        rare = true;
      if (trial?.waiting && event.kind !== 'trial_reported') rare = true;
      if ('trial' in event && event.trial !== this.number) continue;
      this.yielding.value = yieldingAfter(event, this.yielding.peek());
      if (!('trial' in event)) continue;
      if (event.kind !== 'trial_reported') rare = true;
      else if (trial) trial = appendReport(trial, event, this.sweep.peek()?.metric);
    }
    if (trial !== this.trial.peek()) {
      this.trial.value = trial;
      this.reports.value += 1;
    }
    if (rare) this.refresh();
  }
}
