import { describe, expect, it } from 'vitest';

import { Curve, type Clone, bestSoFar, upperBound } from '../../../web/src/model/curve';
import { frameOf } from '../../../web/src/model/curve_frame';
import {
  alphaFor,
  axisLabels,
  faintAlpha,
  strokeClones,
  strokeCurve,
} from '../../../web/src/ui/curve_drawing';
import { tableSteps } from '../../../web/src/ui/curve_chart';
import { nearestCurve } from '../../../web/src/ui/nearest';

function curve(
  steps: number[],
  values: (number | 'nan' | 'inf' | '-inf')[],
  clones: Clone[] = [],
): Curve {
  const segments = steps.length > 0 ? [{ attempt: 1, first_step: steps[0] as number }] : [];
  return Curve.fromWire({ number: 0, steps, values, segments, clones });
}

describe('a curve', () => {
  it('keeps NaN as a point of its own', () => {
    const made = curve([1, 2, 3], [0.1, 'nan', 0.3]);
    expect(made.values).toEqual([0.1, NaN, 0.3]);
    expect(made.best('max')).toBe(0.3);
  });

  it('has at each step the value of the newest attempt that covers it', () => {
    const made = curve([1, 2, 3, 4], [0.1, 0.2, 0.3, 0.4]);
    made.append(3, 0.35, 2, 1);
    expect(made.steps).toEqual([1, 3, 4]);
    expect(made.values).toEqual([0.1, 0.35, 0.4]);
    expect(made.seams).toEqual([4]);
    made.append(5, 0.55, 2, 1);
    expect(made.steps).toEqual([1, 3, 5]);
    expect(made.seams).toEqual([]);
  });

  it('continues where a newer attempt of the wire has stopped', () => {
    const segments = [
      { attempt: 2, first_step: 1 },
      { attempt: 1, first_step: 3 },
    ];
    const made = Curve.fromWire({
      ...{ number: 0, steps: [1, 2, 3, 4], values: [0.1, 0.2, 0.3, 0.4], segments, clones: [] },
    });
    expect(made.seams).toEqual([3]);
    made.append(4, 0.45, 2);
    expect(made.steps).toEqual([1, 2, 4]);
    expect(made.seams).toEqual([]);
  });

  it('keeps reports where an attempt that resumed logs, and the other way round', () => {
    const made = curve([1, 2, 3], [1, 2, 3]);
    for (const step of [0.5, 2.5, 3.5]) made.log(step, step);
    made.log(1.5, 1.5);
    expect(made.steps).toEqual([0.5, 1, 1.5, 2, 3]);
    expect([made.best('max'), made.best('min')]).toEqual([3, 1]);
    made.append(2, 20, 2, 1);
    expect(made.steps).toEqual([0.5, 1, 1.5, 2, 3]);
    made.log(2.5, 2.5);
    made.append(2.5, 25, 2, 1);
    made.log(2.5, 0);
    expect(made.steps).toEqual([0.5, 1, 1.5, 2, 2.5, 3]);
    expect(made.values).toEqual([0.5, 1, 1.5, 20, 25, 3]);
  });

  it('has at a step the last value up to it', () => {
    const made = curve([2, 4], [0.2, 0.4]);
    expect([1, 2, 3, 4, 9].map((step) => made.at(step))).toEqual([undefined, 0.2, 0.2, 0.4, 0.4]);
  });

  it('goes on from a clone at the first point behind it', () => {
    const clones = [
      { donor: 1, step: 2 },
      { donor: 3, step: 9 },
    ];
    const made = curve([1, 2, 4, 5], [0.1, 0.2, 0.7, 0.8], clones);
    expect(made.clones.map((clone) => made.firstOf(clone))).toEqual([2, undefined]);
  });

  it('forgets clones of which another one leaves nothing', () => {
    const made = curve(
      [1],
      [0.1],
      [
        { donor: 1, step: 2 },
        { donor: 2, step: 4 },
        { donor: 3, step: 4 },
      ],
    );
    expect(made.clones.map(({ donor }) => donor)).toEqual([1, 3]);
  });

  it('is drawn in parts, and each clone from the line of its donor', () => {
    const calls: string[] = [];
    const note = (name: string) => (x: number, y: number) => calls.push(`${name} ${x},${y}`);
    const context = {
      beginPath: () => undefined,
      stroke: () => undefined,
      setLineDash: (dashes: number[]) => calls.push(dashes.length > 0 ? 'dashed' : 'whole'),
      moveTo: note('move'),
      lineTo: note('line'),
      arc: note('ring'),
    } as unknown as CanvasRenderingContext2D;
    const made = curve([10, 20, 30, 40], [1, 2, 7, 8], [{ donor: 5, step: 20 }]);
    const donor = curve([20], [6]);
    const same = (value: number): number => value;
    strokeCurve(context, made, same, same, 1);
    expect(calls.splice(0)).toEqual(['move 10,1', 'line 20,2', 'move 30,7', 'line 40,8']);
    const curveOf = (trial: number): Curve | undefined => (trial === 5 ? donor : undefined);
    strokeClones(context, made, curveOf, same, same, 1);
    expect(calls).toEqual(['dashed', 'move 20,6', 'line 30,7', 'whole', 'ring 20,6']);
  });

  it('has NaN as its best only when it has nothing else', () => {
    expect(curve([1], ['nan']).best('max')).toBeNaN();
    expect(curve([], []).best('max')).toBeUndefined();
  });

  it('is searched like any ascending array', () => {
    expect([0, 1, 2, 5].map((value) => upperBound([1, 2, 2, 4], value))).toEqual([0, 1, 3, 4]);
  });
});

describe('the frame of a chart', () => {
  const normal = Array.from({ length: 20 }, (_, i) =>
    curve([1, 2], [0.5 + i / 100, 0.6 + i / 100]),
  );

  it('holds every value when none is far out', () => {
    const frame = frameOf(normal, false);
    expect(frame?.min).toBeLessThan(0.5);
    expect(frame?.max).toBeGreaterThan(0.79);
    expect(frame?.clipped).toBe(0);
  });

  it('is not flattened by one trial that diverges, and counts it', () => {
    const frame = frameOf([...normal, curve([1, 2], [0.5, 1e6])], false);
    expect(frame?.max).toBeLessThan(2);
    expect(frame?.clipped).toBe(1);
  });

  it('ignores what cannot be drawn', () => {
    expect(frameOf([curve([1], ['nan']), curve([1], ['inf'])], false)).toBeUndefined();
    expect(frameOf([curve([1, 2], [-1, 10])], true)?.min).toBeGreaterThan(0);
  });

  it('has a height even when all values are the same', () => {
    const frame = frameOf([curve([1, 2], [3, 3])], false);
    expect(frame && frame.max > frame.min).toBe(true);
    const zero = frameOf([curve([1], [0])], false);
    expect(zero && zero.max > zero.min).toBe(true);
  });
});

describe('pointing at a curve', () => {
  const lines = [
    { number: 4, curve: curve([1, 3], [0, 20]) },
    { number: 7, curve: curve([1, 3], [100, 100]) },
    { number: 9, curve: curve([1], [50]) },
  ];
  const toPx = (value: number): number => value;

  it('finds the nearest, between its points too', () => {
    expect(nearestCurve(lines, 2, 12, toPx, 24)).toBe(4);
    expect(nearestCurve(lines, 2, 90, toPx, 24)).toBe(7);
  });

  it('finds none when none is near', () => {
    expect(nearestCurve(lines, 2, 55, toPx, 24)).toBeUndefined();
    expect(nearestCurve(lines, 30, 100, toPx, 24)).toBeUndefined();
  });

  it('finds a curve of one point', () => {
    expect(nearestCurve(lines, 1.2, 52, toPx, 24)).toBe(9);
  });
});

describe('what is derived from curves', () => {
  it('the best so far goes by the numbers of trials', () => {
    const curves = [
      [2, curve([1], [0.9])],
      [0, curve([1, 2], [0.3, 0.5])],
      [1, curve([1], ['nan'])],
    ] as const;
    expect(bestSoFar(curves, 'max')).toEqual([0.5, 0.5, 0.9]);
    expect(bestSoFar(curves, 'min')).toEqual([0.3, 0.3, 0.3]);
  });

  it('the table has every step while they are few, then the rungs and some between', () => {
    const few = { curve: curve([1, 2, 3], [1, 2, 3]) };
    expect(tableSteps([few], [1, 3])).toEqual([1, 2, 3]);
    const steps = Array.from({ length: 100 }, (_, i) => i + 1);
    const chosen = tableSteps([{ curve: curve(steps, steps) }], [1, 3, 9, 27, 81]);
    expect(chosen).toEqual(expect.arrayContaining([1, 3, 9, 27, 81, 100]));
    expect(chosen.length).toBeLessThanOrEqual(12);
  });
});

describe('the axes', () => {
  it.each([
    [
      [0.5, 0.55, 0.6, 0.65],
      ['0.50', '0.55', '0.60', '0.65'],
    ],
    [
      [0.1, 0.2, 0.1 + 0.2],
      ['0.1', '0.2', '0.3'],
    ],
    [
      [0, 0.25, 0.5],
      ['0.00', '0.25', '0.50'],
    ],
    [
      [-10, 0, 10],
      ['−10', '0', '10'],
    ],
    [
      [1e6, 2e6],
      ['1e6', '2e6'],
    ],
    [
      [0.00001, 0.00002],
      ['1e−5', '2e−5'],
    ],
    [[7], ['7']],
    [[], []],
  ])('%j reads %j', (splits, labels) => expect(axisLabels(splits, false)).toEqual(labels));

  it('have short labels on a logarithmic scale, where some are left out', () => {
    expect(axisLabels([0.0001, null, 0.01, 1, 100], true)).toEqual([
      '1e−4',
      '',
      '0.01',
      '1',
      '100',
    ]);
  });
});

describe('many lines', () => {
  it('are drawn fainter than few, but never invisibly', () => {
    expect(alphaFor(10, faintAlpha)).toBe(faintAlpha.few);
    expect(alphaFor(500, faintAlpha)).toBeLessThan(faintAlpha.few);
    expect(alphaFor(1e6, faintAlpha)).toBe(faintAlpha.least);
  });
});
