import type { Replay, ReplayedCourse, TrialEnd } from '../api/types';
import { formatMetric, plural } from './numbers';
import { formatDuration } from './time';

export interface Comparison {
  name: string;
  recorded: string;
  replayed: string;
}

/** What a person compares of a replay, row by row. */
export function comparisons(replay: Replay): Comparison[] {
  const hours = replay.recorded.gpu_hours > 0 ? 'gpu_hours' : 'cpu_hours';
  const row = (
    name: string,
    key: 'gpu_hours' | 'cpu_hours' | 'wall_seconds' | 'steps',
    format: (value: number) => string,
  ): Comparison => ({
    name,
    recorded: format(replay.recorded[key]),
    replayed: either(replay, (course) => format(course[key])),
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
      replayed: either(replay, best),
    },
  ];
}

/** Whether the winner survives, and what it costs where it does not. */
export function winnerSentence(replay: Replay): string {
  const { recorded, if_worst, if_best, trials } = replay;
  const number = recorded.best?.trial ?? 0;
  if (if_worst.keeps_winner && if_best.keeps_winner)
    return `The winner, trial ${number}, survives.`;
  const regret = either(replay, ({ regret }) => (regret === null ? '–' : formatMetric(regret)));
  if (if_worst.keeps_winner !== if_best.keeps_winner)
    return `Whether the winner, trial ${number}, survives hangs on what was not recorded; without it the best is worse by ${regret}.`;
  const step = trials[number]?.if_worst.step ?? 0;
  return `The winner, trial ${number}, is lost at step ${step}; the best is then worse by ${regret}.`;
}

/** What the recording does not tell; empty where it tells all. */
export function unknownSentence(replay: Replay): string {
  if (replay.unknown === 0) return '';
  return `${plural(replay.unknown, 'trial')} of ${replay.trials.length} would go on beyond what was recorded: a … b is if they are the worst from there on, and the best.`;
}

export interface Changed {
  number: number;
  recorded: string;
  replayed: string;
  why: string;
}

/** The trials that had ended elsewhere, or may have. */
export function changedTrials(replay: Replay): Changed[] {
  return replay.trials.flatMap(({ number, unknown, recorded, if_worst, if_best }) => {
    const was = `${recorded.state} ${recorded.step}`;
    const [worst, best] = [endText(if_worst), endText(if_best)];
    const replayed = (worst === best ? worst : `${worst} … ${best}`) + (unknown ? ' ?' : '');
    // What an unknown trial was judged by is made up.
    const why = unknown ? `recorded up to step ${recorded.step}` : if_worst.reason;
    return replayed === was ? [] : [{ number, recorded: was, replayed, why }];
  });
}

function endText({ state, step }: TrialEnd): string {
  return state === 'pending' ? 'not tried' : `${state} ${step}`;
}

function either(replay: Replay, text: (course: ReplayedCourse) => string): string {
  const [worst, best] = [text(replay.if_worst), text(replay.if_best)];
  return worst === best ? worst : `${worst} … ${best}`;
}
