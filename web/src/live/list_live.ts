import { signal } from '@preact/signals';

import { api, type ApiError } from '../api/client';
import type { AttuneEvent } from '../api/events';
import type { Sweep } from '../api/contract';
import { Curve, bestSoFar } from '../model/curve';
import { explain, openStream, unlessMissing } from './session';
import { throttle } from './throttle';

const refreshMs = 1000;
const sparkRefreshMs = 5000;

/** All sweeps. An event marks its sweep; marked sweeps are read again at most once a second. */
export class LiveList {
  readonly sweeps = signal<Sweep[] | undefined>(undefined);
  readonly error = signal<ApiError | undefined>(undefined);
  /** The best value so far over the trials, by sweep; read only for rows that were in view. */
  readonly sparks = signal<ReadonlyMap<string, number[]>>(new Map());

  private readonly abort = new AbortController();
  private readonly closeStream: () => void;
  private readonly marked = new Set<string>();
  private readonly sparkWanted = new Set<string>();

  constructor() {
    this.closeStream = openStream({
      onEvents: (events) => this.take(events),
      onResync: () => this.refreshAll(),
      onRefused: () => this.refreshAll(),
    });
    this.refreshAll();
  }

  close(): void {
    this.abort.abort();
    this.closeStream();
  }

  /** Reads a sweep again, after a request that changed it. */
  readAgain(sweep: string): void {
    this.marked.add(sweep);
    this.refreshMarked();
  }

  /** Called when a row comes into view. */
  wantSpark(sweep: string): void {
    if (this.sparks.peek().has(sweep) || this.sparkWanted.has(sweep)) return;
    this.sparkWanted.add(sweep);
    this.refreshSparks();
  }

  private readonly refreshAll = throttle(refreshMs, async () => {
    await this.guard(async (aborted) => {
      const all: Sweep[] = [];
      await api.sweeps((page) => all.push(...page), aborted);
      this.sweeps.value = all;
      this.error.value = undefined;
    });
  });

  private readonly refreshMarked = throttle(refreshMs, async () => {
    const ids = [...this.marked];
    this.marked.clear();
    await this.guard(async (aborted) => {
      const fresh = new Map<string, Sweep>();
      const gone = new Set<string>();
      for (const id of ids) {
        const sweep = await unlessMissing(api.sweep(id, aborted));
        if (sweep) fresh.set(id, sweep);
        else gone.add(id);
      }
      this.sweeps.value = this.sweeps
        .peek()
        ?.filter((sweep) => !gone.has(sweep.id))
        .map((sweep) => fresh.get(sweep.id) ?? sweep);
    });
  });

  private readonly refreshSparks = throttle(sparkRefreshMs / 10, async () => {
    const ids = [...this.sparkWanted];
    this.sparkWanted.clear();
    await this.guard(async (aborted) => {
      for (const id of ids) {
        const mode = this.sweeps.peek()?.find((sweep) => sweep.id === id)?.metric.mode;
        if (!mode) continue;
        const read = await unlessMissing(api.curves(id, undefined, aborted));
        if (!read) continue;
        const curves = read.trials.map((wire) => [wire.number, Curve.fromWire(wire)] as const);
        this.sparks.value = new Map(this.sparks.peek()).set(id, bestSoFar(curves, mode));
      }
    });
  });

  private readonly renewSparks = throttle(sparkRefreshMs, async () => {
    this.refreshSparks();
  });

  private take(events: AttuneEvent[]): void {
    let created = false;
    for (const event of events) {
      if (event.kind === 'executor_changed' || event.kind === 'metrics_logged') continue;
      if (event.kind === 'sweep_created') created = true;
      this.marked.add(event.sweep);
      if (event.kind === 'trial_reported' && this.sparks.peek().has(event.sweep)) {
        this.sparkWanted.add(event.sweep);
      }
    }
    if (created) this.refreshAll();
    if (this.marked.size > 0) this.refreshMarked();
    if (this.sparkWanted.size > 0) this.renewSparks();
  }

  private async guard(read: (aborted: AbortSignal) => Promise<void>): Promise<void> {
    const { signal: aborted } = this.abort;
    if (aborted.aborted) return;
    try {
      await read(aborted);
    } catch (error) {
      this.error.value = explain(error);
    }
  }
}
