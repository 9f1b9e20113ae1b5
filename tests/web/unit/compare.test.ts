import { describe, expect, it } from 'vitest';

import {
  compareObjects,
  flatten,
  parseCompared,
  parseNumbers,
} from '../../../web/src/model/compare';
import { distributionOf, quantileOf } from '../../../web/src/model/distribution';

describe('a list of compared things', () => {
  it('has each once, and at most five', () => {
    expect(parseCompared('s1,s2,,s1, s3')).toEqual(['s1', 's2', 's3']);
    expect(parseCompared('1,2,3,4,5,6')).toHaveLength(5);
    expect(parseCompared(null)).toEqual([]);
    expect(parseNumbers('3,x,17,-1')).toEqual([3, 17]);
  });
});

describe('objects side by side', () => {
  it('have their differences first, then the given order', () => {
    const rows = compareObjects(
      [
        { a: 1, b: 2, c: 3 },
        { a: 1, b: 5, c: 3, d: 4 },
      ],
      ['c', 'a', 'b', 'absent'],
    );
    expect(rows).toEqual([
      { name: 'b', values: [2, 5], differs: true },
      { name: 'd', values: [undefined, 4], differs: true },
      { name: 'c', values: [3, 3], differs: false },
      { name: 'a', values: [1, 1], differs: false },
    ]);
  });

  it('are flattened to paths; a list is one value', () => {
    expect(flatten({ a: { b: 1, c: { d: 'x' } }, e: [1, { f: 2 }], g: null, h: {} })).toEqual({
      'a.b': '1',
      'a.c.d': 'x',
      e: '[1,{"f":2}]',
      g: 'null',
    });
  });
});

describe('a distribution', () => {
  it('rises by the share of trials at each value', () => {
    expect(distributionOf([2, 1, 2, NaN, 4, Infinity])).toEqual([
      { x: 1, y: 0 },
      { x: 1, y: 0.25 },
      { x: 2, y: 0.75 },
      { x: 4, y: 1 },
    ]);
    expect(distributionOf([NaN])).toEqual([]);
  });

  it('has quantiles', () => {
    const points = distributionOf([1, 2, 3, 4]);
    expect(quantileOf(points, 0.5)).toBe(2);
    expect(quantileOf(points, 0)).toBe(1);
    expect(quantileOf([], 0.5)).toBeUndefined();
  });
});
