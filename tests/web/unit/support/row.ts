import type { Trial } from '../../../../web/src/api/contract';
import { rowOf, type TrialRow } from '../../../../web/src/model/sweep_model';

/** A trial in the form of the sweep's page. */
export function row(number: number, changes: Partial<Trial> = {}): TrialRow {
  return rowOf(wireTrial(number, changes));
}

/** A trial in the form of the server. */
export function wireTrial(number: number, changes: Partial<Trial> = {}): Trial {
  return {
    sweep: 's1',
    number,
    state: 'running',
    reason: '',
    tags: [],
    config: {},
    origin: 'random',
    created: '2026-11-21T10:00:00.000000Z',
    ended: null,
    attempt_count: 1,
    step: 0,
    milestone: 0,
    seconds: 0,
    metrics: {},
    best: null,
    checkpoint: null,
    waiting_reason: '',
    ...changes,
  };
}
