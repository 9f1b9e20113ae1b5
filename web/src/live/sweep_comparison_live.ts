import { signal, type Signal } from '@preact/signals';

import { api, type ApiError } from '../api/client';
import type { AnyObject, SweepDetail, Trial } from '../api/contract';
import { Rereader } from './rereader';
import { unlessMissing } from './session';

// A sweep has up to many thousand trials, and a comparison is read at leisure.
const refreshMs = 15_000;

export interface ComparedSweep {
  sweep: SweepDetail;
  trials: readonly Trial[];
  /** The sweep file with every default. */
  resolved: AnyObject;
}

/** Several sweeps with their trials. Sweeps with events are read again, at most every 15 seconds. */
export class LiveSweepComparison {
  readonly sweeps = signal<ReadonlyMap<string, ComparedSweep>>(new Map());
  /** The ids that no sweep has. */
  readonly missing = signal<readonly string[]>([]);

  private readonly rereader: Rereader<string>;

  constructor(readonly ids: readonly string[]) {
    this.rereader = new Rereader({
      keys: ids,
      keyOf: (event) => ('sweep' in event ? event.sweep : undefined),
      intervalMs: refreshMs,
      keysPerRead: 1,
      read: ([id], aborted) => this.read(id as string, aborted),
    });
  }

  get error(): Signal<ApiError | undefined> {
    return this.rereader.error;
  }

  close(): void {
    this.rereader.close();
  }

  private async read(id: string, aborted: AbortSignal): Promise<void> {
    const read = await unlessMissing(readSweep(id, aborted));
    if (read) this.sweeps.value = new Map(this.sweeps.peek()).set(id, read);
    else this.missing.value = [...new Set([...this.missing.peek(), id])];
  }
}

async function readSweep(id: string, aborted: AbortSignal): Promise<ComparedSweep> {
  const trials: Trial[] = [];
  const [sweep, resolved] = await Promise.all([
    api.sweep(id, aborted),
    api.resolved(id, aborted),
    api.allTrials(id, (page) => trials.push(...page), aborted),
  ]);
  return { sweep, trials, resolved };
}
