import type { SweepState, TrialState } from '../api/types';

/** In the order a table or a bar shows them: what is alive first. */
export const trialStates: readonly TrialState[] = [
  'running',
  'pending',
  'paused',
  'completed',
  'stopped',
  'failed',
  'killed',
];

/** One line for the help page and tooltips. */
export const stateMeaning: Record<TrialState, string> = {
  pending: 'waits for free slots',
  running: 'trains now',
  paused: 'has left its slots and may go on',
  completed: 'reached its last step',
  stopped: 'ended early by the scheduler or a limit',
  failed: 'ended by an error',
  killed: 'ended by a person or with its sweep',
};

export function isLive(state: TrialState | SweepState): boolean {
  return state === 'pending' || state === 'running' || state === 'paused';
}

export function countStates(states: Iterable<TrialState>): Record<TrialState, number> {
  const counts: Record<TrialState, number> = {
    pending: 0,
    running: 0,
    paused: 0,
    completed: 0,
    stopped: 0,
    failed: 0,
    killed: 0,
  };
  for (const state of states) counts[state] += 1;
  return counts;
}

export function total(counts: Record<TrialState, number>): number {
  return trialStates.reduce((sum, state) => sum + (counts[state] ?? 0), 0);
}

export function finished(counts: Record<TrialState, number>): number {
  return total(counts) - counts.running - counts.pending - counts.paused;
}
