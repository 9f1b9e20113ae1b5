import type { LogMatch } from '../model/logs/log_search';
import type { SearchAnswer, SearchRequest } from './search_worker';

/** Searching a piece of a log may take this long. A simple pattern needs about 10 ms for 1 MiB. */
export const pieceLimitMs = 2000;

/** A search that cannot go on; the message is for the user. */
export class SearchError extends Error {}

/** The part of a Worker that a search uses. */
export type SearchWorker = Pick<Worker, 'postMessage' | 'terminate' | 'onmessage' | 'onerror'>;

const startWorker = (): SearchWorker =>
  new Worker(new URL('./search_worker.ts', import.meta.url), { type: 'module' });

/**
 * Searches a log in a worker. Some regular expressions take years on one line; the worker is then
 * ended, and the page stays usable.
 */
export class BoundedSearch {
  constructor(
    private readonly pattern: RegExp,
    /** The search ends when it has found as many lines. */
    private readonly most: number,
    private readonly signal: AbortSignal,
    private readonly worker = startWorker(),
  ) {}

  /** Waits until the worker runs: reading its code has no limit of time. */
  async start(): Promise<void> {
    const { pattern, most } = this;
    await this.ask({ pattern, most });
  }

  /** Searches the next piece, and returns whether the search has ended. */
  async add(bytes: Uint8Array<ArrayBuffer>, offset: number): Promise<boolean> {
    return (await this.ask({ bytes, offset }, pieceLimitMs)).isFull;
  }

  /** Searches the last line, and returns all lines found. */
  async finish(): Promise<readonly LogMatch[]> {
    return (await this.ask('finish', pieceLimitMs)).matches;
  }

  close(): void {
    this.worker.terminate();
  }

  private async ask(request: SearchRequest, limitMs?: number): Promise<SearchAnswer> {
    const { worker, signal } = this;
    signal.throwIfAborted();
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      return await new Promise((resolve, reject) => {
        worker.onmessage = ({ data }: MessageEvent<SearchAnswer>) => resolve(data);
        worker.onerror = () =>
          reject(new SearchError('The code of the search cannot be read. Load the page again.'));
        signal.onabort = () => reject(signal.reason as Error);
        if (limitMs !== undefined) timer = setTimeout(() => reject(this.slow()), limitMs);
        worker.postMessage(request);
      });
    } finally {
      clearTimeout(timer);
    }
  }

  private slow(): SearchError {
    return new SearchError(
      `The search for ${this.pattern} was stopped: a part of the log took longer than ` +
        `${pieceLimitMs / 1000} s. Avoid repetitions within repetitions, such as (a+)+, or search ` +
        'for plain text.',
    );
  }
}
