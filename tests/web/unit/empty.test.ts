import { describe, expect, it } from 'vitest';

import type { SweepState, TrialState } from '../../../web/src/api/contract';
import { emptyReason } from '../../../web/src/model/empty';

function sweep(
  state: SweepState,
  counts: Partial<Record<TrialState, number>>,
  changes: { reason?: string; waiting_reason?: string } = {},
) {
  const none = { pending: 0, running: 0, paused: 0, completed: 0, stopped: 0, failed: 0 };
  const trials = { ...none, killed: 0, ...counts };
  return { state, reason: '', waiting_reason: '', trials, ...changes };
}

describe('the reason for an empty chart', () => {
  it('is the filter if it hides all trials', () => {
    const reason = emptyReason(sweep('failed', { failed: 3 }), 0, 'loss');
    expect(reason.text).toBe('The filter hides all of the 3 trials.');
    expect(reason.filtered).toBe(true);
  });

  it('is the failure of the sweep, with the place of the log', () => {
    const failed = sweep('failed', { failed: 3 }, { reason: 'the program fails everywhere' });
    const { text, next } = emptyReason(failed, 3, 'loss');
    expect(text).toBe(
      'None of the 3 trials has reported loss. The sweep has failed. The program fails everywhere.',
    );
    expect(next).toContain('last lines of the log');
  });

  it('is what the sweep waits for', () => {
    const waiting = sweep('running', { pending: 1 }, { waiting_reason: 'no executor has 8 GPUs' });
    expect(emptyReason(waiting, 1, 'loss').next).toBe('No executor has 8 GPUs.');
    expect(emptyReason(sweep('running', {}), 0, 'loss').text).toBe('No trial yet.');
  });

  it('is that trials have not reported yet if they run', () => {
    expect(emptyReason(sweep('running', { running: 2 }), 2, 'loss').text).toBe('No reports yet.');
  });

  it('is a program that reports something else if all trials completed', () => {
    const { next } = emptyReason(sweep('completed', { completed: 2 }), 2, 'loss');
    expect(next).toContain('reports loss');
  });
});
