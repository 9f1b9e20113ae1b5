import type { SweepState, TrialState } from '../api/contract';

// In the order of tables: states that have not ended come first.
const noTrials: Record<TrialState, number> = {
  running: 0,
  pending: 0,
  paused: 0,
  completed: 0,
  stopped: 0,
  failed: 0,
  killed: 0,
};

export const trialStates = Object.keys(noTrials) as readonly TrialState[];

export function isLive(state: TrialState | SweepState): boolean {
  return state === 'pending' || state === 'running' || state === 'paused';
}

export function countStates(states: Iterable<TrialState>): Record<TrialState, number> {
  const counts = { ...noTrials };
  for (const state of states) counts[state] += 1;
  return counts;
}

export function countTrials(counts: Record<TrialState, number>): number {
  return trialStates.reduce((sum, state) => sum + (counts[state] ?? 0), 0);
}

export function countEnded(counts: Record<TrialState, number>): number {
  return countTrials(counts) - counts.running - counts.pending - counts.paused;
}
