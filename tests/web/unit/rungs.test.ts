import { describe, expect, it } from 'vitest';

import type { TrialState } from '../../../web/src/api/contract';
import {
  beginningsSummary,
  cloneNote,
  rungCounts,
  rungNote,
  rungSummary,
} from '../../../web/src/model/rungs';
import { clonesOf } from '../../../web/src/model/trial_model';

const at = (step: number, state: TrialState) => ({ step, state });
const rungs = [1, 3, 9];

describe('a rung', () => {
  const counted = rungCounts(rungs, [
    at(0, 'running'),
    at(1, 'paused'),
    at(1, 'paused'),
    at(1, 'pending'),
    at(2, 'failed'),
    at(3, 'paused'),
    at(4, 'running'),
    at(9, 'completed'),
  ]);

  it('counts the trials that reached it', () => {
    expect(counted.map(({ step, reached }) => [step, reached])).toEqual([
      [1, 7],
      [3, 3],
      [9, 1],
    ]);
  });

  it('separates trials that continued from trials that left', () => {
    expect(counted.map(rungSummary)).toEqual([
      '4 continued, 2 paused, 1 failed',
      '2 continued, 1 paused',
      '1 completed',
    ]);
  });

  it('that no trial has reached has no text', () => {
    expect(rungCounts(rungs, [at(0, 'running')]).map(rungSummary)).toEqual(['', '', '']);
  });
});

describe('next to the state of a trial', () => {
  it('is its rung, until it has ended', () => {
    expect(rungNote(at(3, 'paused'), { rungs })).toBe('at rung 3');
    expect(rungNote(at(3, 'pending'), { rungs })).toBe('past rung 3');
    expect(rungNote(at(4, 'running'), { rungs })).toBe('past rung 3');
    expect(rungNote(at(0, 'running'), { rungs })).toBe('');
    expect(rungNote(at(3, 'stopped'), { rungs })).toBe('');
    expect(rungNote(at(3, 'paused'), { rungs: [] })).toBe('');
  });

  it('is no rung if the trial was paused with its sweep', () => {
    expect(rungNote(at(4, 'paused'), { rungs })).toBe('past rung 3');
  });

  it('is its last donor', () => {
    expect(cloneNote([])).toBe('');
    expect(
      cloneNote([
        { donor: 4, step: 2 },
        { donor: 7, step: 8 },
      ]),
    ).toBe('clone of 7');
  });
});

describe('the attempts of a trial', () => {
  it('show how often it was promoted and has cloned another trial', () => {
    expect(beginningsSummary(['', 'again', 'resumed'])).toBe('');
    expect(beginningsSummary(['', 'promoted'])).toBe('promoted once');
    expect(beginningsSummary(['', 'promoted', 'clone', 'promoted', 'promoted'])).toMatch(
      /^promoted 3 times, cloned\b.* once$/,
    );
  });
});

describe('the points where a trial continued from others', () => {
  const part = (trial: number, step: number) => ({
    ...{ trial, step, config: {} },
    ...{ attempt: 1, workers: 1, checkpoint: null },
  });

  it('follow from its schedule', () => {
    expect(clonesOf([part(1, 0), part(2, 3), part(1, 6)], 1)).toEqual([{ donor: 2, step: 6 }]);
  });

  it('do not exist if only its configuration changes', () => {
    expect(clonesOf([part(1, 0), part(1, 3)], 1)).toEqual([]);
    expect(clonesOf([], 1)).toEqual([]);
  });
});
