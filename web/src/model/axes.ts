import type { ConfigValue, Metric, Parameter, Sweep, SweepDetail } from '../api/contract';
import { frameOfValues } from './curve_frame';
import { formatConfig, formatMetric, fromWire } from './numbers';
import type { TrialRow } from './sweep_model';

/** An axis of parallel coordinates: a parameter, or a metric. */
export interface Axis {
  /** `config.NAME` or `metrics.NAME`. */
  key: string;
  name: string;
  kind: 'linear' | 'log' | 'listed';
  /** Only whole numbers are values. */
  whole: boolean;
  /** The range of a numeric axis. */
  min: number;
  max: number;
  /** The values of a listed axis, from below. */
  values: readonly ConfigValue[];
  /** Set for a metric: its direction. */
  mode: Metric['mode'] | undefined;
  /** Some trial has no value on the axis; a lane below shows it. */
  lane: boolean;
}

/** The searched parameters in the order of the sweep, then the metrics. */
export function axesOf(
  sweep: SweepDetail,
  rows: readonly TrialRow[],
  logarithmic: boolean,
): Axis[] {
  const searched = sweep.parameters.filter((each) => each.type !== 'constant');
  const axes = searched.map((parameter) => parameterAxis(parameter, rows));
  const metrics = sweep.metrics.map((metric) => metricAxis(metric, sweep, rows, logarithmic));
  return [...axes, ...metrics];
}

function parameterAxis(parameter: Parameter, rows: readonly TrialRow[]): Axis {
  const { name, type, values, scale } = parameter;
  const listed = new Set(values ?? []);
  // Trials may lie outside if the range was edited since.
  let min = Number(parameter.min ?? Infinity);
  let max = Number(parameter.max ?? -Infinity);
  let lane = false;
  for (const { config } of rows) {
    const value = config[name];
    if (value === undefined) lane = true;
    else if (type === 'categorical') listed.add(value);
    else {
      const number = Number(value);
      if (number < min && number > -Infinity) min = number;
      if (number > max && number < Infinity) max = number;
    }
  }
  const base = { key: `config.${name}`, name, mode: undefined, lane };
  if (type === 'categorical') {
    const last = listed.size - 1;
    return { ...base, kind: 'listed', whole: true, min: 0, max: last, values: [...listed] };
  }
  const kind = scale === 'log' && min > 0 ? 'log' : 'linear';
  return { ...base, kind, whole: type === 'int', ...ends(min, max), values: [] };
}

function metricAxis(
  { name, mode }: Metric,
  sweep: Sweep,
  rows: readonly TrialRow[],
  logarithmic: boolean,
): Axis {
  const read = metricReader(name, sweep);
  const values = rows.map(read).filter((value) => value !== undefined);
  const log = logarithmic && values.some((value) => value > 0);
  const frame = frameOfValues(Float64Array.from(values), log);
  // The frame excludes outliers; an axis does not need its margin.
  const within = values.filter((v) => frame && v >= frame.min && v <= frame.max);
  const min = within.reduce((least, value) => Math.min(least, value), Infinity);
  const max = within.reduce((most, value) => Math.max(most, value), -Infinity);
  const lane = values.length < rows.length;
  const base = { key: `metrics.${name}`, name, mode, whole: false, lane, values: [] };
  return { ...base, kind: log ? 'log' : 'linear', ...ends(min, max) };
}

function ends(min: number, max: number): { min: number; max: number } {
  if (min > max) return { min: 0, max: 1 };
  return { min, max };
}

/** Reads a trial's value on an axis: the index of a listed value; undefined without a value. */
export function axisReader(axis: Axis, sweep: Sweep): (row: TrialRow) => number | undefined {
  const { name, values } = axis;
  if (axis.mode !== undefined) return metricReader(name, sweep);
  if (axis.kind === 'listed') {
    const places = new Map(values.map((value, i) => [value, i]));
    return (row) => places.get(row.config[name] as ConfigValue);
  }
  return (row) => {
    const value = row.config[name];
    return value === undefined ? undefined : Number(value);
  };
}

// With several metrics, the newest report, which has all of them; with one, the best value.
function metricReader(name: string, sweep: Sweep): (row: TrialRow) => number | undefined {
  const single = sweep.metrics.length === 1;
  return (row) => {
    const wire = row.metrics[name];
    const value = single ? row.best : wire === undefined ? undefined : fromWire(wire);
    return value !== undefined && Number.isFinite(value) ? value : undefined;
  };
}

/** Trials across the axes, the worst first. */
export interface Strands {
  numbers: Int32Array;
  /** One value for each axis of each trial; NaN if the trial has none there. */
  values: Float64Array;
  /** Rank in the first metric, from 0 (worst) to 1; NaN without a value. */
  merits: Float32Array;
  failed: Uint8Array;
}

/** The values of one trial on the axes. */
export function valuesOf({ values, numbers }: Strands, line: number): Float64Array {
  const axes = numbers.length > 0 ? values.length / numbers.length : 0;
  return values.subarray(line * axes, (line + 1) * axes);
}

export function strandsOf(axes: readonly Axis[], rows: readonly TrialRow[], sweep: Sweep): Strands {
  const readers = axes.map((axis) => axisReader(axis, sweep));
  const metric = firstMetric(axes);
  const axis = axes[metric];
  const meritOf = (row: TrialRow): number => {
    const value = readers[metric]?.(row);
    if (!axis || value === undefined) return NaN;
    const place = placeOf(axis, value);
    return axis.mode === 'min' ? 1 - place : place;
  };
  const merits = Float32Array.from(rows, meritOf);
  const order = Uint32Array.from(rows, (_, i) => i).sort((a, b) => {
    const [left, right] = [merits[a] as number, merits[b] as number];
    const byMerit = (Number.isNaN(left) ? -1 : left) - (Number.isNaN(right) ? -1 : right);
    return byMerit || (rows[a] as TrialRow).number - (rows[b] as TrialRow).number;
  });
  const strands: Strands = {
    numbers: new Int32Array(rows.length),
    values: new Float64Array(rows.length * axes.length),
    merits: new Float32Array(rows.length),
    failed: new Uint8Array(rows.length),
  };
  order.forEach((from, line) => {
    const row = rows[from] as TrialRow;
    strands.numbers[line] = row.number;
    strands.merits[line] = merits[from] as number;
    strands.failed[line] = row.state === 'failed' ? 1 : 0;
    readers.forEach((read, i) => {
      strands.values[line * axes.length + i] = read(row) ?? NaN;
    });
  });
  return strands;
}

export function firstMetric(axes: readonly Axis[]): number {
  return axes.findIndex((axis) => axis.mode !== undefined);
}

/** The place of a value on its axis: 0 at the lower end, 1 at the upper end, clamped to these. */
export function placeOf(axis: Axis, value: number): number {
  const { kind, min, max, values } = axis;
  if (kind === 'listed') return (value + 0.5) / values.length;
  if (max === min) return 0.5;
  const place =
    kind === 'log'
      ? Math.log(Math.max(value, min) / min) / Math.log(max / min)
      : (value - min) / (max - min);
  return Math.min(1, Math.max(0, place));
}

/** The value at a place; on a listed axis, a number between two indices. */
export function valueAt({ kind, min, max, values }: Axis, place: number): number {
  if (kind === 'listed') return place * values.length - 0.5;
  return kind === 'log' ? min * Math.pow(max / min, place) : min + place * (max - min);
}

export function formatAt({ kind, values, mode }: Axis, value: number): string {
  if (kind === 'listed') return formatConfig(values[value]);
  return mode === undefined ? formatConfig(value) : formatMetric(value);
}

/** About `about` values to label. */
export function ticksOf(axis: Axis, about: number): number[] {
  const { kind, min, max, values, whole } = axis;
  if (kind === 'listed') {
    const stride = Math.ceil(values.length / Math.max(1, about));
    return values.map((_, i) => i).filter((i) => i % stride === 0);
  }
  if (min === max) return [min];
  if (kind === 'log') {
    const ticks = logTicks(min, max, about);
    if (ticks.length > 1) return ticks;
  }
  const rough = (max - min) / about;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const fine = [1, 2, 5, 10].map((by) => by * magnitude).find((by) => by >= rough) ?? rough;
  const step = whole ? Math.max(1, Math.round(fine)) : fine;
  const ticks: number[] = [];
  // Adding steps causes rounding errors: 0.30000000000000004.
  for (let i = Math.ceil(min / step - 1e-9); i * step <= max + step * 1e-9; i += 1)
    ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

function logTicks(min: number, max: number, about: number): number[] {
  const [first, last] = [Math.ceil(Math.log10(min) - 1e-9), Math.floor(Math.log10(max) + 1e-9)];
  const decades = last - first + 1;
  const stride = Math.max(1, Math.ceil(decades / about));
  const factors = decades >= about / 2 ? [1] : [1, 2, 5];
  const ticks: number[] = [];
  for (let power = first - 1; power <= last; power += 1) {
    if (factors.length === 1 && (power - first) % stride !== 0) continue;
    for (const factor of factors) {
      const tick = Number(`${factor}e${power}`);
      if (tick >= min * (1 - 1e-9) && tick <= max * (1 + 1e-9)) ticks.push(tick);
    }
  }
  return ticks;
}
