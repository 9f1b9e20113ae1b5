import type { AttuneEvent, TrialYielding } from '../api/events';

/** What a running trial gets at its next report. */
export type Yielding = Pick<TrialYielding, 'verdict' | 'reason'>;

/** What it gets after an event about it or its sweep; a sweep that goes on takes its pause back, and
    `continue` whatever there was. */
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
