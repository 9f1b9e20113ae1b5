import { describe, expect, it } from 'vitest';

import {
  hypervolume,
  hypervolumeLine,
  worstValues,
  type Values,
} from '../../../web/src/model/hypervolume';
import { randomStream } from '../mock/random';

// Counts cells of a grid: exact if all values are whole.
function counted(points: readonly Values[], reference: Values): number {
  let cells = 0;
  const visit = (corner: number[]): void => {
    if (corner.length === reference.length) {
      if (points.some((point) => point.every((value, i) => value <= (corner[i] as number))))
        cells += 1;
      return;
    }
    const limit = reference[corner.length] as number;
    for (let value = 0; value < limit; value += 1) visit([...corner, value]);
  };
  visit([]);
  return cells;
}

function randomPoints(count: number, metrics: number, random: () => number): number[][] {
  return Array.from({ length: count }, () =>
    Array.from({ length: metrics }, () => Math.floor(random() * 9)),
  );
}

describe('the hypervolume', () => {
  it('of one point is its box', () => {
    expect(hypervolume([[1, 2]], [4, 4])).toBe(6);
    expect(hypervolume([[1, 2, 3]], [4, 4, 5])).toBe(12);
  });

  it('counts what several points dominate once', () => {
    const points = [
      [1, 3],
      [2, 2],
      [3, 1],
      [3, 3],
    ];
    expect(hypervolume(points, [4, 4])).toBe(6);
  });

  it('is zero without a point that is better than the reference in every metric', () => {
    expect(hypervolume([], [1, 1])).toBe(0);
    expect(hypervolume([[0, 1]], [1, 1])).toBe(0);
    expect(hypervolume([[0, 2]], [1, 1])).toBe(0);
  });

  it('equals the number of cells of a grid, for random points', () => {
    const random = randomStream(7);
    for (let i = 0; i < 60; i += 1) {
      for (const metrics of [2, 3]) {
        const points = randomPoints(1 + (i % 12), metrics, random);
        const reference = new Array<number>(metrics).fill(7);
        expect(hypervolume(points, reference)).toBe(counted(points, reference));
      }
    }
  });
});

describe('the hypervolume over trials', () => {
  const metrics = [
    { name: 'accuracy', mode: 'max', target: null },
    { name: 'latency', mode: 'min', target: null },
  ] as const;
  const reports = [
    { trial: 0, values: [0.5, 10] },
    { trial: 1, values: [0.4, 20] },
    { trial: 2, values: [0.6, 8] },
    { trial: 2, values: [0.5, 6] },
  ];

  it('starts at the worst values', () => {
    expect(worstValues(reports, [...metrics])).toEqual([0.4, 20]);
  });

  it('has a point for each trial that improves it', () => {
    const line = hypervolumeLine(reports, [...metrics], [0, 20]);
    expect(line.map(({ x }) => x)).toEqual([0, 2]);
    expect(line[0]?.y).toBeCloseTo(5);
    expect(line[1]?.y).toBeCloseTo(0.6 * 12 + 0.5 * 2);
  });

  it(
    'reads the front of ten thousand trials a bounded number of times',
    { timeout: 120_000 },
    () => {
      const random = randomStream(9);
      const many = Array.from({ length: 10_000 }, (_, trial) => {
        // Near a sphere, so that the front is large.
        const raw = [random(), random(), random()];
        const norm = Math.hypot(...raw);
        return { trial, values: raw.map((value) => 1 - value / norm + random() * 0.05) };
      });
      const three = [0, 1, 2].map((i) => ({ name: `m${i}`, mode: 'min' as const, target: null }));
      const line = hypervolumeLine(many, three, [1.1, 1.1, 1.1]);
      expect(line.length).toBeGreaterThan(50);
      expect(line.length).toBeLessThanOrEqual(200);
      const final = many.map(({ values }) => values);
      expect(line.at(-1)?.y).toBeCloseTo(hypervolume(final, [1.1, 1.1, 1.1]), 9);
    },
  );
});
