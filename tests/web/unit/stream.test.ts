import { describe, expect, it } from 'vitest';

import {
  PageStream,
  type StreamEnvironment,
  type StreamOptions,
} from '../../../web/src/api/stream';
import type { AttuneEvent } from '../../../web/src/api/events';

/** An EventSource. The test is its server. */
class FakeSource extends EventTarget {
  readyState = 0;
  onopen: (() => void) | null = null;
  onerror: (() => void) | null = null;
  closed = false;

  constructor(readonly url: string) {
    super();
  }
  open(): void {
    this.readyState = 1;
    this.onopen?.();
  }
  /** `lastEventId` is the event's seq, or the seq of an earlier event if it carries no id. */
  send(kind: string, data: Record<string, unknown>, lastEventId = String(data['seq'])): void {
    this.dispatchEvent(new MessageEvent(kind, { data: JSON.stringify(data), lastEventId }));
  }
  loseConnection(): void {
    this.readyState = 0;
    this.onerror?.();
  }
  refuse(): void {
    this.readyState = 2;
    this.onerror?.();
  }
  close(): void {
    this.closed = true;
  }
}

class Surroundings {
  readonly sources: FakeSource[] = [];
  readonly batches: AttuneEvent[][] = [];
  readonly calls: string[] = [];
  isHidden = false;
  status = 503; // the status of a refused stream
  private frames: (() => void)[] = [];
  private retries: (() => void)[] = [];
  private watchers: (() => void)[] = [];

  readonly environment: StreamEnvironment = {
    connect: (url) => {
      const source = new FakeSource(url);
      this.sources.push(source);
      return source as unknown as EventSource;
    },
    status: () => Promise.resolve(this.status),
    nextFrame: (callback) => void this.frames.push(callback),
    retry: (callback) => void this.retries.push(callback),
    hidden: () => this.isHidden,
    onVisibility: (callback) => {
      this.watchers.push(callback);
      return () => (this.watchers = []);
    },
  };

  start(options: Pick<StreamOptions, 'sweep' | 'after'> = {}): PageStream {
    return new PageStream(
      {
        ...options,
        onEvents: (events) => this.batches.push(events),
        onResync: () => this.calls.push('resync'),
        onRefused: () => this.calls.push('refused'),
        onGone: () => this.calls.push('gone'),
        onState: (state) => this.calls.push(state),
      },
      this.environment,
    );
  }
  get source(): FakeSource {
    return this.sources.at(-1) as FakeSource;
  }
  frame(): void {
    this.frames.splice(0).forEach((callback) => callback());
  }
  retry(): void {
    this.retries.splice(0).forEach((callback) => callback());
  }
  setHidden(hidden: boolean): void {
    this.isHidden = hidden;
    this.watchers.forEach((callback) => callback());
  }
}

/** Waits until the effects of resolved promises are complete. */
const settled = () => new Promise((resolve) => setTimeout(resolve));

describe("the page's stream", () => {
  it('asks for its sweep, after the event that it knows', () => {
    const around = new Surroundings();
    around.start({ sweep: 's1', after: 812 });
    expect(around.source.url).toBe('/api/v1/events?sweep=s1&after=812');
  });

  it('hands over all events of a frame at once, in order, with their kind', () => {
    const around = new Surroundings();
    around.start({ after: 4 });
    around.source.send('trial_reported', { seq: 5, sweep: 's1', trial: 0 });
    around.source.send('trial_decided', { seq: 6, sweep: 's1', trial: 0 });
    expect(around.batches).toEqual([]);
    around.frame();
    expect(around.batches).toHaveLength(1);
    expect(around.batches[0]?.map((event) => [event.kind, event.seq])).toEqual([
      ['trial_reported', 5],
      ['trial_decided', 6],
    ]);
  });

  it('drops events that it has received before', () => {
    const around = new Surroundings();
    around.start({ after: 5 });
    around.source.send('trial_reported', { seq: 5, sweep: 's1' });
    around.source.send('trial_reported', { seq: 6, sweep: 's1' });
    around.source.send('trial_reported', { seq: 6, sweep: 's1' });
    around.frame();
    expect(around.batches.flat()).toHaveLength(1);
  });

  it('keeps every event of a fact, of which only the last carries the id', () => {
    const around = new Surroundings();
    around.start({ after: 5 });
    around.source.send('trial_decided', { seq: 6, sweep: 's1' }, '5');
    around.source.send('trial_changed', { seq: 6, sweep: 's1' }, '6');
    around.frame();
    expect(around.batches.flat().map((event) => event.kind)).toEqual([
      'trial_decided',
      'trial_changed',
    ]);
  });

  it('asks for a snapshot when it opened at an unknown position', () => {
    const around = new Surroundings();
    around.start();
    around.source.open();
    expect(around.calls).toContain('resync');
    const known = new Surroundings();
    known.start({ after: 0 });
    known.source.open();
    expect(known.calls).not.toContain('resync');
  });

  it('leaves a lost connection to EventSource', () => {
    const around = new Surroundings();
    around.start({ after: 1 });
    around.source.open();
    around.source.loseConnection();
    expect(around.calls.at(-1)).toBe('reconnecting');
    expect(around.sources).toHaveLength(1);
    expect(around.source.closed).toBe(false);
  });

  it('retries when the server refused it', async () => {
    const around = new Surroundings();
    around.start({ sweep: 's1', after: 1 });
    around.source.send('trial_reported', { seq: 7, sweep: 's1' });
    around.source.refuse();
    expect(around.calls).toContain('refused');
    expect(around.sources).toHaveLength(1);
    await settled();
    around.retry();
    expect(around.source.url).toBe('/api/v1/events?sweep=s1&after=7');
  });

  it('says that the page must start again when the log has no such event', async () => {
    const around = new Surroundings();
    around.status = 410;
    around.start({ sweep: 's1', after: 7 });
    around.source.refuse();
    await settled();
    expect(around.calls).toContain('gone');
    around.retry();
    expect(around.sources).toHaveLength(1);
  });

  it('holds no connection while the tab is hidden, and misses nothing', () => {
    const around = new Surroundings();
    around.start({ after: 1 });
    around.source.send('trial_reported', { seq: 2, sweep: 's1' });
    around.setHidden(true);
    expect(around.batches.flat()).toHaveLength(1);
    expect(around.source.closed).toBe(true);
    around.setHidden(false);
    expect(around.source.url).toBe('/api/v1/events?after=2');
  });

  it('is silent once closed', () => {
    const around = new Surroundings();
    const stream = around.start({ after: 1 });
    around.source.send('trial_reported', { seq: 2, sweep: 's1' });
    stream.close();
    around.frame();
    around.retry();
    expect(around.batches).toEqual([]);
    expect(around.source.closed).toBe(true);
    expect(around.sources).toHaveLength(1);
  });
});
