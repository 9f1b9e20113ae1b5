import { formatAt, type Axis } from '../../model/axes';
import type { Scale } from '../axis_plot';
import { wholeIncrements } from '../curve_drawing';

/** Coordinates of a parameter on an axis of a plot: logarithms, indices or the values. */
export function coordinateOf(axis: Axis, value: number): number {
  return axis.kind === 'log' ? Math.log10(value) : value;
}

/** The coordinate of a place from 0 to 1; of an index on a listed axis. */
export function coordinateAt(axis: Axis, place: number): number {
  const { kind, min, max } = axis;
  if (kind === 'listed') return place;
  if (kind === 'log') return Math.log10(min) + place * (Math.log10(max) - Math.log10(min));
  return min + place * (max - min);
}

/** The range of the coordinates, with a margin. */
export function coordinateRange(axis: Axis): [number, number] {
  if (axis.kind === 'listed') return [-0.5, axis.values.length - 0.5];
  const [low, high] = [coordinateOf(axis, axis.min), coordinateOf(axis, axis.max)];
  const margin = (high - low) * 0.03 || 0.5;
  return [low - margin, high + margin];
}

export function parameterScale(axis: Axis): Scale {
  const textOf = (at: number): string => {
    if (axis.kind === 'log') return formatAt(axis, Number((10 ** at).toPrecision(3)));
    if (axis.kind !== 'listed') return formatAt(axis, Number(at.toPrecision(6)));
    return axis.values[at] === undefined ? '' : formatAt(axis, at);
  };
  const range = coordinateRange(axis);
  // On a logarithmic axis these are powers of ten.
  const isWhole =
    axis.kind === 'log' ? range[1] - range[0] > 2 : axis.kind === 'listed' || axis.whole;
  return {
    range,
    labels: (splits) => splits.map((at) => (at === null ? '' : textOf(at))),
    ...(isWhole ? { increments: wholeIncrements } : {}),
  };
}

/** Moves the dots of a listed axis apart, always in the same way. */
export function spread(axis: Axis, number: number): number {
  return axis.kind === 'listed' ? (((number * 7919) % 97) / 97 - 0.5) * 0.5 : 0;
}
