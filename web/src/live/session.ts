import { computed, signal } from '@preact/signals';

import { ApiError, api, hasServer } from '../api/client';
import { PageStream, type StreamOptions, type StreamState } from '../api/stream';
import type { AttuneEvent } from '../api/events';
import type { Executor, Session } from '../api/contract';
import { throttle } from './throttle';

/** State that all pages share: whether the browser is signed in, the stream, the executors. */
export const authorised = signal(true);
/** The token of the browser; undefined until the server has answered. */
export const session = signal<Session | undefined>(undefined);
/** Whether controls that change something are shown. */
export const mayChange = computed(() => session.value?.role === 'admin');
export const streamState = signal<StreamState>('closed');
/** Since when the server has not answered, in milliseconds since 1970; undefined: it answers. */
export const silentSince = signal<number | undefined>(undefined);
export const executors = signal<Executor[] | undefined>(undefined);

let current: PageStream | undefined;

/** Opens the stream of a page and closes that of the previous page. Without a server, nothing changes. */
export function openStream(options: StreamOptions): () => void {
  if (!hasServer()) return () => undefined;
  current?.close();
  let stream: PageStream | undefined = undefined;
  stream = new PageStream({
    onGone: () => location.reload(),
    ...options,
    onEvents(events) {
      if (events.some(changesExecutors)) refreshExecutors();
      options.onEvents(events);
    },
    onState(state) {
      // The first state arrives in the constructor, before the stream is the current one.
      if (stream !== undefined && stream !== current) return;
      streamState.value = state;
      if (state === 'live') {
        silentSince.value = undefined;
        void readSession();
      }
      if (state === 'reconnecting') silentSince.value ??= Date.now();
    },
  });
  const opened = stream;
  current = opened;
  refreshExecutors();
  void readSession();
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

/** The result of a read, or undefined if the server does not have its subject. */
export async function unlessMissing<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

let readingSession = false;

/** Reads the session once; again if the server did not answer. */
async function readSession(): Promise<void> {
  if (session.peek() || readingSession) return;
  readingSession = true;
  try {
    session.value = await api.session();
  } catch (error) {
    explain(error);
  } finally {
    readingSession = false;
  }
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
