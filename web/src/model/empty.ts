import type { Sweep, TrialState } from '../api/contract';
import { plural } from './numbers';
import { sentence } from './reason';
import { countTrials, isLive } from './states';

/** Why a chart or a table of trials is empty, and what the user can do. */
export interface EmptyReason {
  text: string;
  next: string;
  /** A filter hides all trials. */
  filtered: boolean;
}

type Counted = Pick<Sweep, 'state' | 'reason' | 'waiting_reason'> & {
  trials: Record<TrialState, number>;
};

/** The reason if the trials shown have nothing to draw of a metric. */
export function emptyReason(sweep: Counted, shown: number, metric: string): EmptyReason {
  const all = countTrials(sweep.trials);
  const why = sentence(sweep.reason);
  if (all === 0) return { ...withoutTrials(sweep, why), filtered: false };
  if (shown === 0) {
    return {
      text: `The filter hides all of the ${plural(all, 'trial')}.`,
      next: 'Clear the filter to see them.',
      filtered: true,
    };
  }
  const whole = shown === all;
  const noun = whole ? `None of the ${plural(all, 'trial')}` : `None of the ${shown} trials shown`;
  if (isLive(sweep.state) && sweep.trials.running > 0) {
    return { text: 'No reports yet.', next: 'Curves appear as trials train.', filtered: false };
  }
  if (isLive(sweep.state)) {
    const waiting = sentence(sweep.waiting_reason);
    const next = waiting || 'Curves appear as trials train.';
    return { text: `${noun} has reported ${metric} yet.`, next, filtered: false };
  }
  const { failed } = sweep.trials;
  const ended = `The sweep has ${sweep.state === 'failed' ? 'failed' : 'ended'}. ${why}`.trim();
  return {
    text: `${noun} has reported ${metric}. ${ended}`,
    next:
      failed > 0
        ? 'Open a failed trial: its attempts have the last lines of the log.'
        : `Check that the program reports ${metric}, with attune.report or in its log.`,
    filtered: false,
  };
}

function withoutTrials(sweep: Counted, why: string): Omit<EmptyReason, 'filtered'> {
  const waiting = sentence(sweep.waiting_reason);
  if (isLive(sweep.state)) {
    return { text: 'No trial yet.', next: waiting || 'Trials appear as the search proposes them.' };
  }
  return {
    text: `The sweep has ${sweep.state === 'failed' ? 'failed' : 'ended'} before any trial. ${why}`.trim(),
    next: 'Correct the cause, then create the sweep again.',
  };
}
