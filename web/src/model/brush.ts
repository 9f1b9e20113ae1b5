import { axisReader, formatAt, valueAt, type Axis, type Strands } from './axes';
import type { Predicate } from './filter';
import type { Sweep } from '../api/contract';

/** A part of an axis: values from `low` to `high`, and with `absent` also trials without a value. */
export interface Brush {
  low: number;
  high: number;
  absent: boolean;
}

/** Brushes by the key of their axis. */
export type Brushes = Readonly<Record<string, Brush>>;

/** Selects only trials without a value. */
export const absentOnly: Brush = { low: Infinity, high: -Infinity, absent: true };

/**
 * The brush between two places of an axis. At an end of the axis it is open, so that it also selects
 * future values. A place below 0 is the lane of trials without a value. Undefined if the brush can
 * select nothing.
 */
export function brushBetween(axis: Axis, from: number, to: number): Brush | undefined {
  const [first, last] = from < to ? [from, to] : [to, from];
  const absent = axis.lane && first < 0;
  if (last < 0) return absent ? absentOnly : undefined;
  const rounded = (value: number): number => Number(value.toPrecision(4));
  let low = first <= 0 ? -Infinity : rounded(valueAt(axis, first));
  let high = last >= 1 ? Infinity : rounded(valueAt(axis, last));
  if (axis.whole) [low, high] = [Math.ceil(low), Math.floor(high)];
  if (low > high) return absent ? absentOnly : undefined;
  return { low, high, absent };
}

export function isWithin({ low, high, absent }: Brush, value: number | undefined): boolean {
  return value === undefined ? absent : value >= low && value <= high;
}

/** Selects trials in all brushes. Brushes of axes that no longer exist are ignored. */
export function brushFilter(brushes: Brushes, axes: readonly Axis[], sweep: Sweep): Predicate {
  const tests = axes.flatMap((axis) => {
    const brush = brushes[axis.key];
    return brush ? [{ brush, read: axisReader(axis, sweep) }] : [];
  });
  return (row) => tests.every(({ brush, read }) => isWithin(brush, read(row)));
}

/** Which strands are in all brushes, and how many. */
export interface Chosen {
  mask: Uint8Array;
  count: number;
}

/** Undefined without brushes. */
export function chosenStrands(
  brushes: Brushes,
  axes: readonly Axis[],
  { numbers, values }: Strands,
): Chosen | undefined {
  const tests = axes.flatMap((axis, i) => {
    const brush = brushes[axis.key];
    return brush ? [{ ...brush, i }] : [];
  });
  if (tests.length === 0) return undefined;
  const mask = new Uint8Array(numbers.length);
  let count = 0;
  for (let line = 0; line < numbers.length; line += 1) {
    const isIn = tests.every(({ low, high, absent, i }) => {
      const value = values[line * axes.length + i] as number;
      return Number.isNaN(value) ? absent : value >= low && value <= high;
    });
    mask[line] = isIn ? 1 : 0;
    count += mask[line] as number;
  }
  return { mask, count };
}

/** A filter of the server that selects what the brushes select. */
export function brushQuery(brushes: Brushes, axes: readonly Axis[]): string {
  return axes
    .flatMap((axis) => {
      const brush = brushes[axis.key];
      return brush ? [axisQuery(axis, brush)] : [];
    })
    .join(' ');
}

function axisQuery(axis: Axis, { low, high, absent }: Brush): string {
  const name = axis.key;
  const end = (value: number): string => (Number.isFinite(value) ? String(value) : '');
  const within =
    axis.kind === 'listed'
      ? axis.values
          .filter((_, i) => i >= low && i <= high)
          .map((value) => `${name}="${String(value)}"`)
          .join(' OR ')
      : `${name}:${end(low)}..${end(high)}`;
  const none = `-${name}:..`;
  if (low > high) return none;
  return absent ? `(${within} OR ${none})` : `(${within})`;
}

/** The form in the URL: `config.lr~0.001~0.1,config.momentum~absent`; an open end is empty. */
export function formatBrushes(brushes: Brushes): string {
  return Object.entries(brushes)
    .map(([key, { low, high, absent }]) => {
      const ends = low > high ? [] : [low, high].map((end) => (Number.isFinite(end) ? end : ''));
      const name = encodeURIComponent(key).replaceAll('~', '%7E');
      return [name, ...ends, ...(absent ? ['absent'] : [])].join('~');
    })
    .join(',');
}

/** Skips parts that it cannot parse. */
export function parseBrushes(text: string | null): Brushes {
  const brushes: Record<string, Brush> = {};
  for (const part of (text ?? '').split(',').filter(Boolean)) {
    const [name = '', ...rest] = part.split('~');
    const absent = rest.at(-1) === 'absent';
    const ends = absent ? rest.slice(0, -1) : rest;
    const brush = ends.length === 0 && absent ? absentOnly : readEnds(ends, absent);
    const key = decode(name);
    if (brush && key) brushes[key] = brush;
  }
  return brushes;
}

function readEnds([low, high, ...more]: string[], absent: boolean): Brush | undefined {
  if (low === undefined || high === undefined || more.length > 0) return undefined;
  const brush = {
    low: low === '' ? -Infinity : Number(low),
    high: high === '' ? Infinity : Number(high),
    absent,
  };
  return brush.low <= brush.high ? brush : undefined;
}

function decode(name: string): string | undefined {
  try {
    return decodeURIComponent(name);
  } catch {
    return undefined;
  }
}

/** "lr 0.001 … 0.1", "momentum ≥ 0.9 or absent", "optimizer sgd, adamw". */
export function brushText(axis: Axis, { low, high, absent }: Brush): string {
  if (low > high) return `${axis.name} absent`;
  const open = [low, high].map((end) => !Number.isFinite(end));
  const [from, to] = [low, high].map((end) => formatAt(axis, end));
  const text =
    axis.kind === 'listed'
      ? axis.values
          .filter((_, i) => i >= low && i <= high)
          .map(String)
          .join(', ')
      : open[0] && open[1]
        ? 'present'
        : open[0]
          ? `≤ ${to}`
          : open[1]
            ? `≥ ${from}`
            : `${from} … ${to}`;
  return `${axis.name} ${text}${absent ? ' or absent' : ''}`;
}
