import type { Curve } from '../model/curve';
import { formatMetric } from '../model/numbers';

/** Draws curves and labels of axes; CurvePainter decides which and where. */

export interface Opacity {
  few: number;
  manyAt: number;
  least: number;
}

// Few lines are almost opaque; many are transparent, so that density shows where most of them run.
export const strongAlpha: Opacity = { few: 0.9, manyAt: 150, least: 0.3 };
export const faintAlpha: Opacity = { few: 0.34, manyAt: 60, least: 0.07 };

export function alphaFor(count: number, by: Opacity): number {
  return count <= by.manyAt ? by.few : Math.max(by.least, by.few * Math.sqrt(by.manyAt / count));
}

/** Distances between labels of whole numbers. */
export const wholeIncrements = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6];

/**
 * Labels of an axis, all with as many decimals as their distance needs. On a logarithmic scale
 * distances differ, so each label is as short as possible.
 */
export function axisLabels(splits: readonly (number | null)[], logarithmic: boolean): string[] {
  const digits = logarithmic ? Infinity : decimalsBetween(splits);
  return splits.map((value) => {
    if (value === null) return '';
    // Adding increments causes rounding errors: 0.30000000000000004.
    const clean = Number(value.toPrecision(12));
    const magnitude = Math.abs(clean);
    const plain = magnitude < 1e6 && (magnitude >= 1e-3 || clean === 0);
    // The lowest label of a logarithmic axis is the end of its range, which has many digits.
    if (logarithmic && plain) return String(Number(clean.toPrecision(4)));
    if (digits > mostDecimals || magnitude >= 1e6) return formatMetric(clean);
    return clean.toFixed(digits).replace('-', '−');
  });
}

const mostDecimals = 4;

function decimalsBetween(splits: readonly (number | null)[]): number {
  const [first, second] = splits.filter((value) => value !== null);
  const apart = Math.abs((second ?? 0) - (first ?? 0));
  if (apart === 0) return 0;
  const decimals = Math.max(0, -Math.floor(Math.log10(apart) + 1e-9));
  // Increments such as 0.25 need one more decimal than their magnitude suggests.
  const exact = Math.abs(Number(apart.toFixed(decimals)) - apart) < apart / 100;
  return exact ? decimals : decimals + 1;
}

// Draws several points in one pixel as their extremes, which keeps every spike.
export function strokeCurve(
  ctx: CanvasRenderingContext2D,
  curve: Curve,
  toX: (value: number) => number,
  toY: (value: number) => number,
  pixel: number,
): void {
  const { steps, values } = curve;
  const begins = new Set(curve.clones.map((clone) => curve.firstOf(clone)));
  let open = false;
  let column = NaN;
  let low = 0;
  let high = 0;
  let last = 0;
  const leaveColumn = (): void => {
    if (low === high) return;
    ctx.lineTo(column, low);
    ctx.lineTo(column, high);
    ctx.lineTo(column, last);
  };
  ctx.beginPath();
  for (let i = 0; i < steps.length; i += 1) {
    const y = toY(values[i] as number);
    if (!Number.isFinite(y)) {
      // A gap where the value is NaN or infinite.
      if (open) leaveColumn();
      open = false;
      column = NaN;
      continue;
    }
    if (begins.has(i) || curve.isSeam(i)) {
      if (open) leaveColumn();
      open = false;
      column = NaN;
    }
    const x = toX(steps[i] as number);
    if (open && x - column < pixel) {
      low = Math.min(low, y);
      high = Math.max(high, y);
      last = y;
      continue;
    }
    if (open) leaveColumn();
    if (open) ctx.lineTo(x, y);
    else ctx.moveTo(x, y);
    open = true;
    column = x;
    low = high = last = y;
  }
  if (open) leaveColumn();
  ctx.stroke();
}

/** Draws a tick where a curve changes from a newer attempt back to an earlier one. */
export function strokeSeams(
  ctx: CanvasRenderingContext2D,
  curve: Curve,
  toX: (value: number) => number,
  toY: (value: number) => number,
  pixel: number,
): void {
  curve.steps.forEach((step, i) => {
    if (!curve.isSeam(i)) return;
    const x = toX(step);
    const y = toY(curve.values[i] as number);
    if (!Number.isFinite(y)) return;
    ctx.beginPath();
    ctx.moveTo(x, y - 5 * pixel);
    ctx.lineTo(x, y + 5 * pixel);
    ctx.stroke();
  });
}

/** Draws a ring on the donor's line and a dashed line to the point where each clone continues. */
export function strokeClones(
  ctx: CanvasRenderingContext2D,
  curve: Curve,
  curveOf: (trial: number) => Curve | undefined,
  toX: (value: number) => number,
  toY: (value: number) => number,
  pixel: number,
): void {
  for (const clone of curve.clones) {
    const first = curve.firstOf(clone);
    const from = curveOf(clone.donor)?.at(clone.step);
    if (first === undefined || from === undefined) continue;
    const ends = [toX(clone.step), toY(from), toX(curve.steps[first] as number)] as const;
    const last = toY(curve.values[first] as number);
    if (!ends.every(Number.isFinite) || !Number.isFinite(last)) continue;
    ctx.setLineDash([2 * pixel, 2 * pixel]);
    ctx.beginPath();
    ctx.moveTo(ends[0], ends[1]);
    ctx.lineTo(ends[2], last);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.beginPath();
    ctx.arc(ends[0], ends[1], 3.5 * pixel, 0, 2 * Math.PI);
    ctx.stroke();
  }
}

export function dotAtEnd(
  ctx: CanvasRenderingContext2D,
  curve: Curve,
  toX: (value: number) => number,
  toY: (value: number) => number,
  radius: number,
): void {
  const last = curve.length - 1;
  const value = curve.values[last];
  if (value === undefined || !Number.isFinite(value)) return;
  ctx.beginPath();
  ctx.arc(toX(curve.steps[last] as number), toY(value), radius, 0, 2 * Math.PI);
  ctx.fill();
}
