import { describe, expect, it } from 'vitest';

import type { Axis } from '../../../web/src/model/axes';
import { Response, leastObserved, type Observed } from '../../../web/src/model/response';

const axis = (name: string, kind: Axis['kind'] = 'linear'): Axis => ({
  ...{ key: `config.${name}`, name, kind, whole: false, min: 0, max: 1, mode: undefined },
  ...{ values: kind === 'listed' ? ['a', 'b'] : [], lane: false },
});

/** Values of a function on a regular grid. */
function observed(axes: Axis[], count: number, value: (...at: number[]) => number): Observed {
  const at = Array.from({ length: count }, (_, i) => i / (count - 1));
  const points = axes.length === 1 ? at.map((x) => [x]) : at.flatMap((x) => at.map((y) => [x, y]));
  return {
    axes,
    numbers: points.map((_, i) => i),
    places: axes.map((_, k) => Float64Array.from(points, (point) => point[k] as number)),
    values: Float64Array.from(points, (point) => value(...point)),
  };
}

describe('a model of a metric', () => {
  it('follows a smooth function of one parameter', () => {
    const response = Response.of(observed([axis('x')], 101, (x) => Math.sin(4 * x)));
    for (const x of [0.2, 0.5, 0.8])
      expect(response?.predict([x]).mean).toBeCloseTo(Math.sin(4 * x), 1);
  });

  it('follows an interaction of two parameters', () => {
    const response = Response.of(observed([axis('x'), axis('y')], 21, (x, y) => (x - 0.5) * y));
    expect(response?.predict([0.9, 0.9]).mean).toBeGreaterThan(0.25);
    expect(response?.predict([0.1, 0.9]).mean).toBeLessThan(-0.25);
    expect(response?.predict([0.9, 0.05]).mean).toBeLessThan(0.1);
  });

  it('keeps the values of a choice apart', () => {
    const both = observed([axis('x', 'listed')], 2, (x) => x);
    const repeated: Observed = {
      ...both,
      numbers: Array.from({ length: 20 }, (_, i) => i),
      places: [Float64Array.from({ length: 20 }, (_, i) => i % 2)],
      values: Float64Array.from({ length: 20 }, (_, i) => (i % 2) * 10),
    };
    const response = Response.of(repeated);
    expect(response?.predict([0])).toEqual({ mean: 0, deviation: 0, weight: 10 });
    expect(response?.predict([1])).toEqual({ mean: 10, deviation: 0, weight: 10 });
  });

  it('needs some trials, and knows nothing far from them', () => {
    expect(Response.of(observed([axis('x')], leastObserved - 1, (x) => x))).toBeUndefined();
    const half = observed([axis('x')], 101, (x) => x);
    half.places[0] = (half.places[0] as Float64Array).map((x) => x * 0.2);
    expect(Response.of(half)?.predict([1]).weight).toBeLessThan(0.01);
  });
});
