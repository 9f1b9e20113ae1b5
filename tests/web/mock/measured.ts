import type { Config, TrialState } from '../../../web/src/api/contract';
import { randomStream } from './random';
import { drawConfig, parameters } from './scenarios';
import { World } from './world';

const trainingTrials = 20;

/**
 * A sweep, `big`, of many trials with many points, to measure the page. 20 trials train and have
 * half of their points. With `asha`, trials stop at rungs.
 */
export function measuredWorld(trials: number, points: number, asha = false): World {
  const world = new World();
  const rungs = asha ? [1, 3, 9, 27].map((part) => Math.ceil((points * part) / 27)) : [];
  world.addSweep({
    ...{ id: 'big', name: 'big-sweep', max_trials: trials, max_step: points },
    ...{ rungs, parameters },
  });
  const random = randomStream(5);
  const ends: number[] = [];
  const noises: number[] = [];
  for (let i = 0; i < trials; i += 1) {
    const trial = world.addTrial('big', drawConfig(random));
    const isTraining = i >= trials - trainingTrials;
    const height = heightOf(trial.config);
    noises.push(Math.floor(random() * 2 ** 31));
    const rung = asha
      ? rungs.find((_, at) => random() > 0.35 + height * 0.45 * (at + 1))
      : undefined;
    const end = isTraining ? Math.ceil(points / 2) : (rung ?? points);
    ends.push(end);
    const state: TrialState = isTraining
      ? 'running'
      : random() < 0.03
        ? 'failed'
        : end < points || random() < 0.5
          ? 'stopped'
          : 'completed';
    const reason =
      state === 'stopped'
        ? `stopped at step ${end}: accuracy ${height.toFixed(4)} is rank ${i} of ${trials}`
        : '';
    Object.assign(trial, { state, reason, step: end, seconds: end * 4.1, attempt_count: 1 });
    if (!isTraining) trial.ended = trial.created;
  }
  world.recorded.set('big', (number, metric) => {
    const trial = world.trial('big', number);
    const noise = randomStream(noises[number] as number);
    const steps: number[] = [];
    const values: number[] = [];
    for (let step = 1; step <= (ends[number] as number); step += 1) {
      const accuracy = accuracyAt(trial.config, step / points, noise());
      steps.push(step);
      values.push(metric === 'loss' ? 2.3 * (1 - accuracy) + 0.05 : accuracy);
    }
    return { steps, values };
  });
  const counts = world.sweep('big').trials;
  for (const state of Object.keys(counts)) counts[state as TrialState] = 0;
  for (const trial of world.trialsOf('big')) {
    const { values } = world.pointsOf(trial, 'accuracy');
    const best = Number(Math.max(...values).toPrecision(6));
    const last = values.at(-1) as number;
    trial.best = best;
    trial.metrics = { accuracy: last, loss: Number((2.3 * (1 - last) + 0.05).toPrecision(5)) };
    counts[trial.state] += 1;
    const { sweep, number, config, metrics, step } = trial;
    const known = world.sweep(sweep).best;
    if (known && known.value >= best) continue;
    world.sweep(sweep).best = {
      ...{ trial: number, step, value: best, values: [best], config, metrics },
      ...{ checkpoint: null, checkpoint_step: null },
    };
  }
  world.events.splice(0, world.events.length - 1);
  return world;
}

// Trials of one optimizer form two groups, so that the picture has a structure.
function heightOf(config: Config): number {
  const distance = Math.abs(Math.log10(Number(config.lr)) + 1.3);
  const base = config.optimizer === 'sgd' ? 0.86 : 0.93;
  return base - 0.13 * distance * distance + Number(config.width) * 0.0006;
}

function accuracyAt(config: Config, share: number, noise: number): number {
  const pace = 3 + Number(config.momentum) * 14;
  const value = heightOf(config) * (1 - 0.85 * Math.exp(-pace * share)) + (noise - 0.5) * 0.02;
  return Number(Math.min(0.985, Math.max(0.02, value)).toPrecision(5));
}
