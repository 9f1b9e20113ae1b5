import { describe, expect, it } from 'vitest';

import { founders, lanesOf } from '../../../web/src/model/lineage';

const steps = new Map([
  [0, 9],
  [1, 9],
  [2, 6],
  [3, 9],
]);

describe('lanes of a lineage', () => {
  it('has only trials that took part in a branch', () => {
    const lanes = lanesOf([{ trial: 1, donor: 0, step: 3 }], steps);
    expect(lanes.map(({ trial }) => trial)).toEqual([0, 1]);
    expect(lanes[0]?.children).toBe(1);
  });

  it('gives a clone the founder that its donor has at the step', () => {
    const lanes = lanesOf(
      [
        { trial: 1, donor: 0, step: 3 },
        { trial: 2, donor: 1, step: 6 },
        { trial: 3, donor: 1, step: 3 },
      ],
      steps,
    );
    expect(lanes[1]?.stretches).toEqual([
      { from: 0, to: 3, founder: 1 },
      { from: 3, to: 9, founder: 0 },
    ]);
    expect(lanes[2]?.stretches.at(-1)?.founder).toBe(0);
    expect(lanes[3]?.stretches.at(-1)?.founder).toBe(1);
    expect(founders(lanes)).toEqual([
      { founder: 0, lanes: 3 },
      { founder: 1, lanes: 1 },
    ]);
  });

  it('forgets what a trial trained beyond the checkpoint that it continues from', () => {
    const lanes = lanesOf(
      [
        { trial: 1, donor: 0, step: 6 },
        { trial: 1, donor: 3, step: 4 },
      ],
      steps,
    );
    expect(lanes[1]?.stretches).toEqual([
      { from: 0, to: 4, founder: 1 },
      { from: 4, to: 9, founder: 3 },
    ]);
  });

  it('notes promotions', () => {
    const lanes = lanesOf([{ trial: 2, donor: null, step: 3 }], steps);
    expect(lanes[0]).toMatchObject({ trial: 2, promotions: [3], clones: [] });
  });
});
