import { signal } from '@preact/signals';

import { api, type ApiError } from '../api/client';
import type { AttuneEvent } from '../api/events';
import type { LoggedPoint, SweepDetail, TrialDetail } from '../api/contract';
import { explain, openStream, unlessMissing } from './session';
import { throttle } from './throttle';

const refreshMs = 1000;

export interface ComparedTrial {
  trial: TrialDetail;
  logged: readonly LoggedPoint[];
}

/** Several trials of a sweep in full. A trial with an event is read again, at most once a second. */
export class LiveComparison {
  readonly sweep = signal<SweepDetail | undefined>(undefined);
  readonly trials = signal<ReadonlyMap<number, ComparedTrial>>(new Map());
  /** The numbers that no trial has. */
  readonly missing = signal<readonly number[]>([]);
  readonly error = signal<ApiError | undefined>(undefined);

  private readonly abort = new AbortController();
  private readonly closeStream: () => void;
  private readonly marked: Set<number>;

  constructor(
    readonly id: string,
    readonly numbers: readonly number[],
  ) {
    this.marked = new Set(numbers);
    this.closeStream = openStream({
      sweep: id,
      onEvents: (events) => this.take(events),
      onResync: () => this.refreshAll(),
      onRefused: () => this.refreshAll(),
    });
    this.refresh();
  }

  close(): void {
    this.abort.abort();
    this.closeStream();
  }

  private refreshAll(): void {
    for (const number of this.numbers) this.marked.add(number);
    this.refresh();
  }

  private take(events: readonly AttuneEvent[]): void {
    for (const event of events)
      if ('trial' in event && this.numbers.includes(event.trial)) this.marked.add(event.trial);
    if (this.marked.size > 0) this.refresh();
  }

  private readonly refresh = throttle(refreshMs, async () => {
    const { signal: aborted } = this.abort;
    if (aborted.aborted) return;
    const numbers = [...this.marked];
    this.marked.clear();
    try {
      const [sweep, ...read] = await Promise.all([
        api.sweep(this.id, aborted),
        ...numbers.map((number) => unlessMissing(this.read(number, aborted))),
      ]);
      const trials = new Map(this.trials.peek());
      const missing = new Set(this.missing.peek());
      numbers.forEach((number, i) => {
        const found = read[i];
        if (found) trials.set(number, found);
        else missing.add(number);
      });
      this.sweep.value = sweep;
      this.trials.value = trials;
      this.missing.value = [...missing];
      this.error.value = undefined;
    } catch (error) {
      for (const number of numbers) this.marked.add(number);
      this.error.value = explain(error);
    }
  });

  private async read(number: number, aborted: AbortSignal): Promise<ComparedTrial> {
    const before = this.trials.peek().get(number)?.logged ?? [];
    const [trial, logged] = await Promise.all([
      api.trial(this.id, number, aborted),
      api.logged(this.id, number, before.at(-1)?.seq ?? 0, aborted),
    ]);
    return { trial, logged: [...before, ...logged] };
  }
}
