import { signal } from '@preact/signals';

import {
  ApiError,
  api,
  localProblem,
  type CurveQuery,
  type TrialPage,
  type TrialQuery,
} from '../api/client';
import type { AttuneEvent } from '../api/events';
import { countTrials } from '../model/states';
import { SweepModel } from '../model/sweep_model';
import { explain, openStream } from './session';
import { throttle } from './throttle';

/** The page keeps up to this many trials; of more, it reads the rows in view. */
const mostKeptTrials = 10_000;

const headerRefreshMs = 1000;
const retryMs = 2000;
const firstRows = 200;
const laterRows = 1000;
const bestCurves = 100;
const finePoints = 256;
const coarsePoints = 64;
/** All curves of a sweep with at most this many trials are read with `finePoints`. */
const fewTrials = 300;
/** With few trials the order of the table follows every event, with many after this time. */
const commitMs = 250;
const fewRows = 500;

/** The order and the filter of the table, for the server. */
export type RowQuery = Pick<TrialQuery, 'order_by' | 'filter'>;

/** The reading has ended: the page was closed, or the server refused. */
class Stopped extends Error {}

/**
 * Keeps a SweepModel current: parts read over REST, and the events after the first part.
 * The order of the parts: the sweep and the first rows, the best curves, other trials, all curves.
 */
export class LiveSweep {
  readonly error = signal<ApiError | undefined>(undefined);
  /** Grows with every change of the model. */
  readonly version = signal(0);
  /** The part that the page still reads. */
  readonly reading = signal<'' | 'trials' | 'curves'>('');
  /** Undefined until the first rows are read. */
  model: SweepModel | undefined;
  /** The first rows of the table, if the page does not keep all. */
  firstPage: { query: RowQuery; page: TrialPage } | undefined;

  private readonly abort = new AbortController();
  private closeStream: (() => void) | undefined;
  private stale = false;
  /** The model that the events change. It differs from `model` while the page starts again. */
  private followed: SweepModel | undefined;
  private commitTimer: ReturnType<typeof setTimeout> | undefined;
  /** Distinguish a newer reading of curves, or of everything, from an older one. */
  private curveRun = 0;
  private loadRun = 0;

  constructor(
    readonly id: string,
    private metric: string | undefined,
    private readonly query: RowQuery,
  ) {
    void this.start();
  }

  close(): void {
    this.abort.abort();
    clearTimeout(this.commitTimer);
    this.closeStream?.();
  }

  /** Whether the server sorts and filters. */
  get isWindowed(): boolean {
    return this.firstPage !== undefined;
  }

  /** Reads the sweep again, because no event reports `waiting_reason` and the best trial's checkpoint. */
  readonly refreshHeader = throttle(headerRefreshMs, async () => {
    if (this.abort.signal.aborted) return;
    try {
      const sweep = await api.sweep(this.id, this.abort.signal);
      this.followed?.refresh(sweep);
      this.bump();
    } catch (error) {
      explain(error);
    }
  });

  /** Shows the curves of another metric when the first of them are read. */
  showMetric(metric: string | undefined): void {
    if (metric === this.metric) return;
    this.metric = metric;
    const model = this.followed;
    // Before the first rows are read, `load` takes the new metric.
    if (model) void this.endQuietly(this.readCurves(model));
  }

  /** Curves of some trials within a range of steps, in detail. */
  async readDetail(trials: readonly number[], first: number, last: number, points: number) {
    const query = { trials, first_step: first, last_step: last, points, metric: this.metric };
    return api.curvePage(this.id, query, this.abort.signal);
  }

  private async start(): Promise<void> {
    await this.endQuietly(this.load());
  }

  private async endQuietly(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      if (!(error instanceof Stopped)) throw error;
    }
  }

  private async load(): Promise<void> {
    this.loadRun += 1;
    const run = this.loadRun;
    const [sweep, page] = await this.persist(() =>
      Promise.all([api.sweep(this.id, this.abort.signal), this.readFirstRows()]),
    );
    const total = countTrials(sweep.trials);
    const model = new SweepModel(sweep, page.seq, this.metric);
    model.addTrials(page.trials, page.seq);
    const restarts = this.model !== undefined;
    const isWindowed = total > mostKeptTrials;
    const isWhole = page.trials.length >= total;
    model.isWindowed = isWindowed;
    if (isWhole) model.completeTrials();
    model.commit();
    if (!restarts) {
      this.firstPage = isWindowed ? { query: this.query, page } : undefined;
      this.show(model);
    }
    this.reading.value = 'curves';
    this.followed = model;
    const follow = (seq: number): void => this.follow(model, seq);
    await this.readCurves(model, {
      total,
      follow,
      between: async () => {
        if (!isWindowed && !isWhole) await this.readRows(model);
      },
    });
    if (run !== this.loadRun) return;
    if (restarts) {
      this.firstPage = isWindowed ? { query: this.query, page } : undefined;
      this.show(model);
    }
    // The sweep was read before the first event that the page follows.
    this.refreshHeader();
  }

  private show(model: SweepModel): void {
    this.model = model;
    this.error.value = undefined;
    this.bump();
  }

  private async readFirstRows(): Promise<TrialPage> {
    const { id } = this;
    const { signal: aborted } = this.abort;
    try {
      return await api.trials(id, { ...this.query, page_size: firstRows }, aborted);
    } catch (error) {
      // The box names the error in a filter; the page shows all trials.
      if (!(error instanceof ApiError) || error.status !== 400) throw error;
      return api.trials(id, { page_size: firstRows }, aborted);
    }
  }

  // All other trials by their numbers, because these do not change meanwhile.
  private async readRows(model: SweepModel): Promise<void> {
    this.reading.value = 'trials';
    const read = (page_token: string): Promise<TrialPage> =>
      this.persist(() =>
        api.trials(this.id, { page_size: laterRows, page_token }, this.abort.signal),
      );
    let reading: Promise<TrialPage> | undefined = read('');
    while (reading) {
      const page: TrialPage = await reading;
      // The server reads the next page while this one is applied.
      reading = page.next_page_token ? read(page.next_page_token) : undefined;
      model.addTrials(page.trials, page.seq);
      this.changed(model);
    }
    model.completeTrials();
    this.changed(model);
  }

  private async readCurves(
    model: SweepModel,
    first: { total: number; follow?(seq: number): void; between?(): Promise<void> } = {
      total: countTrials(model.sweep.trials),
    },
  ): Promise<void> {
    this.curveRun += 1;
    const run = this.curveRun;
    const { metric } = this;
    this.reading.value = 'curves';
    const read = (query: CurveQuery) =>
      this.persist(() => api.curvePage(this.id, { metric, ...query }, this.abort.signal));
    const isFew = first.total <= fewTrials;
    const points = isFew ? finePoints : coarsePoints;
    const take = (page: Awaited<ReturnType<typeof read>>, most: number): void => {
      model.addCurves(page, most, metric ?? model.sweep.metric.name);
      this.bump();
    };

    let page = await read(isFew ? { points } : { points: finePoints, best: bestCurves });
    // The curves may be older than the rows; the stream begins with the older of both.
    first.follow?.(page.seq);
    if (run === this.curveRun) take(page, finePoints);
    await first.between?.();
    if (run !== this.curveRun) return;
    this.reading.value = 'curves';
    if (!isFew) {
      page = await read({ points });
      if (run !== this.curveRun) return;
      take(page, points);
    }
    while (page.next !== undefined) {
      page = await read({ points, from: page.next });
      if (run !== this.curveRun) return;
      take(page, points);
    }
    this.reading.value = '';
  }

  // Repeats a read until the server answers.
  private async persist<T>(read: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await read();
      } catch (error) {
        const problem = explain(error);
        if (!problem) throw new Stopped();
        const passes = problem.status === 0 || problem.status === 429 || problem.status >= 500;
        if (!this.model || !passes) this.error.value = problem;
        if (!passes) throw new Stopped();
        await new Promise((resolve) => setTimeout(resolve, retryMs));
        if (this.abort.signal.aborted) throw new Stopped();
      }
    }
  }

  private follow(model: SweepModel, seq: number): void {
    if (this.abort.signal.aborted) return;
    this.closeStream?.();
    this.closeStream = openStream({
      sweep: this.id,
      after: model.startAfter(seq),
      onEvents: (events) => this.take(model, events),
      onResync: () => undefined, // `after` is always known here
      onRefused: () => {
        this.stale = true;
        this.refreshHeader();
      },
      onGone: () => {
        this.curveRun += 1;
        void this.start();
      },
    });
  }

  private take(model: SweepModel, events: AttuneEvent[]): void {
    if (events.some((event) => event.kind === 'sweep_deleted' && event.sweep === this.id))
      return this.end();
    const stale = model.apply(events) || this.stale;
    this.stale = false;
    this.changed(model);
    if (stale) this.refreshHeader();
  }

  // Content of rows changes with the next frame, their order a little later.
  private changed(model: SweepModel): void {
    if (model.trials.size <= fewRows) model.commit();
    else
      this.commitTimer ??= setTimeout(() => {
        this.commitTimer = undefined;
        model.commit();
        this.bump();
      }, commitMs);
    this.bump();
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
