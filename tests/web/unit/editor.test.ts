import { describe, expect, it } from 'vitest';

import { forecastText } from '../../../web/src/model/editor/forecast';
import { mergePatch } from '../../../web/src/model/editor/merge_patch';

describe('a merge patch', () => {
  it('has only what differs, and null for what is gone', () => {
    const from = { name: 'a', stop: { max_trials: 3, patience: 1 }, tags: ['x'], priority: 2 };
    const to = { name: 'a', stop: { max_trials: 4, patience: 1 }, tags: ['y'] };
    expect(mergePatch(from, to)).toEqual({
      stop: { max_trials: 4 },
      tags: ['y'],
      priority: null,
    });
    expect(mergePatch(from, from)).toEqual({});
  });
});

describe('a forecast', () => {
  it('names time, hours, trials and steps', () => {
    const none = { pending: 0, running: 0, paused: 0, failed: 0, killed: 0 };
    const outcome = {
      ...{ slots: 8, reason: '', slot_hours: 96, cpu_hours: 96, gpu_hours: 12.5, peak_slots: 8 },
      ...{ wall_seconds: 12_000, steps: 900, best: null },
      trials: { ...none, completed: 60, stopped: 40 },
    };
    const text = forecastText(outcome);
    for (const part of ['3 h 20 min', '8 slots', '12.5 GPU-hours', '100 trials', '900 steps'])
      expect(text).toContain(part);
    expect(forecastText({ ...outcome, gpu_hours: 0 })).toContain('96 CPU-hours');
  });
});
