import type { Sweep, Trial } from '../api/contract';
import { isCounted } from './front';
import type { Point } from './history';
import { fromWire } from './numbers';

/** The values of one report, in the order of the sweep's metrics. */
export type Values = readonly number[];

/**
 * The volume that points dominate, between them and a reference point; exact for two and three
 * metrics. Every metric is minimised here. A point that is not better than the reference in every
 * metric adds nothing.
 */
export function hypervolume(points: readonly Values[], reference: Values): number {
  const within = points.filter((point) => isWithin(point, reference));
  if (within.length === 0) return 0;
  if (reference.length === 2) return area(within, reference);
  if (reference.length === 3) return volume(within, reference);
  throw new Error('hypervolume: two or three metrics');
}

export const canMeasure = (metrics: number): boolean => metrics === 2 || metrics === 3;

export function dominates(one: Values, other: Values): boolean {
  for (let i = 0; i < one.length; i += 1)
    if ((one[i] as number) > (other[i] as number)) return false;
  return true;
}

const isWithin = (point: Values, reference: Values): boolean =>
  point.every((value, i) => value < (reference[i] as number));

// From the left to the right, each lower point adds a rectangle.
function area(points: readonly Values[], reference: Values): number {
  const sorted = [...points].sort(
    (a, b) => (a[0] as number) - (b[0] as number) || (a[1] as number) - (b[1] as number),
  );
  let sum = 0;
  let lowest = reference[1] as number;
  for (const [x = 0, y = 0] of sorted) {
    if (y >= lowest) continue;
    sum += ((reference[0] as number) - x) * (lowest - y);
    lowest = y;
  }
  return sum;
}

// In slices along the third metric. The area of a slice grows with each point: `stair` has the points
// below the slice that no other dominates in the first two metrics, by the first one.
function volume(points: readonly Values[], reference: Values): number {
  const sorted = [...points].sort((a, b) => (a[2] as number) - (b[2] as number));
  const stair: { x: number; y: number }[] = [];
  let covered = 0;
  let sum = 0;
  sorted.forEach((point, i) => {
    covered += addToStair(stair, point, reference);
    sum += covered * ((sorted[i + 1]?.[2] ?? (reference[2] as number)) - (point[2] as number));
  });
  return sum;
}

// Returns the area by which the stair grows.
function addToStair(
  stair: { x: number; y: number }[],
  [x = 0, y = 0]: Values,
  [right = 0, top = 0]: Values,
): number {
  let at = 0;
  for (let end = stair.length; at < end; ) {
    const middle = (at + end) >> 1;
    if ((stair[middle] as { x: number }).x > x) end = middle;
    else at = middle + 1;
  }
  const before = stair[at - 1];
  if (before && before.y <= y) return 0;
  let level = before?.y ?? top;
  let grown = 0;
  let end = at;
  let from = x;
  for (; level > y; end += 1) {
    const next = stair[end];
    grown += ((next?.x ?? right) - from) * (level - y);
    if (!next) break;
    from = next.x;
    level = next.y;
    if (level < y) break;
  }
  const same = before?.x === x ? 1 : 0;
  stair.splice(at - same, end - at + same, { x, y });
  return grown;
}

/** The values of reports by trial, in the order of trials. */
export interface Reported {
  trial: number;
  values: Values;
}

/** Each trial's newest report, and the reports on the front, that count. */
export function countedReports(
  trials: Iterable<Pick<Trial, 'number' | 'metrics'>>,
  sweep: Sweep,
): Reported[] {
  const reports: Reported[] = sweep.pareto_front.map(({ trial, values }) => ({
    trial,
    values: values.map(fromWire),
  }));
  for (const { number, metrics } of trials)
    if (isCounted(sweep, metrics))
      reports.push({
        trial: number,
        values: sweep.metrics.map(({ name }) => fromWire(metrics[name] ?? 'nan')),
      });
  return reports.sort((a, b) => a.trial - b.trial);
}

/** The worst value of each metric in any report. */
export function worstValues(reports: readonly Reported[], metrics: Sweep['metrics']): number[] {
  return metrics.map(({ mode }, i) =>
    reports.reduce(
      (worst, { values }) => {
        const value = values[i] as number;
        return mode === 'max' ? Math.min(worst, value) : Math.max(worst, value);
      },
      mode === 'max' ? Infinity : -Infinity,
    ),
  );
}

// Each computation reads a whole front, so a line has at most this many points.
const mostVolumes = 200;

/** The hypervolume of the trials up to each number, where it grows. Long lines omit some numbers. */
export function hypervolumeLine(
  reports: readonly Reported[],
  metrics: Sweep['metrics'],
  reference: Values,
): Point[] {
  const minimised = (values: Values): Values =>
    values.map((value, i) => (metrics[i]?.mode === 'max' ? -value : value));
  const corner = minimised(reference);
  let steps: { trial: number; front: Values[] }[] = [];
  let front: Values[] = [];
  for (const { trial, values } of reports) {
    const point = minimised(values);
    if (!isWithin(point, corner) || front.some((other) => dominates(other, point))) continue;
    front = [...front.filter((other) => !dominates(point, other)), point];
    if (steps.at(-1)?.trial === trial) steps.pop();
    if (steps.length === mostVolumes) steps = steps.filter((_, i) => i % 2 === 1);
    steps.push({ trial, front });
  }
  return steps.map((step) => ({ x: step.trial, y: hypervolume(step.front, corner) }));
}
