import { axisReader, placeOf, type Axis } from './axes';
import { fromWire } from './numbers';
import type { TrialRow } from './sweep_model';
import type { Sweep } from '../api/contract';

/** Trials with a value of a metric, and their places on the axes of some parameters. */
export interface Observed {
  axes: readonly Axis[];
  numbers: number[];
  /** By axis: places from 0 to 1; on a listed axis, indices. */
  places: Float64Array[];
  values: Float64Array;
}

/** A trial's value of a metric: the best of the first objective, the last of others. */
export function metricValue(row: TrialRow, metric: string, sweep: Sweep): number | undefined {
  if (metric === sweep.metric.name) return row.best;
  const wire = row.metrics[metric];
  return wire === undefined ? undefined : fromWire(wire);
}

export function observe(
  rows: readonly TrialRow[],
  axes: readonly Axis[],
  metric: string,
  sweep: Sweep,
): Observed {
  const readers = axes.map((axis) => axisReader(axis, sweep));
  const numbers: number[] = [];
  const values: number[] = [];
  const places: number[][] = axes.map(() => []);
  for (const row of rows) {
    const value = metricValue(row, metric, sweep);
    const at = readers.map((read) => read(row));
    if (value === undefined || !Number.isFinite(value) || at.some((each) => each === undefined))
      continue;
    numbers.push(row.number);
    values.push(value);
    axes.forEach((axis, i) => {
      const each = at[i] as number;
      places[i]?.push(axis.kind === 'listed' ? each : placeOf(axis, each));
    });
  }
  return {
    axes,
    numbers,
    places: places.map((each) => Float64Array.from(each)),
    values: Float64Array.from(values),
  };
}

export interface Prediction {
  mean: number;
  /** The standard deviation of the values around the place. */
  deviation: number;
  /** How many trials are near, by their weights. */
  weight: number;
}

/** A model of a metric needs as many trials. */
export const leastObserved = 10;

const mostUsed = 1000;
const mostTested = 150;
const bandwidths = [0.03, 0.05, 0.08, 0.12, 0.2, 0.3];

/**
 * Predicts a metric from one or two parameters by kernel regression (Nadaraya 1964, Watson 1964): the
 * mean of the trials, weighted by their distance. Of several widths of the kernel it uses the one that
 * predicts trials best from the others. Undefined if there are too few trials.
 */
export class Response {
  private readonly stride: number;
  private readonly bandwidth: number;

  private constructor(private readonly observed: Observed) {
    this.stride = Math.max(1, Math.ceil(observed.values.length / mostUsed));
    this.bandwidth = this.chooseBandwidth();
  }

  static of(observed: Observed): Response | undefined {
    return observed.values.length < leastObserved ? undefined : new Response(observed);
  }

  /** `at`: places as in `Observed`. */
  predict(at: readonly number[]): Prediction {
    return this.weigh(at, this.bandwidth, -1);
  }

  private chooseBandwidth(): number {
    const { values, places } = this.observed;
    const step = Math.max(1, Math.ceil(values.length / mostTested));
    let best = bandwidths[0] as number;
    let least = Infinity;
    for (const bandwidth of bandwidths) {
      let error = 0;
      for (let i = 0; i < values.length; i += step) {
        const at = places.map((each) => each[i] as number);
        const { mean } = this.weigh(at, bandwidth, i);
        // Without a neighbour, the mean of all is the prediction.
        error += ((Number.isNaN(mean) ? this.meanOfAll() : mean) - (values[i] as number)) ** 2;
      }
      if (error >= least) continue;
      least = error;
      best = bandwidth;
    }
    return best;
  }

  private meanOfAll(): number {
    const { values } = this.observed;
    return values.reduce((sum, value) => sum + value, 0) / values.length;
  }

  private weigh(at: readonly number[], bandwidth: number, without: number): Prediction {
    const { axes, places, values } = this.observed;
    let [weight, sum, squares] = [0, 0, 0];
    for (let i = 0; i < values.length; i += this.stride) {
      if (i === without) continue;
      let distance = 0;
      for (let axis = 0; axis < axes.length; axis += 1) {
        const off = (places[axis]?.[i] as number) - (at[axis] as number);
        if (axes[axis]?.kind === 'listed') distance += off === 0 ? 0 : Infinity;
        else distance += (off / bandwidth) ** 2;
      }
      if (distance > 30) continue;
      const w = Math.exp(-distance / 2);
      const value = values[i] as number;
      weight += w;
      sum += w * value;
      squares += w * value * value;
    }
    if (weight === 0) return { mean: NaN, deviation: NaN, weight };
    const mean = sum / weight;
    return { mean, deviation: Math.sqrt(Math.max(0, squares / weight - mean * mean)), weight };
  }
}
