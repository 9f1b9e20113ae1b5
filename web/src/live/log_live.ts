import { signal } from '@preact/signals';

import { ApiError, api, type LogChunk } from '../api/client';
import { LogTail } from '../model/logs/log_tail';
import { explain } from './session';

export interface LogPlace {
  sweep: string;
  trial: number;
  attempt: number;
  rank: number;
}

const chunkBytes = 64 * 1024;
const pollMs = 1000;

/** The log of one rank. Reads the end at once and, while followed, new lines. */
export class LiveLog {
  readonly text = signal('');
  readonly begin = signal(0);
  readonly error = signal<ApiError | undefined>(undefined);

  private readonly tail = new LogTail();
  private readonly abort = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private reading: Promise<void>;
  private following = false;
  private started = false;
  private gap: LogChunk['gap'];

  constructor(private readonly at: LogPlace) {
    this.reading = this.readNew();
  }

  close(): void {
    this.abort.abort();
    clearTimeout(this.timer);
  }

  /** While on, checks once a second whether the log has grown. */
  follow(on: boolean): void {
    if (on === this.following) return;
    this.following = on;
    clearTimeout(this.timer);
    if (on) this.poll();
  }

  /** Checks now, because a report arrived or the attempt ended. */
  nudge(): void {
    this.reading = this.reading.then(() => this.readNew());
  }

  async readEarlier(): Promise<void> {
    const end = this.endOfEarlier();
    const limit = Math.min(chunkBytes, end);
    if (limit === 0) return;
    await this.guard(async () => {
      const chunk = await this.read(end - limit, limit);
      this.tail.prepend(chunk.bytes, chunk.offset);
    });
  }

  /** Where the text ends that precedes the text shown: at its beginning, or before the gap that it begins in. */
  private endOfEarlier(): number {
    const { begin } = this.tail;
    const { gap } = this;
    return gap && gap.begin < begin && begin <= gap.end ? gap.begin : begin;
  }

  private poll(): void {
    this.timer = setTimeout(() => {
      this.nudge();
      void this.reading.then(() => this.following && this.poll());
    }, pollMs);
  }

  private async readNew(): Promise<void> {
    await this.guard(async () => {
      let size: number;
      do {
        const chunk = await this.read(this.started ? this.tail.end : -chunkBytes, chunkBytes);
        this.started = true;
        size = chunk.size;
        // A file shorter than the text read so far is another file: start with its end.
        if (size < this.tail.end) this.started = false;
        else if (chunk.bytes.length > 0) this.tail.append(chunk.bytes, chunk.offset);
        if (chunk.bytes.length === 0) break;
      } while (this.tail.end < size);
    });
  }

  private async read(offset: number, limit: number): Promise<LogChunk> {
    const { sweep, trial, attempt, rank } = this.at;
    const chunk = await api.log(sweep, trial, { attempt, rank, offset, limit }, this.abort.signal);
    this.gap = chunk.gap;
    return chunk;
  }

  private async guard(action: () => Promise<void>): Promise<void> {
    if (this.abort.signal.aborted) return;
    try {
      await action();
      this.error.value = undefined;
    } catch (error) {
      this.error.value = explain(error);
    }
    this.text.value = this.tail.text;
    this.begin.value = this.tail.begin;
  }
}
