import { describe, expect, it } from 'vitest';

import type { Best, Sweep } from '../../../web/src/api/contract';
import {
  bestLine,
  frontDots,
  frontLine,
  frontPoints,
  historyDots,
} from '../../../web/src/model/history';
import { historySummary } from '../../../web/src/model/summary';
import { formatSpan } from '../../../web/src/model/time';
import { nearestPoint } from '../../../web/src/ui/nearest';
import { World } from '../mock/world';
import { expectGolden } from './support/golden';
import { row } from './support/row';

function sweepOf(changes: Partial<Sweep> = {}): Sweep {
  const created = '2026-11-21T10:00:00.000000Z';
  return new World().addSweep({ id: 's1', created, ...changes });
}

const at = (seconds: number): string =>
  new Date(Date.UTC(2026, 10, 21, 10, 0, seconds)).toISOString();

describe('the history of trials', () => {
  const rows = [
    row(3, { state: 'completed', best: 0.9, ended: at(20) }),
    row(0, { state: 'completed', best: 0.5, ended: at(30) }),
    row(1, { state: 'running', best: 0.7 }),
    row(2, { state: 'stopped', best: 0.6, ended: at(10) }),
  ];

  it('has the best value of each trial by its number', () => {
    const dots = historyDots(rows, sweepOf(), 'number');
    expect(dots.map(({ x, y }) => [x, y])).toEqual([
      [0, 0.5],
      [1, 0.7],
      [2, 0.6],
      [3, 0.9],
    ]);
  });

  it('by end time omits trials that have not ended', () => {
    const dots = historyDots(rows, sweepOf(), 'ended');
    expect(dots.map(({ x, number }) => [x, number])).toEqual([
      [10, 2],
      [20, 3],
      [30, 0],
    ]);
  });

  it('distinguishes why a trial has no value', () => {
    const without = [
      row(0, { state: 'failed', ended: at(1) }),
      row(1, { state: 'failed', best: 'nan', metrics: { accuracy: 'nan' }, ended: at(2) }),
      row(2, { state: 'completed', best: null, metrics: { accuracy: 0.5 }, ended: at(3) }),
      row(3, { state: 'killed', ended: at(4) }),
      row(4, { state: 'running', metrics: { accuracy: '-inf' } }),
      row(5, { state: 'pending' }),
      row(6, { state: 'running' }),
    ];
    const dots = historyDots(without, sweepOf(), 'number');
    expect(dots.map(({ number, missing }) => [number, missing])).toEqual([
      [0, 'failed'],
      [1, 'NaN'],
      [2, 'outside'],
      [3, 'none'],
      [4, 'NaN'],
    ]);
    expectGolden('web/history', historySummary(sweepOf(), dots, without.length, 'number'));
  });

  it('has a line that improves, for both directions of the metric', () => {
    const dots = historyDots(rows, sweepOf(), 'number');
    expect(bestLine(dots, 'max').map(({ number }) => number)).toEqual([0, 1, 3]);
    expect(bestLine(dots, 'min').map(({ number }) => number)).toEqual([0]);
    const ended = historyDots(rows, sweepOf(), 'ended');
    expect(bestLine(ended, 'max').map(({ number }) => number)).toEqual([2, 3]);
  });

  it('has no line without a report that counts', () => {
    const dots = historyDots([row(0, { best: 'nan' })], sweepOf(), 'number');
    expect(bestLine(dots, 'max')).toEqual([]);
  });
});

describe('several metrics', () => {
  const best = (trial: number, accuracy: number, latency: number): Best => ({
    ...{ trial, step: 2, value: accuracy, values: [accuracy, latency], config: {} },
    ...{ metrics: { accuracy, latency }, checkpoint: null, checkpoint_step: null },
  });
  const sweep = sweepOf({
    metrics: [
      { name: 'accuracy', mode: 'max', target: null },
      { name: 'latency', mode: 'min', target: null },
    ],
    constraints: { latency: { min: null, max: 20 } },
    pareto_front: [best(2, 0.9, 15), best(1, 0.7, 5), best(1, 0.8, 9)],
  });

  it('have a dot for the newest report of each trial, and one for each report on the front', () => {
    const rows = [
      row(0, { metrics: { accuracy: 0.6, latency: 12 } }),
      row(1, { metrics: { accuracy: 0.1, latency: 12 } }),
      row(2, { metrics: { accuracy: 0.9, latency: 15 } }),
      row(3, { metrics: { accuracy: 0.95, latency: 30 } }),
      row(4, { metrics: { accuracy: 'nan', latency: 3 } }),
    ];
    const dots = frontDots(rows, sweep);
    expect(dots.map(({ number, x, y, missing }) => [number, x, y, missing])).toEqual([
      [0, 0.6, 12, undefined],
      [3, 0.95, NaN, 'outside'],
      [4, NaN, NaN, 'NaN'],
      [1, 0.7, 5, undefined],
      [1, 0.8, 9, undefined],
      [2, 0.9, 15, undefined],
    ]);
  });

  it('omit trials of the front that the filter omits', () => {
    expect(frontDots([row(2)], sweep).map(({ number }) => number)).toEqual([2]);
  });

  it('have a front with corners between two neighbours', () => {
    const points = frontPoints(sweep);
    expect(points.map(({ x }) => x)).toEqual([0.7, 0.8, 0.9]);
    const corners = (mode: 'min' | 'max') =>
      frontLine(points.slice(0, 2), mode).map(({ x, y }) => [x, y]);
    expect(corners('max')).toEqual([
      [0.7, 5],
      [0.7, 9],
      [0.8, 9],
    ]);
    expect(corners('min')).toEqual([
      [0.7, 5],
      [0.8, 5],
      [0.8, 9],
    ]);
  });
});

describe('a dot', () => {
  const dots = [
    { x: 10, y: 10 },
    { x: 20, y: 10 },
    { x: NaN, y: 10 },
  ];

  it('is selected if it is the nearest within the radius', () => {
    expect(nearestPoint(dots, 13, 11, 8)).toBe(0);
    expect(nearestPoint(dots, 16, 10, 8)).toBe(1);
    expect(nearestPoint(dots, 15, 30, 8)).toBeUndefined();
  });

  it('has a time label with the precision of its axis', () => {
    expect(formatSpan(0.5, 0.1)).toBe('0.5 s');
    expect(formatSpan(90, 30)).toBe('90 s');
    expect(formatSpan(5400, 900)).toBe('90 min');
    expect(formatSpan(43_200, 43_200)).toBe('12 h');
    expect(formatSpan(172_800, 86_400)).toBe('2 d');
  });
});
