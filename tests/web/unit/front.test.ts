import { describe, expect, it } from 'vitest';

import type { Best, Sweep } from '../../../web/src/api/contract';
import {
  constraintsSummary,
  isCounted,
  joinsFront,
  orderedFront,
} from '../../../web/src/model/front';
import { World } from '../mock/world';

function report(trial: number, accuracy: number, latency: number): Best {
  const metrics = { accuracy, latency };
  return {
    trial,
    step: 1,
    value: accuracy,
    values: [accuracy, latency],
    config: {},
    metrics,
    checkpoint: null,
    checkpoint_step: null,
  };
}

function sweepOfTwo(): Sweep {
  return new World().addSweep({
    id: 's1',
    metrics: [
      { name: 'accuracy', mode: 'max', target: null },
      { name: 'latency', mode: 'min', target: null },
    ],
    constraints: { latency: { min: null, max: 20 } },
    pareto_front: [report(3, 0.7, 5), report(4, 0.9, 15)],
  });
}

describe('the front', () => {
  it('takes a report that counts and that none is as good as in everything', () => {
    const sweep = sweepOfTwo();
    expect(joinsFront(sweep, { accuracy: 0.8, latency: 10 })).toBe(true);
    expect(joinsFront(sweep, { accuracy: 0.7, latency: 6 })).toBe(false);
    expect(joinsFront(sweep, { accuracy: 0.9, latency: 15 })).toBe(false);
  });

  it('counts no report that is not finite or violates a constraint', () => {
    const sweep = sweepOfTwo();
    expect(isCounted(sweep, { accuracy: 0.8, latency: 20 })).toBe(true);
    expect(isCounted(sweep, { accuracy: 0.8, latency: 20.1 })).toBe(false);
    expect(isCounted(sweep, { accuracy: 'nan', latency: 1 })).toBe(false);
    expect(isCounted(sweep, { accuracy: 0.8, latency: '-inf' })).toBe(false);
    expect(isCounted(sweep, { accuracy: 0.8 })).toBe(false);
  });

  it('is listed with the best in the first metric first', () => {
    expect(orderedFront(sweepOfTwo()).map(({ trial }) => trial)).toEqual([4, 3]);
  });

  it('says its constraints in words', () => {
    expect(
      constraintsSummary({
        a: { min: null, max: 20 },
        b: { min: 1, max: null },
        c: { min: 0, max: 1 },
      }),
    ).toBe('a ≤ 20, b ≥ 1, c 0 … 1');
  });
});
