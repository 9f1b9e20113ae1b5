/** A curve, or other values that a frame must contain. */
export interface Valued {
  values: ArrayLike<number>;
}

/** Values that are a part of a longer array. */
export interface ValuedPart extends Valued {
  firstValue: number;
  length: number;
}

export interface Frame {
  min: number;
  max: number;
  /** How many curves leave the frame, because they diverge far from all others. */
  clipped: number;
}

/** The frame of a plot without values. A logarithmic axis cannot begin at 0. */
export function emptyFrame(logarithmic: boolean): Frame {
  return { min: logarithmic ? 0.1 : 0, max: 1, clipped: 0 };
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
  const parts: ValuedPart[] = [];
  for (const { values } of curves) parts.push({ values, firstValue: 0, length: values.length });
  return frameOfParts(parts, logarithmic);
}

/** The same for values that are curves of one point each. */
export function frameOfValues(values: Float64Array, logarithmic: boolean): Frame | undefined {
  const whole = { values, firstValue: 0, length: values.length };
  const least = logarithmic ? Number.MIN_VALUE : -Number.MAX_VALUE;
  const [min, max] = rangeIn(whole, least, Number.MAX_VALUE);
  if (min > max) return undefined;
  if (logarithmic) return { ...pad(min, max, true), clipped: 0 };
  const [low, high] = outlierBounds([whole], values.length);
  if (min >= low && max <= high) return { ...pad(min, max, false), clipped: 0 };
  const inner = rangeIn(whole, low, high);
  const isOut = (value: number): boolean => Number.isFinite(value) && (value < low || value > high);
  const clipped = values.reduce((count, value) => count + (isOut(value) ? 1 : 0), 0);
  return { ...pad(...inner, false), clipped };
}

export function frameOfParts(
  parts: readonly ValuedPart[],
  logarithmic: boolean,
): Frame | undefined {
  const points = parts.reduce((sum, { length }) => sum + length, 0);
  const least = logarithmic ? Number.MIN_VALUE : -Number.MAX_VALUE;
  const ranges = parts.map((part) => rangeIn(part, least, Number.MAX_VALUE));
  const [min, max] = wholeRange(ranges);
  if (min > max) return undefined;
  if (logarithmic) return { ...pad(min, max, true), clipped: 0 };

  const [low, high] = outlierBounds(parts, points);
  if (min >= low && max <= high) return { ...pad(min, max, false), clipped: 0 };
  const isOut = ([first, last]: Range): boolean => first <= last && (first < low || last > high);
  const inner = parts.map((part, i) =>
    isOut(ranges[i] as Range) ? rangeIn(part, low, high) : (ranges[i] as Range),
  );
  const clipped = ranges.filter(isOut).length;
  return { ...pad(...wholeRange(inner), false), clipped };
}

type Range = readonly [min: number, max: number];

function rangeIn(
  { values, firstValue, length }: ValuedPart,
  low: number,
  high: number,
): [number, number] {
  let min = Infinity;
  let max = -Infinity;
  for (let i = firstValue; i < firstValue + length; i += 1) {
    const value = values[i] as number;
    if (value < min && value >= low) min = value;
    if (value > max && value <= high) max = value;
  }
  return [min, max];
}

function wholeRange(ranges: readonly Range[]): [number, number] {
  let min = Infinity;
  let max = -Infinity;
  for (const [first, last] of ranges) {
    if (first < min) min = first;
    if (last > max) max = last;
  }
  return [min, max];
}

function outlierBounds(parts: readonly ValuedPart[], points: number): [number, number] {
  const stride = Math.max(1, Math.ceil(points / mostSampled));
  const sampled = new Float64Array(Math.ceil(points / stride));
  let count = 0;
  let skip = 0;
  for (const { values, firstValue, length } of parts) {
    let i = skip;
    for (; i < length; i += stride) {
      const value = values[firstValue + i] as number;
      if (Number.isFinite(value)) sampled[count++] = value;
    }
    skip = i - length;
  }
  const sorted = sampled.subarray(0, count).sort();
  if (count === 0) return [-Infinity, Infinity];
  const at = (quantile: number): number => sorted[Math.round(quantile * (count - 1))] as number;
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
