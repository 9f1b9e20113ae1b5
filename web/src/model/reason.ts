import type { Attempt, Decision, Metric, TrialDetail } from '../api/contract';
import { formatMetric, fromWire } from './numbers';
import type { TrialRow } from './sweep_model';
import type { Yielding } from './yielding';

/** Why a trial is in its state, as one sentence: the server's reason if there is one. */
export function trialSentence(
  trial: Pick<TrialRow, 'state' | 'reason' | 'milestone' | 'step'> &
    Partial<Pick<TrialRow, 'waiting_reason' | 'yielding'>>,
): string {
  if (trial.yielding) return yieldingSentence(trial.yielding);
  const told = `${sentence(trial.reason)} ${sentence(trial.waiting_reason ?? '')}`.trim();
  if (told) return told;
  switch (trial.state) {
    case 'pending':
      return 'Waits for free slots.';
    case 'running':
      return trial.milestone > trial.step
        ? `Training; the next decision is at step ${trial.milestone}.`
        : 'Training.';
    case 'paused':
      return `Paused at step ${trial.step}; it continues if it is among the best of its rung.`;
    case 'completed':
      return `Reached its last step, ${trial.step}.`;
    case 'stopped':
      return `Stopped early at step ${trial.step}.`;
    case 'failed':
      return 'Failed; see its attempts.';
    case 'killed':
      return 'Killed by a person.';
  }
}

function yieldingSentence({ verdict, reason }: Yielding): string {
  if (verdict === 'pause') return 'Saves a checkpoint and leaves at its next report.';
  if (verdict === 'resize')
    return sentence(
      `Saves a checkpoint at its next report, to continue with more workers: ${reason}`,
    );
  return sentence(`Ends at its next report: ${reason.replace(/^stopped: /, '')}`);
}

/** "Proposed by tpe: model of 12 results: near trial 2, lr from 0.03 to 0.021." */
export function originSentence({
  origin,
  rationale,
}: Pick<TrialDetail, 'origin' | 'rationale'>): string {
  const told = rationale?.text ?? '';
  if (origin === 'initial_points' || origin === 'enqueued') {
    return sentence(told || origin.replace('_', ' '));
  }
  return sentence(`Proposed by ${origin}${told && `: ${told}`}`);
}

const verdictPast: Record<Decision['verdict'], string> = {
  continue: 'Continued',
  pause: 'Paused',
  stop: 'Stopped',
  exploit: 'Cloned the checkpoint of another trial',
  resize: 'Left to continue with more workers',
  promote: 'Promoted',
};

/** "Stopped at step 3: accuracy 0.412 is rank 9 of 11 at rung 3 (cutoff 0.781)." */
export function decisionSentence(decision: Decision, metric: Metric): string {
  if (decision.reason) return sentence(decision.reason);
  const facts: string[] = [];
  if (decision.value !== null)
    facts.push(`${metric.name} ${formatMetric(fromWire(decision.value))}`);
  if (decision.peers > 0) facts.push(`is rank ${decision.rank} of ${decision.peers}`);
  if (decision.rung > 0) facts.push(`at rung ${decision.rung}`);
  if (decision.cutoff !== null) facts.push(`(cutoff ${formatMetric(fromWire(decision.cutoff))})`);
  const start = `${verdictPast[decision.verdict]} at step ${decision.step}`;
  return facts.length > 0 ? `${start}: ${facts.join(' ')}.` : `${start}.`;
}

/** Splits a failure: its first line is a sentence, the rest are the last lines of the log. */
export function splitFailure(failure: string): { sentence: string; log: string } {
  const end = failure.indexOf('\n');
  if (end < 0) return { sentence: sentence(failure), log: '' };
  return { sentence: sentence(failure.slice(0, end)), log: failure.slice(end + 1).trimEnd() };
}

const outcomeText: Record<Attempt['outcome'], string> = {
  '': '',
  finished: 'finished',
  stopped: 'stopped early',
  paused: 'saved and left',
  failed: 'failed',
  lost: 'lost with its executor',
  killed: 'killed',
};

export function attemptOutcome(attempt: Pick<Attempt, 'state' | 'outcome'>): string {
  if (attempt.state === 'assigned') return 'starting';
  if (attempt.state === 'running') return 'running';
  return outcomeText[attempt.outcome] || 'ended';
}

/** How an attempt began after the one before it: clone, resized, promoted, resumed or again. */
export function beginning(
  before: Pick<Attempt, 'number' | 'outcome'> | undefined,
  { decisions }: Pick<TrialDetail, 'decisions'>,
): string {
  if (!before) return '';
  if (before.outcome !== 'paused') return before.outcome === '' ? '' : 'again';
  const verdict = decisions.filter((decision) => decision.attempt === before.number).at(-1);
  if (verdict?.verdict === 'exploit') return 'clone';
  if (verdict?.verdict === 'resize') return 'resized';
  return verdict?.verdict === 'promote' ? 'promoted' : 'resumed';
}

/** How each attempt of a trial began. */
export function beginnings(trial: Pick<TrialDetail, 'attempts' | 'decisions'>): string[] {
  return trial.attempts.map((_, i, all) => beginning(all[i - 1], trial));
}

/** Capitalises the first letter and adds a full stop; changes nothing else. */
export function sentence(text: string): string {
  const trimmed = text.trim();
  if (!trimmed) return '';
  const closed = /[.!?…:]$/.test(trimmed) ? trimmed : `${trimmed}.`;
  return closed.charAt(0).toUpperCase() + closed.slice(1);
}
