import type { FailedAttempt, Failures, FailureGroup } from '../api/contract';
import { plural } from './numbers';
import { splitFailure } from './reason';

/** The rank whose log explains the failure; undefined if it is unknown. */
export function culpritOf({
  rank,
  failure,
}: Pick<FailedAttempt, 'rank' | 'failure'>): number | undefined {
  if (rank !== null) return rank;
  const named = /\brank (\d+)\b/.exec(failure);
  return named ? Number(named[1]) : undefined;
}

/** "Rank 1 of trial 8, attempt 1, on box". */
export function placeOfFailure(attempt: FailedAttempt): string {
  const rank = culpritOf(attempt);
  const trial = `trial ${attempt.trial}, attempt ${attempt.attempt}`;
  const where = attempt.executor ? `, on ${attempt.executor}` : '';
  return `${rank === undefined ? 'T' + trial.slice(1) : `Rank ${rank} of ${trial}`}${where}`;
}

/** "Rank 1 was killed by signal 9." and the last lines of its log. */
export function causeOf(attempt: FailedAttempt): { sentence: string; log: string } {
  const { sentence, log } = splitFailure(attempt.failure);
  if (sentence) return { sentence, log };
  return { sentence: attempt.kind === 'lost' ? 'Its executor was lost.' : 'No message.', log };
}

/** "5 attempts of 3 trials failed or were lost, in 2 groups." */
export function failuresSummary({ attempts, trials, groups, ungrouped }: Failures): string {
  if (attempts === 0) return 'No attempt has failed.';
  const parts = [
    `${plural(attempts, 'attempt')} of ${plural(trials, 'trial')} failed or ${attempts === 1 ? 'was' : 'were'} lost, in ${plural(groups.length, 'group')} by message.`,
  ];
  if (ungrouped > 0) parts.push(`${plural(ungrouped, 'attempt')} in rarer groups.`);
  return parts.join(' ');
}

/** The message of a group: the pattern, or what stands for an empty one. */
export function groupTitle({ pattern, kind }: Pick<FailureGroup, 'pattern' | 'kind'>): string {
  return pattern || (kind === 'lost' ? 'the executor was lost' : 'no message');
}
