import type { Replay, ReplayedOutcome, TrialEnd } from '../api/contract';
import { formatMetric, plural } from './numbers';
import { formatDuration } from './time';

export interface Comparison {
  name: string;
  recorded: string;
  replayed: string;
}

/** The rows that compare a replay with the recorded sweep. */
export function comparisons(replay: Replay): Comparison[] {
  const hours = replay.recorded.gpu_hours > 0 ? 'gpu_hours' : 'cpu_hours';
  const row = (
    name: string,
    key: 'gpu_hours' | 'cpu_hours' | 'wall_seconds' | 'steps',
    format: (value: number) => string,
  ): Comparison => ({
    name,
    recorded: format(replay.recorded[key]),
    replayed: formatBoth(replay, (course) => format(course[key])),
  });
  const best = (course: Replay['recorded']): string =>
    course.best ? formatMetric(course.best.value) : '–';
  return [
    row(hours === 'gpu_hours' ? 'GPU-hours' : 'CPU-hours', hours, formatMetric),
    row('Time', 'wall_seconds', formatDuration),
    row('Steps', 'steps', formatMetric),
    {
      name: `Best ${replay.metric}`,
      recorded: best(replay.recorded),
      replayed: formatBoth(replay, best),
    },
  ];
}

/** Whether the replay keeps the winner, and the cost if it does not. */
export function winnerSentence(replay: Replay): string {
  const { recorded, worst_case, best_case, trials } = replay;
  const number = recorded.best?.trial ?? 0;
  if (worst_case.keeps_best_trial && best_case.keeps_best_trial)
    return `The replay keeps the winner, trial ${number}.`;
  const regret = formatBoth(replay, ({ regret }) => (regret === null ? '–' : formatMetric(regret)));
  if (worst_case.keeps_best_trial !== best_case.keeps_best_trial)
    return `Whether the replay keeps the winner, trial ${number}, depends on values that were not recorded; without it the best is worse by ${regret}.`;
  const step = trials[number]?.worst_case.step ?? 0;
  return `The replay loses the winner, trial ${number}, at step ${step}; the best is then worse by ${regret}.`;
}

/** What the recording does not contain; empty if it contains everything. */
export function unknownSentence(replay: Replay): string {
  if (replay.unknown === 0) return '';
  return `${plural(replay.unknown, 'trial')} of ${replay.trials.length} would train beyond the recording: a … b is the result if they are the worst from there on, and the best.`;
}

export interface Changed {
  number: number;
  recorded: string;
  replayed: string;
  why: string;
}

/** The trials that end in another state or step, or may do so. */
export function changedTrials(replay: Replay): Changed[] {
  return replay.trials.flatMap(({ number, unknown, recorded, worst_case, best_case }) => {
    const was = `${recorded.state} ${recorded.step}`;
    const [worst, best] = [endText(worst_case), endText(best_case)];
    const replayed = (worst === best ? worst : `${worst} … ${best}`) + (unknown ? ' ?' : '');
    // The reason of an unknown trial would rest on invented values.
    const why = unknown ? `recorded up to step ${recorded.step}` : worst_case.reason;
    return replayed === was ? [] : [{ number, recorded: was, replayed, why }];
  });
}

function endText({ state, step }: TrialEnd): string {
  return state === 'pending' ? 'not started' : `${state} ${step}`;
}

function formatBoth(replay: Replay, text: (course: ReplayedOutcome) => string): string {
  const [worst, best] = [text(replay.worst_case), text(replay.best_case)];
  return worst === best ? worst : `${worst} … ${best}`;
}
