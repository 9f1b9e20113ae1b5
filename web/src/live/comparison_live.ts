import { signal, type Signal } from '@preact/signals';

import { api, type ApiError } from '../api/client';
import type { LoggedPoint, SweepDetail, TrialDetail } from '../api/contract';
import { Rereader } from './rereader';
import { unlessMissing } from './session';

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

  private readonly rereader: Rereader<number>;

  constructor(
    readonly id: string,
    readonly numbers: readonly number[],
  ) {
    this.rereader = new Rereader({
      keys: numbers,
      sweep: id,
      keyOf: (event) => ('trial' in event ? event.trial : undefined),
      intervalMs: refreshMs,
      keysPerRead: Infinity,
      read: (marked, aborted) => this.readAll(marked, aborted),
    });
  }

  get error(): Signal<ApiError | undefined> {
    return this.rereader.error;
  }

  close(): void {
    this.rereader.close();
  }

  private async readAll(numbers: readonly number[], aborted: AbortSignal): Promise<void> {
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
  }

  private async read(number: number, aborted: AbortSignal): Promise<ComparedTrial> {
    const before = this.trials.peek().get(number)?.logged ?? [];
    const [trial, logged] = await Promise.all([
      api.trial(this.id, number, aborted),
      api.logged(this.id, number, before.at(-1)?.seq ?? 0, aborted),
    ]);
    return { trial, logged: [...before, ...logged] };
  }
}
