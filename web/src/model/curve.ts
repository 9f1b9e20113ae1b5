import type { Clone, Curve as WireCurve, Metric } from '../api/contract';
import { better, fromWire } from './numbers';

/** After its step, a trial trains the weights that its donor had at the step. */
export type { Clone };

export interface Point {
  step: number;
  value: number;
}

/** A reported value. `resumedFrom`: the step that its attempt resumed from; 0: it began from the start. */
export interface ReportedPoint extends Point {
  attempt: number;
  resumedFrom: number;
}

/**
 * One metric of one trial over strictly increasing steps: reported values at whole steps, and values
 * logged between reports. If a step has both, the report counts. If several attempts cover a step,
 * the newest counts: an attempt covers the steps from where it resumed up to its last report.
 */
export class Curve {
  readonly steps: number[] = [];
  readonly values: number[] = [];
  /** Where the trial continues from checkpoints of others, by strictly increasing step. */
  readonly clones: Clone[] = [];
  /** The attempt that reported each point; 0: the point was logged. Parallel to `steps`. */
  private readonly attempts: number[] = [];
  /** The attempt of the newest report, and the last step that it covers. */
  private newest = 0;
  private covered = 0;

  static fromWire(wire: WireCurve): Curve {
    const curve = new Curve();
    const { steps, values, segments } = wire;
    segments.forEach(({ attempt, first_step: first }, i) => {
      const end = segments[i + 1]?.first_step ?? Infinity;
      const from = upperBound(steps, first - 1);
      for (let at = from; at < steps.length && (steps[at] as number) < end; at += 1) {
        curve.push({ step: steps[at] as number, value: fromWire(values[at] ?? 'nan') }, attempt);
        if (attempt < curve.newest) continue;
        curve.newest = attempt;
        curve.covered = steps[at] as number;
      }
    });
    const logged = (wire.logged_steps ?? []).map((step, i) => ({
      step,
      value: fromWire(wire.logged_values?.[i] ?? 'nan'),
    }));
    curve.merge(logged);
    wire.clones.forEach((clone) => curve.clone(clone));
    return curve;
  }

  /** A curve from decoded steps and values, with the parts of its attempts in order of steps. */
  static fromParts(
    steps: ArrayLike<number>,
    values: ArrayLike<number>,
    segments: readonly { attempt: number; step: number }[],
    clones: readonly Clone[],
  ): Curve {
    const curve = new Curve();
    let part = 0;
    for (let i = 0; i < steps.length; i += 1) {
      const step = steps[i] as number;
      while (part + 1 < segments.length && (segments[part + 1]?.step as number) <= step) part += 1;
      const attempt = segments[part]?.attempt ?? 1;
      curve.push({ step, value: values[i] as number }, attempt);
      if (attempt < curve.newest) continue;
      curve.newest = attempt;
      curve.covered = step;
    }
    clones.forEach(({ donor, step }) => curve.clone({ donor, step }));
    return curve;
  }

  /** Builds a curve from points in the order of their arrival. */
  static of(reported: readonly ReportedPoint[], logged: readonly Point[]): Curve {
    const curve = new Curve();
    for (const { step, value, attempt, resumedFrom } of reported)
      curve.append(step, value, attempt, resumedFrom);
    curve.merge(withoutReplaced(logged));
    return curve;
  }

  get length(): number {
    return this.steps.length;
  }

  /** Adds a reported value. It replaces what earlier attempts reported at the steps that it covers. */
  append(step: number, value: number, attempt: number, resumedFrom = 0): void {
    if (attempt !== this.newest) this.covered = resumedFrom;
    const from = upperBound(this.steps, this.covered < step ? this.covered : step - 1);
    const to = upperBound(this.steps, step);
    const isKept = (i: number): boolean => this.attempts[i] === 0 && this.steps[i] !== step;
    for (let i = to - 1; i >= from; i -= 1) if (!isKept(i)) this.splice(i, 1);
    this.insert({ step, value }, attempt);
    this.newest = attempt;
    this.covered = step;
  }

  /**
   * Adds a logged value. It replaces logged values at its step and later ones, because they come from
   * an earlier attempt.
   */
  log(step: number, value: number): void {
    for (let i = this.length - 1; i >= 0 && (this.steps[i] as number) >= step; i -= 1)
      if (this.attempts[i] === 0) this.splice(i, 1);
    if (this.steps[upperBound(this.steps, step) - 1] !== step) this.insert({ step, value }, 0);
  }

  /** The steps at which the values of an earlier attempt begin. */
  get seams(): number[] {
    return this.steps.filter((_, i) => this.isSeam(i));
  }

  /** The points at which the line is interrupted, because of a clone or an earlier attempt. */
  get breaks(): number[] {
    const begins = new Set(this.clones.map((clone) => this.firstOf(clone)));
    return this.steps.flatMap((_, i) => (begins.has(i) || this.isSeam(i) ? [i] : []));
  }

  /** Whether an earlier attempt reported the point, and a newer one the point before it. */
  isSeam(i: number): boolean {
    const attempt = this.attempts[i] as number;
    if (attempt === 0 || attempt === this.newest) return false;
    for (let before = i - 1; before >= 0; before -= 1) {
      const other = this.attempts[before] as number;
      if (other !== 0) return other > attempt;
    }
    return false;
  }

  private insert(point: Point, attempt: number): void {
    const at = upperBound(this.steps, point.step);
    if (at === this.length) return this.push(point, attempt);
    this.splice(at, 0, point, attempt);
  }

  private splice(at: number, removed: number, point?: Point, attempt = 0): void {
    this.steps.splice(at, removed, ...(point ? [point.step] : []));
    this.values.splice(at, removed, ...(point ? [point.value] : []));
    this.attempts.splice(at, removed, ...(point ? [attempt] : []));
  }

  private push({ step, value }: Point, attempt: number): void {
    this.steps.push(step);
    this.values.push(value);
    this.attempts.push(attempt);
  }

  // Adds logged points of increasing steps to reported ones.
  private merge(logged: readonly Point[]): void {
    if (logged.length === 0) return;
    const steps = this.steps.splice(0);
    const values = this.values.splice(0);
    const attempts = this.attempts.splice(0);
    let next = 0;
    const takeUntil = (step: number): void => {
      for (; next < logged.length && (logged[next] as Point).step < step; next += 1)
        this.push(logged[next] as Point, 0);
    };
    steps.forEach((step, i) => {
      takeUntil(step);
      if (logged[next]?.step === step) next += 1;
      this.push({ step, value: values[i] as number }, attempts[i] as number);
    });
    takeUntil(Infinity);
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
      if (this.attempts[i] !== 0 && (best === undefined || better(mode, value, best))) best = value;
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
