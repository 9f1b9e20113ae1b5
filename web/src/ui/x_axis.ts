import { formatCount } from '../model/numbers';
import { formatSpan } from '../model/time';
import type { Scale } from './axis_plot';
import { axisLabels, wholeIncrements } from './curve_drawing';

/** The numbers of trials, seconds since the start, or values of a metric. */
export type XUnit = 'number' | 'seconds' | 'value';

/** Distances between labels of times. */
const secondIncrements = [
  ...[0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800],
  ...[1, 2, 4, 8, 16, 48, 120, 240].map((halfDays) => halfDays * 43_200),
];

/** The horizontal axis of a chart that can have several units. */
export function xScale(x: XUnit, range: readonly [number, number]): Scale {
  return {
    range,
    labels: (splits) => xLabels(x, splits),
    ...(x === 'number' ? { increments: wholeIncrements } : {}),
    ...(x === 'seconds' ? { increments: secondIncrements } : {}),
  };
}

/** The range of numbers or times, with a margin. */
export function wholeRange(values: Float64Array): [number, number] {
  const low = values.reduce((least, value) => Math.min(least, value), Infinity);
  const high = values.reduce((most, value) => Math.max(most, value), -Infinity);
  if (low > high) return [0, 1];
  const margin = (high - low) * 0.025 || 0.5;
  return [low - margin, high + margin];
}

function xLabels(x: XUnit, splits: readonly (number | null)[]): string[] {
  if (x === 'value') return axisLabels(splits, false);
  const apart = Math.abs((splits[1] ?? 0) - (splits[0] ?? 0));
  return splits.map((value) => {
    // A margin may reach below the first.
    if (value === null || value < 0) return '';
    return x === 'number' ? formatCount(value) : formatSpan(value, apart);
  });
}
