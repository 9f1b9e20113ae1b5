import { useCallback, useEffect, useRef, useState } from 'preact/hooks';

import type { ApiError } from '../api/client';
import { explain } from '../live/session';
import { throttle } from '../live/throttle';

interface Options {
  /** A change of these begins again with another question. Until its answer, the old one stays. */
  about: readonly unknown[];
  /** A change of these asks again. */
  changes?: readonly unknown[];
  /** The shortest time between two requests. */
  leastMs: number;
  /** How often to ask without a change, while the tab is visible; undefined: never. */
  everyMs?: number | undefined;
}

interface Answer<Content> {
  answer: Content | undefined;
  error: ApiError | undefined;
  /** Asks again. */
  refresh(): void;
}

/** The newest answer of the server to a question. */
export function useAnswer<Content extends object>(
  ask: (signal: AbortSignal) => Promise<Content>,
  { about, changes = [], leastMs, everyMs }: Options,
): Answer<Content> {
  const [answer, setAnswer] = useState<Content>();
  const [error, setError] = useState<ApiError>();
  const read = useRef<() => void>(() => undefined);
  const refresh = useCallback(() => read.current(), []);
  useEffect(() => {
    const abort = new AbortController();
    read.current = throttle(leastMs, async () => {
      if (abort.signal.aborted) return;
      try {
        setAnswer(await ask(abort.signal));
        setError(undefined);
      } catch (failed) {
        setError(explain(failed));
      }
    });
    return () => abort.abort();
  }, about);
  useEffect(refresh, [...about, ...changes]);
  useEffect(() => {
    if (everyMs === undefined) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden) refresh();
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return { answer, error, refresh };
}
