import type { Metric, Sweep, TrialState, Metrics } from '../api/contract';
import { isCounted } from './front';
import { better, fromWire } from './numbers';
import { isLive } from './states';
import type { TrialRow } from './sweep_model';
import { parseTime } from './time';

/** The x axis: numbers of trials, or the times when they ended. */
export type Along = 'number' | 'ended';

/** Why a trial has no value to draw. */
export type Missing = 'NaN' | 'outside' | 'failed' | 'none';

export const missingMeaning: Record<Missing, string> = {
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
  /** NaN if the value is missing. */
  y: number;
  missing: Missing | undefined;
}

/**
 * Each trial's best value against its number, or against the seconds from the creation of the sweep
 * to the end of the trial. Trials without a report or an end are left out; so are, along the time,
 * trials that have not ended.
 */
export function historyDots(rows: Iterable<TrialRow>, sweep: Sweep, along: Along): Dot[] {
  const { name } = sweep.metric;
  const begin = parseTime(sweep.created);
  const dots: Dot[] = [];
  for (const { number, state, best, metrics, ended } of rows) {
    if (along === 'ended' && ended === null) continue;
    const x = along === 'number' ? number : (parseTime(ended ?? '') - begin) / 1000;
    const counted = best !== undefined && Number.isFinite(best);
    const missing = counted ? undefined : missingOf(state, [best ?? metricOf(metrics, name)]);
    if (!counted && missing === undefined) continue;
    dots.push({ number, state, x, y: counted ? best : NaN, missing });
  }
  return dots.sort((a, b) => a.x - b.x || a.number - b.number);
}

/**
 * Each trial's newest report in the first two metrics. Trials on the front are drawn with their
 * reports there, which may be several.
 */
export function frontDots(rows: Iterable<TrialRow>, sweep: Sweep): Dot[] {
  const onFront = new Set(sweep.pareto_front.map(({ trial }) => trial));
  const shown = new Map<number, TrialRow>();
  const dots: Dot[] = [];
  for (const row of rows) {
    shown.set(row.number, row);
    if (onFront.has(row.number)) continue;
    const { number, state, metrics } = row;
    const values = sweep.metrics.map(({ name }) => metricOf(metrics, name));
    const counted = isCounted(sweep, metrics);
    const missing = counted ? undefined : missingOf(state, values);
    if (!counted && missing === undefined) continue;
    const [x = NaN, y = NaN] = values;
    dots.push({ number, state, x, y: counted ? y : NaN, missing });
  }
  for (const { number, x, y } of frontPoints(sweep)) {
    const row = shown.get(number);
    if (row) dots.push({ number, state: row.state, x, y, missing: undefined });
  }
  return dots;
}

function metricOf(metrics: Metrics, name: string): number | undefined {
  const value = metrics[name];
  return value === undefined ? undefined : fromWire(value);
}

function missingOf(
  state: TrialState,
  values: readonly (number | undefined)[],
): Missing | undefined {
  if (values.some((value) => value !== undefined && !Number.isFinite(value))) return 'NaN';
  if (values.every((value) => value !== undefined)) return 'outside';
  if (isLive(state)) return undefined;
  return state === 'failed' ? 'failed' : 'none';
}

export interface Point {
  x: number;
  y: number;
}

/** The points where the best value so far improves, in the order of the dots. */
export function bestLine(
  dots: readonly Dot[],
  mode: Metric['mode'],
): (Point & { number: number })[] {
  const line: (Point & { number: number })[] = [];
  for (const { x, y, number, missing } of dots) {
    const before = line.at(-1);
    if (missing !== undefined || (before && !better(mode, y, before.y))) continue;
    line.push({ x, y, number });
  }
  return line;
}

export interface FrontPoint extends Point {
  number: number;
  step: number;
}

/** The reports of the front in the first two metrics, sorted by the first. */
export function frontPoints({ pareto_front: front }: Pick<Sweep, 'pareto_front'>): FrontPoint[] {
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
 * The corners between the points of a front of two metrics. They bound the area that the front
 * dominates. A maximised x ends the area of a point; a minimised x begins it.
 */
export function frontLine(points: readonly Point[], xMode: Metric['mode']): Point[] {
  return points.flatMap((point, i) => {
    const next = points[i + 1];
    if (!next) return [point];
    return [point, xMode === 'max' ? { x: point.x, y: next.y } : { x: next.x, y: point.y }];
  });
}
