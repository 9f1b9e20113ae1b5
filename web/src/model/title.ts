import type { Sweep, Trial } from '../api/contract';

type Named = Pick<Sweep, 'id' | 'name' | 'state' | 'waiting_reason' | 'end_state'>;

/** The title of a sweep's tab, with its state first: "running · fashion-mnist · Attune". */
export function sweepTitle(sweep: Named): string {
  return `${stateWord(sweep)} · ${sweep.name || sweep.id} · Attune`;
}

/** "stopped · trial 3 · fashion-mnist · Attune". */
export function trialTitle(sweep: Named, trial: Pick<Trial, 'number' | 'state'>): string {
  return `${trial.state} · trial ${trial.number} · ${sweep.name || sweep.id} · Attune`;
}

function stateWord({ state, waiting_reason, end_state }: Named): string {
  if (end_state) return 'ending';
  return waiting_reason ? 'waiting' : state;
}
