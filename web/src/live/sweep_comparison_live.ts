import { signal } from '@preact/signals';

import { api, type ApiError } from '../api/client';
import type { AnyObject, SweepDetail, Trial } from '../api/contract';
import type { AttuneEvent } from '../api/events';
import { explain, openStream, unlessMissing } from './session';
import { throttle } from './throttle';

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
  readonly error = signal<ApiError | undefined>(undefined);

  private readonly abort = new AbortController();
  private readonly closeStream: () => void;
  private readonly marked: Set<string>;

  constructor(readonly ids: readonly string[]) {
    this.marked = new Set(ids);
    this.closeStream = openStream({
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
    for (const id of this.ids) this.marked.add(id);
    this.refresh();
  }

  private take(events: readonly AttuneEvent[]): void {
    for (const event of events)
      if ('sweep' in event && this.ids.includes(event.sweep)) this.marked.add(event.sweep);
    if (this.marked.size > 0) this.refresh();
  }

  private readonly refresh = throttle(refreshMs, async () => {
    const { signal: aborted } = this.abort;
    const ids = [...this.marked];
    this.marked.clear();
    for (const id of ids) {
      if (aborted.aborted) return;
      try {
        const read = await unlessMissing(readSweep(id, aborted));
        if (read) this.sweeps.value = new Map(this.sweeps.peek()).set(id, read);
        else this.missing.value = [...new Set([...this.missing.peek(), id])];
        this.error.value = undefined;
      } catch (error) {
        this.marked.add(id);
        this.error.value = explain(error);
      }
    }
  });
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
