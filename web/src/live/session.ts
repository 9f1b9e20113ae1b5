import { signal } from '@preact/signals';

import { ApiError, api } from '../api/client';
import { PageStream, type StreamOptions, type StreamState } from '../api/stream';
import type { AttuneEvent } from '../api/events';
import type { Executor } from '../api/contract';
import { throttle } from './throttle';

/** State that all pages share: whether the browser is signed in, the stream, the executors. */
export const authorised = signal(true);
export const streamState = signal<StreamState>('closed');
export const executors = signal<Executor[] | undefined>(undefined);

let current: PageStream | undefined;

/** Opens the stream of a page and closes that of the previous page. */
export function openStream(options: Omit<StreamOptions, 'onGone'>): () => void {
  current?.close();
  let stream: PageStream | undefined = undefined;
  stream = new PageStream({
    ...options,
    onGone: () => location.reload(),
    onEvents(events) {
      if (events.some(changesExecutors)) refreshExecutors();
      options.onEvents(events);
    },
    onState(state) {
      // The first state arrives in the constructor, before the stream is the current one.
      if (stream === undefined || stream === current) streamState.value = state;
    },
  });
  const opened = stream;
  current = opened;
  refreshExecutors();
  return () => {
    opened.close();
    if (current === opened) current = undefined;
  };
}

/** The error that a page must show; undefined after an abort, and for 401, which shows the login. */
export function explain(error: unknown): ApiError | undefined {
  if (error instanceof DOMException && error.name === 'AbortError') return undefined;
  if (error instanceof ApiError) {
    if (error.status !== 401) return error;
    authorised.value = false;
    return undefined;
  }
  throw error;
}

const executorsRefreshMs = 1000;

const refreshExecutors = throttle(executorsRefreshMs, async () => {
  try {
    executors.value = await api.executors();
  } catch (error) {
    explain(error);
  }
});

// Free slots change when gangs start and end.
function changesExecutors(event: AttuneEvent): boolean {
  return event.kind === 'executor_changed' || event.kind === 'attempt_changed';
}
