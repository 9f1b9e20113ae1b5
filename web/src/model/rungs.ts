import type { Sweep, TrialState } from '../api/types';
import type { Clone } from './curve';
import { formatCount, plural } from './numbers';
import { countStates, isLive } from './states';
import type { TrialRow } from './sweep_model';

type Standing = Pick<TrialRow, 'state' | 'step'>;

/** Who has come to a rung, and what has become of them. */
export interface RungCount {
  step: number;
  /** Have reported at or beyond it. */
  reached: number;
  /** Of these, trained beyond it or on their way. */
  wentOn: number;
  /** The others by their state: this is the last rung that they came to. */
  left: Record<TrialState, number>;
}

export function rungCounts(rungs: readonly number[], trials: Iterable<Standing>): RungCount[] {
  const all = [...trials];
  return rungs.map((step, i) => {
    const reached = all.filter((trial) => trial.step >= step);
    const next = rungs[i + 1] ?? Infinity;
    const left = reached.filter(({ state, step: last }) => last < next && !goesOn(state));
    return {
      step,
      reached: reached.length,
      wentOn: reached.length - left.length,
      left: countStates(left.map(({ state }) => state)),
    };
  });
}

// One that waits for slots behind a rung was promoted, or is tried again.
function goesOn(state: TrialState): boolean {
  return state === 'running' || state === 'pending';
}

/** The states that a rung's trials were left in, in the order of its bar. */
export const leftStates = ['completed', 'paused', 'stopped', 'failed', 'killed'] as const;

/** "9 went on, 17 paused, 1 stopped". */
export function rungSummary({ wentOn, left }: RungCount): string {
  const parts = [
    wentOn > 0 && `${formatCount(wentOn)} went on`,
    ...leftStates.map((state) => left[state] > 0 && `${formatCount(left[state])} ${state}`),
  ];
  return parts.filter(Boolean).join(', ');
}

/** Where a trial that has not ended stands among the rungs: "at rung 9", "past rung 9". */
export function rungNote({ state, step }: Standing, { rungs }: Pick<Sweep, 'rungs'>): string {
  const last = rungs.filter((rung) => rung <= step).at(-1);
  if (last === undefined || !isLive(state)) return '';
  // Between rungs it was paused with its sweep.
  return `${state === 'paused' && step === last ? 'at' : 'past'} rung ${last}`;
}

/** "clone of 3": whose checkpoint a trial has gone on from last. */
export function cloneNote(clones: readonly Clone[]): string {
  const last = clones.at(-1);
  return last ? `clone of ${last.donor}` : '';
}

/** "promoted twice, cloned once", of how a trial's attempts began. */
export function beginningsSummary(beginnings: readonly string[]): string {
  const words = { promoted: 'promoted', clone: 'cloned another', resized: 'resized' };
  return Object.entries(words)
    .map(([beginning, word]) => {
      const count = beginnings.filter((each) => each === beginning).length;
      return count > 0 && `${word} ${times(count)}`;
    })
    .filter(Boolean)
    .join(', ');
}

function times(count: number): string {
  return ['', 'once', 'twice'][count] ?? plural(count, 'time');
}
