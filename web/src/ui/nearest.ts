import { upperBound, type Curve } from '../model/curve';

/**
 * The number of the curve that passes nearest to a point, or undefined when none passes within the
 * radius. Measured vertically, along the cursor's line; a curve that ended shortly before the
 * cursor counts with its last value, so that short curves can be pointed at too.
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

// How far beyond its end, in steps, a curve can still be pointed at.
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
