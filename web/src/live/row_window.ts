import { signal } from '@preact/signals';

import { api, type TrialPage } from '../api/client';
import type { SweepModel, TrialRow } from '../model/sweep_model';
import { explain } from './session';
import type { RowQuery } from './sweep_live';
import { throttle } from './throttle';

interface Part {
  /** The place of its first row in the order. */
  from: number;
  /** The token that the server began it with; empty for the first one. */
  token: string;
  size: number;
  /** The trials, until they are dropped because the user has moved away. */
  numbers: readonly number[] | undefined;
}

const nearRows = 200;
const farRows = 1000;
const mostRows = 10_000;
const refreshMs = 3000;

/**
 * The rows in view of a sweep with very many trials. The server sorts and filters them; pages follow
 * each other, so a far row is read after those before it.
 */
export class RowWindow {
  /** Grows when rows are read. */
  readonly version = signal(0);
  /** The number of trials that match the filter. */
  length = 0;
  private readonly parts: Part[] = [];
  private nextToken: string | undefined = '';
  private wanted: readonly [first: number, last: number] = [0, nearRows];
  /** Rows to read at the beginning, although they are not in view. */
  private least = 0;
  private reading = false;
  private readonly abort = new AbortController();

  constructor(
    private readonly model: SweepModel,
    private readonly query: RowQuery,
    first: TrialPage | undefined,
  ) {
    if (first) this.take(first, '');
    else void this.read();
  }

  close(): void {
    this.abort.abort();
  }

  /** Undefined while it is read. */
  at(index: number): TrialRow | undefined {
    const part = this.parts.find(({ from, size }) => index >= from && index < from + size);
    const number = part?.numbers?.[index - part.from];
    return number === undefined ? undefined : this.model.trials.get(number);
  }

  /** The place of a trial that is read; -1 for others. */
  indexOf(number: number | undefined): number {
    if (number === undefined) return -1;
    for (const { from, numbers } of this.parts) {
      const at = numbers?.indexOf(number) ?? -1;
      if (at >= 0) return from + at;
    }
    return -1;
  }

  /** The rows that are read, in their order. */
  get rows(): TrialRow[] {
    return this.parts.flatMap(({ numbers }) =>
      (numbers ?? []).flatMap((number) => this.model.trials.get(number) ?? []),
    );
  }

  /** Reads the first rows, for a chart. */
  readFirst(count: number): void {
    this.least = Math.min(count, mostRows);
    void this.read();
  }

  /** Reads rows that are in view or will be. */
  want(first: number, last: number): void {
    this.wanted = [first, Math.min(last, this.length - 1)];
    void this.read();
  }

  /** Reads the rows in view again, because trials have changed. */
  readonly refresh = throttle(refreshMs, async () => {
    const [first, last] = this.wanted;
    for (const part of this.parts) {
      if (part.from > last || part.from + part.size <= first) continue;
      const page = await this.readPage(part.token, part.size);
      if (!page) return;
      this.length = page.total_size;
      this.model.addTrials(page.trials, page.seq);
      part.numbers = page.trials.map(({ number }) => number);
    }
    this.version.value += 1;
  });

  private async read(): Promise<void> {
    if (this.reading) return;
    this.reading = true;
    for (;;) {
      const [first, inView] = this.wanted;
      const last = Math.max(inView, Math.min(this.least, this.length) - 1);
      const dropped = this.parts.find(
        ({ from, size, numbers }) => !numbers && from <= last && from + size > first,
      );
      if (dropped) {
        const page = await this.readPage(dropped.token, dropped.size);
        if (!page) break;
        this.model.addTrials(page.trials, page.seq);
        dropped.numbers = page.trials.map(({ number }) => number);
      } else if (this.nextToken !== undefined && (this.end <= last || this.parts.length === 0)) {
        const token = this.nextToken;
        const page = await this.readPage(token, last - this.end > nearRows ? farRows : nearRows);
        if (!page) break;
        this.take(page, token);
      } else break;
      this.dropFar();
      this.version.value += 1;
    }
    this.reading = false;
  }

  private get end(): number {
    const last = this.parts.at(-1);
    return last ? last.from + last.size : 0;
  }

  private take(page: TrialPage, token: string): void {
    this.length = page.total_size;
    this.model.addTrials(page.trials, page.seq);
    const numbers = page.trials.map(({ number }) => number);
    this.parts.push({ from: this.end, token, size: numbers.length, numbers });
    this.nextToken = page.next_page_token || undefined;
  }

  private async readPage(page_token: string, page_size: number): Promise<TrialPage | undefined> {
    try {
      const query = { ...this.query, page_token, page_size };
      return await api.trials(this.model.sweep.id, query, this.abort.signal);
    } catch (error) {
      explain(error);
      return undefined;
    }
  }

  // Drops the rows that are furthest from the view.
  private dropFar(): void {
    const [first, last] = this.wanted;
    const distance = ({ from, size }: Part): number =>
      Math.max(0, from - last, first - (from + size));
    const read = this.parts
      .filter(({ numbers }) => numbers)
      .sort((a, b) => distance(b) - distance(a));
    let rows = read.reduce((sum, { size }) => sum + size, 0);
    for (const part of read) {
      if (rows <= mostRows || distance(part) === 0) return;
      this.model.dropTrials(part.numbers ?? []);
      part.numbers = undefined;
      rows -= part.size;
    }
  }
}
