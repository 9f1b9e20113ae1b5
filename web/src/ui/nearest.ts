import { upperBound, type Curve } from '../model/curve';
import type { CurveStore } from '../model/curve_store';

/**
 * The number of the curve nearest to a point, or undefined if none is within the radius. The distance
 * is vertical. A curve that ended shortly before the cursor counts with its last value, so that users
 * can point at short curves too.
 */
export function nearestCurve(
  lines: readonly { number: number; curve: Curve }[],
  step: number,
  yPx: number,
  toPx: (value: number) => number,
  radiusPx: number,
): number | undefined {
  let nearest: number | undefined;
  let distance = radiusPx;
  for (const { number, curve } of lines) {
    const value = valueAt(curve, step);
    if (value === undefined) continue;
    const off = Math.abs(toPx(value) - yPx);
    if (off <= distance) {
      distance = off;
      nearest = number;
    }
  }
  return nearest;
}

// The distance beyond its end, in steps, at which a curve still counts.
const reachSteps = 0.5;

function valueAt(curve: Curve, step: number): number | undefined {
  const { steps, values } = curve;
  if (steps.length === 0) return undefined;
  const right = upperBound(steps, step);
  if (right === 0) return (steps[0] as number) - step <= reachSteps ? values[0] : undefined;
  if (right === steps.length) {
    return step - (steps[right - 1] as number) <= reachSteps ? values[right - 1] : undefined;
  }
  const [x0, x1] = [steps[right - 1] as number, steps[right] as number];
  const [y0, y1] = [values[right - 1] as number, values[right] as number];
  return y0 + ((y1 - y0) * (step - x0)) / (x1 - x0);
}

/** The same for curves that are not objects. */
export function nearestTrace(
  store: CurveStore,
  numbers: Iterable<number>,
  step: number,
  yPx: number,
  toPx: (value: number) => number,
  radiusPx: number,
): number | undefined {
  let nearest: number | undefined;
  let distance = radiusPx;
  for (const number of numbers) {
    const trace = store.trace(number);
    if (!trace) continue;
    const { steps, firstStep, values, firstValue, length } = trace;
    let low = 0;
    let high = length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((steps[firstStep + middle] as number) > step) high = middle;
      else low = middle + 1;
    }
    if (low === 0 || low === length) continue;
    const [x0, x1] = [steps[firstStep + low - 1] as number, steps[firstStep + low] as number];
    const [y0, y1] = [values[firstValue + low - 1] as number, values[firstValue + low] as number];
    const off = Math.abs(toPx(y0 + ((y1 - y0) * (step - x0)) / (x1 - x0)) - yPx);
    if (off <= distance) {
      distance = off;
      nearest = number;
    }
  }
  return nearest;
}

/** The index of the point nearest to a place, or undefined if none is within the radius. Points with
    NaN never count. */
export function nearestPoint(
  points: readonly { x: number; y: number }[],
  x: number,
  y: number,
  radius: number,
): number | undefined {
  let nearest: number | undefined;
  let distance = radius;
  points.forEach((point, i) => {
    const off = Math.hypot(point.x - x, point.y - y);
    if (off <= distance) {
      distance = off;
      nearest = i;
    }
  });
  return nearest;
}

/**
 * The index of the line nearest to a place between two axes at `xs`, or undefined if none is within
 * the radius. `yOf` returns the height of a line on an axis, or NaN to ignore the line.
 */
export function nearestBetween(
  lines: number,
  xs: readonly number[],
  yOf: (line: number, axis: number) => number,
  x: number,
  y: number,
  radius: number,
): number | undefined {
  const right = Math.min(xs.length - 1, Math.max(1, upperBound(xs, x)));
  const [x0, x1] = [xs[right - 1], xs[right]];
  if (x0 === undefined || x1 === undefined || x < x0 - radius || x > x1 + radius) return undefined;
  const share = Math.min(1, Math.max(0, (x - x0) / (x1 - x0)));
  let nearest: number | undefined;
  let distance = radius;
  for (let line = 0; line < lines; line += 1) {
    const [y0, y1] = [yOf(line, right - 1), yOf(line, right)];
    // The distance is perpendicular to the line: steep lines are as easy to hit as flat ones.
    const slant = (x1 - x0) / Math.hypot(x1 - x0, y1 - y0);
    const off = Math.abs(y0 + (y1 - y0) * share - y) * slant;
    if (off <= distance) {
      distance = off;
      nearest = line;
    }
  }
  return nearest;
}
