import type { Replay, ReplayedOutcome, TrialState } from '../../../web/src/api/contract';

const none: Record<TrialState, number> = {
  pending: 0,
  running: 0,
  paused: 0,
  completed: 0,
  stopped: 0,
  failed: 0,
  killed: 0,
};

function course(steps: number, value: number, changes: Partial<ReplayedOutcome>): ReplayedOutcome {
  return {
    peak_slots: 2,
    slot_hours: steps / 10,
    cpu_hours: steps / 10,
    gpu_hours: 0,
    wall_seconds: steps * 60,
    steps,
    trials: none,
    best: { trial: 0, step: 9, value },
    regret: 0,
    keeps_best_trial: true,
    reason: '',
    ...changes,
  };
}

/** Three trials under asha: the winner is lost, and trial 2 continues beyond its recording. */
export function smallReplay(): Replay {
  const end = (state: TrialState, step: number, reason = '') => ({ state, step, reason });
  return {
    sweep: 's1',
    stop: {},
    start_seconds: 0,
    metric: 'accuracy',
    slots: 2,
    scheduler: { name: 'hyperband' },
    recorded_scheduler: { name: 'asha' },
    unknown: 1,
    recorded: { ...course(21, 0.9, {}), best: { trial: 1, step: 9, value: 0.9 } },
    worst_case: course(13, 0.85, { regret: 0.05, keeps_best_trial: false }),
    best_case: course(19, 0.85, { regret: 0.05, keeps_best_trial: false }),
    trials: [
      {
        number: 0,
        unknown: false,
        recorded: { state: 'completed', step: 9 },
        worst_case: end('completed', 9),
        best_case: end('completed', 9),
      },
      {
        number: 1,
        unknown: false,
        recorded: { state: 'completed', step: 9 },
        worst_case: end('stopped', 1, 'stopped at step 1: rank 2 of 3'),
        best_case: end('stopped', 1, 'stopped at step 1: rank 2 of 3'),
      },
      {
        number: 2,
        unknown: true,
        recorded: { state: 'stopped', step: 3 },
        worst_case: end('stopped', 3),
        best_case: end('completed', 9),
      },
    ],
  };
}
