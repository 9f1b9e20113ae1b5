import { describe, expect, it } from 'vitest';

import type { SweepState } from '../../../web/src/api/contract';
import { noticesBetween } from '../../../web/src/model/notices';
import { sweepTitle, trialTitle } from '../../../web/src/model/title';

function sweep(state: SweepState, changes: { failed?: number; waiting_reason?: string } = {}) {
  const { failed = 0, waiting_reason = '' } = changes;
  const trials = { pending: 0, running: 0, paused: 0, completed: 0, stopped: 0, killed: 0, failed };
  const reason = state === 'completed' ? 'all trials have ended' : '';
  return { id: 's1', name: 'mnist', state, reason, waiting_reason, trials, end_state: '' as const };
}

describe('notices', () => {
  it('tell the end of a sweep, with its failures', () => {
    const told = noticesBetween([sweep('running')], [sweep('completed', { failed: 2 })]);
    expect(told).toEqual([
      { sweep: 's1', title: 'mnist: completed', body: 'All trials have ended. 2 trials failed.' },
    ]);
  });

  it('tell new failures, and that a sweep waits, once', () => {
    const failed = sweep('running', { failed: 1 });
    expect(noticesBetween([sweep('running')], [failed])[0]?.title).toBe('mnist: 1 trial failed');
    expect(noticesBetween([failed], [failed])).toEqual([]);
    const waiting = sweep('running', { waiting_reason: 'no executor has 8 GPUs' });
    expect(noticesBetween([sweep('running')], [waiting])[0]?.body).toBe('No executor has 8 GPUs.');
    expect(noticesBetween([waiting], [waiting])).toEqual([]);
  });

  it('do not tell what was so when the page was opened', () => {
    expect(noticesBetween([], [sweep('completed')])).toEqual([]);
  });
});

describe('the title of the tab', () => {
  it('begins with the state', () => {
    expect(sweepTitle(sweep('running'))).toBe('running · mnist · Attune');
    expect(sweepTitle(sweep('running', { waiting_reason: 'no GPU' }))).toMatch(/^waiting · /);
    expect(trialTitle(sweep('running'), { number: 3, state: 'stopped' })).toBe(
      'stopped · trial 3 · mnist · Attune',
    );
  });
});
