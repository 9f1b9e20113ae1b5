import type { Metric, Sweep, TrialState, WireMetrics } from '../api/types';
import { counts } from './front';
import { better, fromWire } from './numbers';
import { isLive } from './states';
import type { TrialRow } from './sweep_model';
import { parseTime } from './time';

/** What trials are put against: their numbers, or when they ended. */
export type Along = 'number' | 'ended';

/** Why a trial has no place among values. */
export type Beside = 'NaN' | 'outside' | 'failed' | 'none';

export const besideMeaning: Record<Beside, string> = {
  NaN: 'reported NaN or infinity',
  outside: 'outside of the constraints',
  failed: 'failed before a report',
  none: 'ended before a report',
};

/** A trial as a point. */
export interface Dot {
  number: number;
  state: TrialState;
  x: number;
  /** NaN where it lies beside. */
  y: number;
  beside: Beside | undefined;
}

/**
 * Each trial's best value against its number, or against the seconds from the sweep's beginning to
 * its own end. Those that have neither reported nor ended are left out, and along the time those
 * that have not ended.
 */
export function historyDots(rows: Iterable<TrialRow>, sweep: Sweep, along: Along): Dot[] {
  const { name } = sweep.metric;
  const begin = parseTime(sweep.created);
  const dots: Dot[] = [];
  for (const { number, state, best, metrics, ended } of rows) {
    if (along === 'ended' && ended === null) continue;
    const x = along === 'number' ? number : (parseTime(ended ?? '') - begin) / 1000;
    const counted = best !== undefined && Number.isFinite(best);
    const beside = counted ? undefined : besideOf(state, [best ?? metricOf(metrics, name)]);
    if (!counted && beside === undefined) continue;
    dots.push({ number, state, x, y: counted ? best : NaN, beside });
  }
  return dots.sort((a, b) => a.x - b.x || a.number - b.number);
}

/**
 * Each trial's newest report in the first two metrics; those on the front as they were when they
 * came to it. A trial may have several reports there.
 */
export function frontDots(rows: Iterable<TrialRow>, sweep: Sweep): Dot[] {
  const onFront = new Set(sweep.front.map(({ trial }) => trial));
  const shown = new Map<number, TrialRow>();
  const dots: Dot[] = [];
  for (const row of rows) {
    shown.set(row.number, row);
    if (onFront.has(row.number)) continue;
    const { number, state, metrics } = row;
    const values = sweep.metrics.map(({ name }) => metricOf(metrics, name));
    const counted = counts(sweep, metrics);
    const beside = counted ? undefined : besideOf(state, values);
    if (!counted && beside === undefined) continue;
    const [x = NaN, y = NaN] = values;
    dots.push({ number, state, x, y: counted ? y : NaN, beside });
  }
  for (const { number, x, y } of frontPoints(sweep)) {
    const row = shown.get(number);
    if (row) dots.push({ number, state: row.state, x, y, beside: undefined });
  }
  return dots;
}

function metricOf(metrics: WireMetrics, name: string): number | undefined {
  const value = metrics[name];
  return value === undefined ? undefined : fromWire(value);
}

function besideOf(state: TrialState, values: readonly (number | undefined)[]): Beside | undefined {
  if (values.some((value) => value !== undefined && !Number.isFinite(value))) return 'NaN';
  if (values.every((value) => value !== undefined)) return 'outside';
  if (isLive(state)) return undefined;
  return state === 'failed' ? 'failed' : 'none';
}

export interface Point {
  x: number;
  y: number;
}

/** The best value so far: the places where it gets better, in the dots' order. */
export function bestLine(
  dots: readonly Dot[],
  mode: Metric['mode'],
): (Point & { number: number })[] {
  const line: (Point & { number: number })[] = [];
  for (const { x, y, number, beside } of dots) {
    const before = line.at(-1);
    if (beside !== undefined || (before && !better(mode, y, before.y))) continue;
    line.push({ x, y, number });
  }
  return line;
}

export interface FrontPoint extends Point {
  number: number;
  step: number;
}

/** The front's reports in the first two metrics, by the first. */
export function frontPoints({ front }: Pick<Sweep, 'front'>): FrontPoint[] {
  return front
    .map(({ trial, step, values }) => ({
      number: trial,
      step,
      x: fromWire(values[0] ?? 'nan'),
      y: fromWire(values[1] ?? 'nan'),
    }))
    .sort((a, b) => a.x - b.x);
}

/**
 * The corners between points of a front of two metrics: behind them lies what some point is at
 * least as good as in both. Maximised along x, a point's reach ends with its x; minimised, it begins
 * there.
 */
export function frontLine(points: readonly Point[], xMode: Metric['mode']): Point[] {
  return points.flatMap((point, i) => {
    const next = points[i + 1];
    if (!next) return [point];
    return [point, xMode === 'max' ? { x: point.x, y: next.y } : { x: next.x, y: point.y }];
  });
}
