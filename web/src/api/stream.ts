import { eventKinds, type AttuneEvent } from './events';

export type StreamState = 'connecting' | 'live' | 'reconnecting' | 'closed';

export interface StreamOptions {
  /** Only events of this sweep; all if absent. */
  sweep?: string;
  /** Start after this event; if absent, with the next event. */
  after?: number;
  /** The events since the last frame, each once, in the order of the log. */
  onEvents(events: AttuneEvent[]): void;
  /**
   * The stream has started at an unknown position of the log. The page must read the earlier state over
   * REST; it misses no later event.
   */
  onResync(): void;
  /** The server refused the stream (not authorised, restarting…); the stream retries. */
  onRefused(): void;
  /**
   * The log has no such position: a backup was restored. What the page knows may be of the part that
   * was lost, so the page must start again. The stream is closed.
   */
  onGone?(): void;
  onState?(state: StreamState): void;
}

/** What the stream needs from the browser, or from a test. */
export interface StreamEnvironment {
  connect(url: string): EventSource;
  /** The status that the URL answers with, which EventSource does not tell; 0: none. */
  status?(url: string): Promise<number>;
  nextFrame(callback: () => void): void;
  retry(callback: () => void): void;
  hidden(): boolean;
  onVisibility(callback: () => void): () => void;
}

const retryMs = 2000;
const gone = 410;
const connecting = 0;

export const browserEnvironment: StreamEnvironment = {
  connect: (url) => new EventSource(url, { withCredentials: true }),
  async status(url) {
    const abort = new AbortController();
    try {
      const response = await fetch(url, { credentials: 'same-origin', signal: abort.signal });
      return response.status;
    } catch {
      return 0;
    } finally {
      abort.abort(); // the status is enough, so do not read an open stream
    }
  },
  nextFrame: (callback) => void requestAnimationFrame(callback),
  retry: (callback) => void setTimeout(callback, retryMs),
  hidden: () => document.hidden,
  onVisibility(callback) {
    document.addEventListener('visibilitychange', callback);
    return () => document.removeEventListener('visibilitychange', callback);
  },
};

/**
 * The only connection of the page to /events. EventSource reconnects with Last-Event-ID. This class
 * adds: events are delivered once per frame, a refused stream is retried, and a hidden tab holds no
 * connection (browsers allow six per origin).
 */
export class PageStream {
  private source: EventSource | undefined;
  private queue: AttuneEvent[] = [];
  private flushing = false;
  private closed = false;
  private readonly forgetVisibility: () => void;
  private lastSeq: number | undefined;

  constructor(
    private readonly options: StreamOptions,
    private readonly environment: StreamEnvironment = browserEnvironment,
  ) {
    this.lastSeq = options.after;
    this.forgetVisibility = environment.onVisibility(() => this.followVisibility());
    if (!environment.hidden()) this.connect();
  }

  close(): void {
    this.closed = true;
    this.forgetVisibility();
    this.disconnect();
    this.options.onState?.('closed');
  }

  private connect(): void {
    const query = new URLSearchParams();
    if (this.options.sweep !== undefined) query.set('sweep', this.options.sweep);
    const resumes = this.lastSeq !== undefined;
    if (resumes) query.set('after', String(this.lastSeq));
    const suffix = query.size > 0 ? `?${query}` : '';

    this.options.onState?.('connecting');
    const source = this.environment.connect(`/api/v1/events${suffix}`);
    this.source = source;
    source.onopen = () => {
      this.options.onState?.('live');
      // EventSource may reconnect before any event gave it an id to resume from.
      if (this.lastSeq === undefined) this.options.onResync();
    };
    source.onerror = () => {
      if (source !== this.source) return;
      this.options.onState?.('reconnecting');
      if (source.readyState === connecting) return;
      this.disconnect();
      this.options.onRefused();
      this.retryUnlessGone();
    };
    for (const kind of eventKinds) {
      source.addEventListener(kind, (message) =>
        this.receive(kind, message as MessageEvent<string>),
      );
    }
  }

  private retryUnlessGone(): void {
    const retry = () => this.environment.retry(() => this.reconnect());
    if (this.lastSeq === undefined || this.environment.status === undefined) return retry();
    void this.environment.status(`/api/v1/events?after=${this.lastSeq}`).then((status) => {
      if (this.closed) return;
      if (status !== gone) return retry();
      this.close();
      this.options.onGone?.();
    });
  }

  private disconnect(): void {
    this.source?.close();
    this.source = undefined;
  }

  private reconnect(): void {
    if (!this.closed && this.source === undefined && !this.environment.hidden()) this.connect();
  }

  private followVisibility(): void {
    if (this.environment.hidden()) {
      this.flush();
      this.disconnect();
    } else {
      this.reconnect();
    }
  }

  private receive(kind: AttuneEvent['kind'], message: MessageEvent<string>): void {
    const event = { ...(JSON.parse(message.data) as object), kind } as AttuneEvent;
    if (this.lastSeq !== undefined && event.seq <= this.lastSeq) return;
    // One fact can be several events; only the last carries its id.
    if (message.lastEventId === String(event.seq)) this.lastSeq = event.seq;
    this.queue.push(event);
    if (this.flushing) return;
    this.flushing = true;
    this.environment.nextFrame(() => this.flush());
  }

  private flush(): void {
    this.flushing = false;
    if (this.closed || this.queue.length === 0) return;
    const events = this.queue;
    this.queue = [];
    this.options.onEvents(events);
  }
}
