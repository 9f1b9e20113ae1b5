import type { Sweep, TrialState } from '../api/contract';
import type { Clone } from './curve';
import { formatCount, plural } from './numbers';
import { countStates, isLive } from './states';
import type { TrialRow } from './sweep_model';

type Progress = Pick<TrialRow, 'state' | 'step'>;

/** The trials that reached a rung, by what they did next. */
export interface RungCount {
  step: number;
  /** Trials that reported at or beyond the rung. */
  reached: number;
  /** The ones that trained beyond it or are training. */
  continued: number;
  /** The others by their state; this is the last rung that they reached. */
  left: Record<TrialState, number>;
}

export function rungCounts(rungs: readonly number[], trials: Iterable<Progress>): RungCount[] {
  const counts = rungs.map((step) => ({ step, reached: 0, continued: 0, left: countStates([]) }));
  for (const { state, step } of trials) {
    for (let i = 0; i < counts.length && (rungs[i] as number) <= step; i += 1) {
      const count = counts[i] as RungCount;
      count.reached += 1;
      if (step < (rungs[i + 1] ?? Infinity) && !isContinuing(state)) count.left[state] += 1;
      else count.continued += 1;
    }
  }
  return counts;
}

// A pending trial at a rung was promoted or is retried.
function isContinuing(state: TrialState): boolean {
  return state === 'running' || state === 'pending';
}

/** The states of trials that did not continue, in the order of the bar. */
export const leftStates = ['completed', 'paused', 'stopped', 'failed', 'killed'] as const;

/** "9 continued, 17 paused, 1 stopped". */
export function rungSummary({ continued, left }: RungCount): string {
  const parts = [
    continued > 0 && `${formatCount(continued)} continued`,
    ...leftStates.map((state) => left[state] > 0 && `${formatCount(left[state])} ${state}`),
  ];
  return parts.filter(Boolean).join(', ');
}

/** The last rung of a trial that has not ended: "at rung 9", "past rung 9". */
export function rungNote({ state, step }: Progress, { rungs }: Pick<Sweep, 'rungs'>): string {
  const last = rungs.filter((rung) => rung <= step).at(-1);
  if (last === undefined || !isLive(state)) return '';
  // A trial that is paused between rungs was paused with its sweep.
  return `${state === 'paused' && step === last ? 'at' : 'past'} rung ${last}`;
}

/** "clone of 3": the last donor of a trial. */
export function cloneNote(clones: readonly Clone[]): string {
  const last = clones.at(-1);
  return last ? `clone of ${last.donor}` : '';
}

/** "promoted twice, cloned once": how the attempts of a trial began. */
export function beginningsSummary(beginnings: readonly string[]): string {
  const words = { promoted: 'promoted', clone: 'cloned another', resized: 'resized' };
  return Object.entries(words)
    .map(([beginning, word]) => {
      const count = beginnings.filter((each) => each === beginning).length;
      return count > 0 && `${word} ${formatTimes(count)}`;
    })
    .filter(Boolean)
    .join(', ');
}

function formatTimes(count: number): string {
  return ['', 'once', 'twice'][count] ?? plural(count, 'time');
}
