import type { Point } from './history';

/**
 * The empirical distribution function: for each distinct value, the share of values that are not larger.
 * NaN and infinities are left out.
 */
export function distributionOf(values: Iterable<number>): Point[] {
  const sorted = Float64Array.from([...values].filter(Number.isFinite)).sort();
  const points: Point[] = [];
  sorted.forEach((x, i) => {
    if (sorted[i + 1] !== x) points.push({ x, y: (i + 1) / sorted.length });
  });
  // The stair rises from zero at the first value.
  const first = points[0];
  return first ? [{ x: first.x, y: 0 }, ...points] : [];
}

/** The value at or below which a share of the distribution lies. */
export function quantileOf(points: readonly Point[], share: number): number | undefined {
  return points.find(({ y }) => y >= share && y > 0)?.x;
}
