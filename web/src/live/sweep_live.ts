import { signal } from '@preact/signals';

import { ApiError, api, localProblem } from '../api/client';
import type { AttuneEvent } from '../api/events';
import type { Trial } from '../api/contract';
import { SweepModel } from '../model/sweep_model';
import { explain, openStream } from './session';
import { throttle } from './throttle';

const headerRefreshMs = 1000;
const retryMs = 2000;

/** Keeps a SweepModel current: a snapshot over REST, then events after the seq of the snapshot. */
export class LiveSweep {
  readonly error = signal<ApiError | undefined>(undefined);
  /** Grows with every change of the model. */
  readonly version = signal(0);
  /** Undefined until the snapshot is read. */
  model: SweepModel | undefined;

  private readonly abort = new AbortController();
  private closeStream: (() => void) | undefined;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private stale = false;

  constructor(
    readonly id: string,
    readonly metric: string | undefined,
  ) {
    void this.load();
  }

  close(): void {
    this.abort.abort();
    clearTimeout(this.retry);
    this.closeStream?.();
  }

  /** Reads the sweep again, because no event reports `waiting_reason` and the best trial's checkpoint. */
  readonly refreshHeader = throttle(headerRefreshMs, async () => {
    if (this.abort.signal.aborted) return;
    try {
      this.model?.refresh(await api.sweep(this.id, this.abort.signal));
      this.bump();
    } catch (error) {
      explain(error);
    }
  });

  private async load(): Promise<void> {
    try {
      const { signal: aborted } = this.abort;
      // Curves first: the stream continues at their seq, and later reads are not older.
      const curves = await api.curves(this.id, this.metric, aborted);
      const trials: Trial[] = [];
      const [sweep] = await Promise.all([
        api.sweep(this.id, aborted),
        api.trials(this.id, (page) => trials.push(...page), aborted),
      ]);
      this.model = new SweepModel(sweep, trials, curves, curves.metric);
      this.error.value = undefined;
      this.bump();
      this.follow(this.model.seq);
    } catch (error) {
      const problem = explain(error);
      this.error.value = problem;
      // A server that does not answer may return; a sweep that does not exist will not.
      const passes = problem !== undefined && (problem.status === 0 || problem.status >= 500);
      if (passes) this.retry = setTimeout(() => void this.load(), retryMs);
    }
  }

  private follow(after: number): void {
    this.closeStream?.();
    this.closeStream = openStream({
      sweep: this.id,
      after,
      onEvents: (events) => this.take(events),
      onResync: () => undefined, // `after` is always known here
      onRefused: () => {
        this.stale = true;
        this.refreshHeader();
      },
    });
  }

  private take(events: AttuneEvent[]): void {
    if (!this.model) return;
    if (events.some((event) => event.kind === 'sweep_deleted' && event.sweep === this.id))
      return this.end();
    const stale = this.model.apply(events) || this.stale;
    this.stale = false;
    this.bump();
    if (stale) this.refreshHeader();
  }

  private end(): void {
    this.close();
    const title = 'This sweep was deleted';
    this.error.value = new ApiError(localProblem(title, 404));
  }

  private bump(): void {
    this.version.value += 1;
  }
}
