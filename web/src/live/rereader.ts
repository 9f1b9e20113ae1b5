import { signal } from '@preact/signals';

import type { ApiError } from '../api/client';
import type { AttuneEvent } from '../api/events';
import { explain, openStream } from './session';
import { throttle } from './throttle';

export interface RereaderOptions<Key> {
  keys: readonly Key[];
  /** Only events of this sweep; by default those of all sweeps. */
  sweep?: string;
  keyOf: (event: AttuneEvent) => Key | undefined;
  intervalMs: number;
  /** The most keys for one call of `read`. */
  keysPerRead: number;
  /** Reads these things. If it fails, they are read again after the next event. */
  read: (keys: readonly Key[], aborted: AbortSignal) => Promise<void>;
}

/** Reads things, and again those with events, at most once in each interval. */
export class Rereader<Key> {
  readonly error = signal<ApiError | undefined>(undefined);

  private readonly abort = new AbortController();
  private readonly closeStream: () => void;
  private readonly marked: Set<Key>;
  private readonly refresh: () => void;

  constructor(private readonly options: RereaderOptions<Key>) {
    this.marked = new Set(options.keys);
    this.refresh = throttle(options.intervalMs, () => this.readMarked());
    this.closeStream = openStream({
      ...(options.sweep !== undefined && { sweep: options.sweep }),
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
    for (const key of this.options.keys) this.marked.add(key);
    this.refresh();
  }

  private take(events: readonly AttuneEvent[]): void {
    for (const event of events) {
      const key = this.options.keyOf(event);
      if (key !== undefined && this.options.keys.includes(key)) this.marked.add(key);
    }
    if (this.marked.size > 0) this.refresh();
  }

  private async readMarked(): Promise<void> {
    const { keysPerRead, read } = this.options;
    const { signal: aborted } = this.abort;
    let rest = [...this.marked];
    this.marked.clear();
    do {
      if (aborted.aborted) return;
      const keys = rest.slice(0, keysPerRead);
      rest = rest.slice(keys.length);
      try {
        await read(keys, aborted);
        this.error.value = undefined;
      } catch (error) {
        for (const key of keys) this.marked.add(key);
        this.error.value = explain(error);
      }
    } while (rest.length > 0);
  }
}
