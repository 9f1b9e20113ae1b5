import type { Clone, Curve as WireCurve, Metric, Real } from '../api/contract';
import { better, fromWire } from './numbers';

/** After its step, a trial trains the weights that its donor had at the step. */
export type { Clone };

export interface Point {
  step: number;
  value: number;
}

/**
 * One metric of one trial over strictly increasing steps: reported values at whole steps, and values
 * logged between reports. If a step has both, the report counts.
 */
export class Curve {
  readonly steps: number[] = [];
  readonly values: number[] = [];
  /** Where the trial continues from checkpoints of others, by strictly increasing step. */
  readonly clones: Clone[] = [];
  /** Which points were logged; parallel to `steps`. */
  private readonly logged: boolean[] = [];

  static fromWire(wire: WireCurve): Curve {
    const points = (steps: number[], values: Real[]): Point[] =>
      steps.map((step, i) => ({ step, value: fromWire(values[i] ?? 'nan') }));
    const curve = Curve.of(
      points(wire.steps, wire.values),
      points(wire.logged_steps ?? [], wire.logged_values ?? []),
    );
    wire.clones.forEach((clone) => curve.clone(clone));
    return curve;
  }

  /** Builds a curve from points in the order of their arrival. */
  static of(reported: readonly Point[], logged: readonly Point[]): Curve {
    const reports = withoutReplaced(reported);
    const between = withoutReplaced(logged);
    const curve = new Curve();
    let next = 0;
    const takeUntil = (step: number): void => {
      for (; next < between.length && (between[next] as Point).step < step; next += 1)
        curve.push(between[next] as Point, true);
    };
    for (const report of reports) {
      takeUntil(report.step);
      if (between[next]?.step === report.step) next += 1;
      curve.push(report, false);
    }
    takeUntil(Infinity);
    return curve;
  }

  get length(): number {
    return this.steps.length;
  }

  /** Adds a reported value; see add(). */
  append(step: number, value: number): void {
    this.add({ step, value }, false);
  }

  /** Adds a logged value; see add(). */
  log(step: number, value: number): void {
    this.add({ step, value }, true);
  }

  /**
   * A step that is not new comes from an attempt that resumed before it. From there on, the reports of
   * the newer attempt replace the older reports, and its logged values the older logged values. A
   * logged value that a report covered does not return when that report is replaced.
   */
  private add(point: Point, logged: boolean): void {
    const behind: [Point, boolean][] = [];
    let covered = false;
    while (this.length > 0 && (this.steps.at(-1) as number) >= point.step) {
      const last = { step: this.steps.pop() as number, value: this.values.pop() as number };
      const kind = this.logged.pop() as boolean;
      if (kind === logged) continue;
      covered = logged && last.step === point.step;
      if (covered || last.step > point.step) behind.push([last, kind]);
    }
    if (!covered) this.push(point, logged);
    for (const [kept, kind] of behind.reverse()) this.push(kept, kind);
  }

  private push({ step, value }: Point, logged: boolean): void {
    this.steps.push(step);
    this.values.push(value);
    this.logged.push(logged);
  }

  /** Adds a clone. It replaces earlier clones at or after its step. */
  clone(clone: Clone): void {
    while (this.clones.length > 0 && (this.clones.at(-1) as Clone).step >= clone.step)
      this.clones.pop();
    this.clones.push(clone);
  }

  /** The index of the first point after a clone; undefined while there is none. */
  firstOf(clone: Clone): number | undefined {
    const i = upperBound(this.steps, clone.step);
    return i < this.length ? i : undefined;
  }

  /** The last value at or before the step; undefined when there is none. */
  at(step: number): number | undefined {
    const i = upperBound(this.steps, step) - 1;
    return i >= 0 ? this.values[i] : undefined;
  }

  /** The best reported value; logged values do not count. */
  best(mode: Metric['mode']): number | undefined {
    let best: number | undefined;
    this.values.forEach((value, i) => {
      if (this.logged[i] !== true && (best === undefined || better(mode, value, best)))
        best = value;
    });
    return best;
  }
}

// Removes points that a later point at the same step or an earlier step has replaced.
function withoutReplaced(points: readonly Point[]): Point[] {
  const left: Point[] = [];
  for (const point of points) {
    while (left.length > 0 && (left.at(-1) as Point).step >= point.step) left.pop();
    left.push(point);
  }
  return left;
}

/** Index of the first element greater than the value, in an ascending array. */
export function upperBound(ascending: readonly number[], value: number): number {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ascending[middle] as number) > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** A curve, or other values that a frame must contain. */
export type Valued = Pick<Curve, 'values'>;

export interface Frame {
  min: number;
  max: number;
  /** How many curves leave the frame, because they diverge far from all others. */
  clipped: number;
}

// A frame cuts off an extreme that is further out than this many times the spread of the middle 90 %
// of the values.
const outlierSpreads = 4;
const framePadding = 0.07;

// Quantiles of this many values are exact enough to detect outliers.
const mostSampled = 50_000;

/**
 * The range of values to draw. One trial that diverges to 10⁶ must not flatten all others into a
 * line, so far outliers are cut off and counted.
 */
export function frameOf(curves: Iterable<Valued>, logarithmic: boolean): Frame | undefined {
  const all = [...curves];
  const usable = (value: number): boolean => Number.isFinite(value) && (!logarithmic || value > 0);
  let [min, max] = extremes(all, usable);
  if (min > max) return undefined;
  if (logarithmic) return { ...pad(min, max, true), clipped: 0 };

  const [low, high] = outlierBounds(all, usable);
  if (min >= low && max <= high) return { ...pad(min, max, false), clipped: 0 };
  [min, max] = extremes(all, (value) => usable(value) && value >= low && value <= high);
  const outside = (value: number): boolean => usable(value) && (value < min || value > max);
  const clipped = all.filter((curve) => curve.values.some(outside)).length;
  return { ...pad(min, max, false), clipped };
}

type Test = (value: number) => boolean;

function extremes(curves: readonly Valued[], usable: Test): [number, number] {
  let min = Infinity;
  let max = -Infinity;
  for (const { values } of curves) {
    for (const value of values) {
      if (!usable(value)) continue;
      if (value < min) min = value;
      if (value > max) max = value;
    }
  }
  return [min, max];
}

function outlierBounds(curves: readonly Valued[], usable: Test): [number, number] {
  const points = curves.reduce((sum, { values }) => sum + values.length, 0);
  const stride = Math.max(1, Math.ceil(points / mostSampled));
  const sampled: number[] = [];
  let skip = 0;
  for (const { values } of curves) {
    for (const value of values) {
      skip = (skip + 1) % stride;
      if (skip === 0 && usable(value)) sampled.push(value);
    }
  }
  const sorted = Float64Array.from(sampled).sort();
  if (sorted.length === 0) return [-Infinity, Infinity];
  const at = (quantile: number): number =>
    sorted[Math.round(quantile * (sorted.length - 1))] as number;
  const spread = at(0.95) - at(0.05);
  if (spread === 0) return [-Infinity, Infinity];
  return [at(0.05) - outlierSpreads * spread, at(0.95) + outlierSpreads * spread];
}

function pad(min: number, max: number, logarithmic: boolean): { min: number; max: number } {
  if (logarithmic) {
    const factor = max > min ? Math.pow(max / min, framePadding) : 2;
    return { min: min / factor, max: max * factor };
  }
  const margin = max > min ? (max - min) * framePadding : Math.abs(max) * 0.1 || 1;
  return { min: min - margin, max: max + margin };
}

/** The best value so far, in the order of trial numbers: the sparkline of a sweep. */
export function bestSoFar(
  curves: Iterable<readonly [number, Curve]>,
  mode: Metric['mode'],
): number[] {
  const ordered = [...curves].sort((a, b) => a[0] - b[0]);
  const line: number[] = [];
  let best: number | undefined;
  for (const [, curve] of ordered) {
    const value = curve.best(mode);
    if (value !== undefined && Number.isFinite(value)) {
      if (best === undefined || better(mode, value, best)) best = value;
    }
    if (best !== undefined) line.push(best);
  }
  return line;
}
