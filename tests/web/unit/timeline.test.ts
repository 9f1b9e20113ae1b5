import { describe, expect, it } from 'vitest';

import type { Timeline } from '../../../web/src/api/contract';
import { parseTime } from '../../../web/src/model/time';
import {
  lanesOf,
  occupancyRows,
  slotsOf,
  stateOfOutcome,
  sweepOrder,
  timeTicks,
  type Bar,
} from '../../../web/src/model/timeline';
import { heldAttempt } from '../mock/usage';

const now = Date.parse('2026-11-21T12:00:00Z');
const none = { hour: 0, day: 0, joined: 0 };

function timelineOf(attempts: Timeline['attempts']): Timeline {
  const at = (ms: number): string => new Date(ms).toISOString();
  return { since: at(now - 3_600_000), until: at(now), attempts, more: false };
}

describe('slotsOf', () => {
  it('has a row for each GPU, also for one that nothing held', () => {
    const slots = slotsOf(timelineOf([heldAttempt(now, 30, 10)]), [
      { executor: 'box', joined: '', lost: null, share: none, gpus: [none, none] },
    ]);
    expect(slots.map(({ name, bars }) => [name, bars.length])).toEqual([
      ['GPU 0', 1],
      ['GPU 1', 0],
    ]);
  });

  it('puts an attempt on every slot that it held, as one bar for its ranks there', () => {
    const ranks = [
      { rank: 0, executor: 'b', cpus: 1, gpus: [] },
      { rank: 1, executor: 'b', cpus: 1, gpus: [] },
      { rank: 2, executor: 'a', cpus: 1, gpus: [0, 1] },
    ];
    const slots = slotsOf(timelineOf([heldAttempt(now, 30, 10, { ranks })]), []);
    expect(slots.map(({ executor, name, bars }) => [executor, name, bars[0]?.ranks])).toEqual([
      ['a', 'GPU 0', [2]],
      ['a', 'GPU 1', [2]],
      ['b', 'CPUs', [0, 1]],
    ]);
  });

  it('gives trials that share a GPU a lane each', () => {
    const slots = slotsOf(
      timelineOf([heldAttempt(now, 30, 10), heldAttempt(now, 20, null, { trial: 1 })]),
      [],
    );
    expect(slots.map(({ name }) => name)).toEqual(['GPU 0', '']);
  });

  it('lets an attempt that runs end with the timeline', () => {
    const timeline = timelineOf([heldAttempt(now, 30, null)]);
    expect(slotsOf(timeline, [])[0]?.bars[0]?.end).toBe(parseTime(timeline.until));
  });
});

describe('lanesOf', () => {
  const bar = (begin: number, end: number): Bar => ({
    attempt: heldAttempt(now, 1, 0),
    begin,
    end,
    ranks: [0],
  });

  it('reuses the first lane that is free', () => {
    const lanes = lanesOf([bar(0, 5), bar(2, 4), bar(4, 8), bar(5, 6)]);
    expect(lanes.map((lane) => lane.map(({ begin }) => begin))).toEqual([
      [0, 5],
      [2, 4],
    ]);
  });

  it('has one lane without bars', () => expect(lanesOf([])).toEqual([[]]));
});

describe('the timeline', () => {
  it('numbers sweeps from the oldest on', () => {
    const attempts = ['s10', 's2', 's10'].map((sweep) => heldAttempt(now, 9, 8, { sweep }));
    expect([...sweepOrder(attempts)]).toEqual([
      ['s2', 0],
      ['s10', 1],
    ]);
  });

  it('shows a lost attempt as failed', () => {
    expect(['', 'finished', 'stopped', 'lost'].map(stateOfOutcome)).toEqual([
      undefined,
      'completed',
      'stopped',
      'failed',
    ]);
  });

  it('has ticks at round times, not too many', () => {
    const ticks = timeTicks(now - 3_600_000, now, 8);
    expect(ticks).toHaveLength(7);
    expect(ticks.every((tick) => tick % 600_000 === 0)).toBe(true);
    expect(timeTicks(now - 86_400_000, now, 6).length).toBeLessThanOrEqual(7);
  });
});

describe('occupancyRows', () => {
  it('lists GPUs only if there are several', () => {
    const host = (executor: string, gpus: number) => ({
      executor,
      joined: '',
      lost: null,
      share: none,
      gpus: Array.from({ length: gpus }, () => none),
    });
    expect(occupancyRows([host('a', 0), host('b', 1), host('c', 2)]).map((r) => r.slots)).toEqual([
      'CPUs',
      'all GPUs',
      'all GPUs',
      'GPU 0',
      'GPU 1',
    ]);
  });
});
