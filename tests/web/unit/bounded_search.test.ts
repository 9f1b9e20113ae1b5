import { describe, expect, it, vi } from 'vitest';

import {
  BoundedSearch,
  SearchError,
  pieceLimitMs,
  type SearchWorker,
} from '../../../web/src/live/bounded_search';
import type { SearchAnswer, SearchRequest } from '../../../web/src/live/search_worker';

/** A worker that answers when the test says so. */
class HeldWorker implements SearchWorker {
  onmessage: SearchWorker['onmessage'] = null;
  onerror: SearchWorker['onerror'] = null;
  readonly requests: SearchRequest[] = [];

  postMessage(request: SearchRequest): void {
    this.requests.push(request);
  }

  terminate(): void {}

  answer(data: SearchAnswer): void {
    this.onmessage?.call(this as unknown as Worker, { data } as MessageEvent<SearchAnswer>);
  }
}

function held(pattern = /(a+)+$/) {
  const worker = new HeldWorker();
  const abort = new AbortController();
  return { worker, abort, search: new BoundedSearch(pattern, 9, abort.signal, worker) };
}

const match = { offset: 0, line: 'a', begin: 0, end: 1 };
const piece = new TextEncoder().encode('a\n');

describe('a search in a worker', () => {
  it('returns what the worker has found', async () => {
    const { worker, search } = held(/a/);
    const started = search.start();
    worker.answer({ matches: [], isFull: false });
    await started;
    const added = search.add(piece, 0);
    worker.answer({ matches: [match], isFull: true });
    expect(await added).toBe(true);
    const finished = search.finish();
    worker.answer({ matches: [match], isFull: true });
    expect(await finished).toEqual([match]);
    expect(worker.requests).toEqual([
      { pattern: /a/, most: 9 },
      { bytes: piece, offset: 0 },
      'finish',
    ]);
  });

  it('ends with an error that names the pattern if a piece takes too long', async () => {
    vi.useFakeTimers();
    try {
      const { search } = held();
      const settled = vi.fn();
      const added = search.add(piece, 0).catch((error: unknown) => error);
      void added.then(settled);
      await vi.advanceTimersByTimeAsync(pieceLimitMs - 1);
      expect(settled).not.toHaveBeenCalled();
      await vi.advanceTimersByTimeAsync(1);
      const error = await added;
      expect(error).toBeInstanceOf(SearchError);
      expect((error as SearchError).message).toContain('/(a+)+$/');
    } finally {
      vi.useRealTimers();
    }
  });

  it('may take long to start', async () => {
    vi.useFakeTimers();
    try {
      const { worker, search } = held();
      const started = search.start();
      await vi.advanceTimersByTimeAsync(10 * pieceLimitMs);
      worker.answer({ matches: [], isFull: false });
      await started;
    } finally {
      vi.useRealTimers();
    }
  });

  it('ends at once when the user starts another one', async () => {
    const { abort, search } = held();
    const added = search.add(piece, 0);
    abort.abort();
    await expect(added).rejects.toMatchObject({ name: 'AbortError' });
  });
});
