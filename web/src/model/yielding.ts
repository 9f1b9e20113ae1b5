import type { AttuneEvent, TrialYielding } from '../api/events';

/** The verdict that a running trial receives at its next report. */
export type Yielding = Pick<TrialYielding, 'verdict' | 'reason'>;

/** The verdict after an event about the trial or its sweep. A sweep that resumes cancels a pause;
    `continue` cancels every verdict. */
export function yieldingAfter(
  event: AttuneEvent,
  before: Yielding | undefined,
): Yielding | undefined {
  switch (event.kind) {
    case 'trial_yielding':
      return event.verdict === 'continue'
        ? undefined
        : { verdict: event.verdict, reason: event.reason };
    case 'trial_changed':
    case 'trial_decided':
      return undefined;
    case 'sweep_changed':
      return event.state === 'running' && before?.verdict === 'pause' ? undefined : before;
    default:
      return before;
  }
}
