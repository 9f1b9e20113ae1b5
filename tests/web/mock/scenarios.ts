import type { Config, Parameter, TrialDetail } from '../../../web/src/api/contract';
import { randomStream } from './random';
import { World } from './world';

const sweepFile = `apiVersion: attune/v1
kind: Sweep
name: fashion-mnist
command: [./fashion_mnist, "\${args}"]
metric: {name: accuracy, mode: max}
parameters:
  lr: {min: 0.001, max: 0.5, scale: log}
  momentum: {min: 0.0, max: 0.99}
  width: {min: 8, max: 64, step: 8}
  optimizer: {values: [sgd, adamw]}
  batch: {value: 128}
searcher: {name: random, seed: 7}
scheduler: {name: asha, min: 1, max: 9, reduction_factor: 3}
resources: {workers: 2, cpus_per_worker: 1}
stop: {max_trials: 12}
`;

export const parameters: Parameter[] = [
  { name: 'lr', type: 'float', min: 0.001, max: 0.5, scale: 'log' },
  { name: 'momentum', type: 'float', min: 0, max: 0.99, scale: 'linear' },
  { name: 'width', type: 'int', min: 8, max: 64, scale: 'linear', step: 8 },
  { name: 'optimizer', type: 'categorical', values: ['sgd', 'adamw'] },
  { name: 'batch', type: 'constant', value: 128 },
];

export function drawConfig(random: () => number): Config {
  return {
    lr: Number((0.001 * Math.pow(500, random())).toPrecision(6)),
    momentum: Number((random() * 0.99).toPrecision(5)),
    width: 8 * (1 + Math.floor(random() * 8)),
    optimizer: random() < 0.5 ? 'sgd' : 'adamw',
    batch: 128,
  };
}

// A saturating curve whose height depends on the configuration, with some noise.
function accuracyAt(config: Config, step: number, random: () => number): number {
  const distance = Math.abs(Math.log10(Number(config.lr)) + 1.3);
  const height = 0.89 - 0.16 * distance * distance + Number(config.width) * 0.0004;
  const pace = 0.55 + Number(config.momentum) * 0.6;
  const value = height * (1 - 0.62 * Math.exp(-pace * step)) + (random() - 0.5) * 0.012;
  return Number(Math.min(0.985, Math.max(0.08, value)).toPrecision(5));
}

/** Trains a trial to a step, with one report for each epoch. */
export function train(world: World, trial: TrialDetail, until: number, random: () => number): void {
  for (let step = trial.step + 1; step <= until; step += 1) {
    const accuracy = accuracyAt(trial.config, step, random);
    const loss = Number((2.3 * (1 - accuracy) + 0.05).toPrecision(5));
    world.report(trial, step, { accuracy, loss });
    world.log(trial, 0, `epoch ${step}  accuracy ${accuracy}  loss ${loss}\n`);
    world.log(trial, 1, `rank 1: epoch ${step} done\n`);
  }
}

/** ASHA over the rungs 1, 3 and 9 with a reduction factor of 3, with the reasons of the server. */
export function runAsha(world: World, id: string, trials: number, seed: number): void {
  const random = randomStream(seed);
  const sweep = world.sweep(id);
  const peersAt = new Map(sweep.rungs.map((rung) => [rung, [] as number[]]));
  for (let i = 0; i < trials; i += 1) {
    const trial = world.addTrial(id, drawConfig(random));
    world.start(trial);
    for (const [rung, peers] of peersAt) {
      train(world, trial, rung, random);
      if (rung !== sweep.rungs.at(-1) && stopAtRung(world, trial, rung, peers)) break;
    }
    world.checkpoint(trial);
    if (trial.state === 'running') {
      world.change(trial, 'completed', `reached step ${sweep.max_step}, the last`);
    }
  }
}

/** How many values of a list, the best first, are better. */
function placeAmong(values: readonly number[], value: number): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((values[middle] as number) > value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** `peers` has the values of the trials that have reached the rung before, the best first. */
function stopAtRung(world: World, trial: TrialDetail, rung: number, peers: number[]): boolean {
  const value = trial.best as number;
  const reached = trial.metrics.accuracy as number;
  peers.splice(placeAmong(peers, reached), 0, reached);
  const keep = Math.floor(peers.length / 3);
  const rank = placeAmong(peers, value) + 1;
  const cutoff = peers[Math.max(0, keep - 1)] as number;
  const stops = keep > 0 && rank > keep;
  const reason = stops
    ? `stopped at step ${rung}: accuracy ${value} is rank ${rank} of ${peers.length} at rung ${rung}; the best ${keep} go on (cutoff ${cutoff})`
    : `accuracy ${value} is rank ${rank} of ${peers.length} at rung ${rung}, among the best ${Math.max(1, keep)}`;
  const verdict = stops ? 'stop' : 'continue';
  const facts = { rung, value, cutoff, rank, peers: peers.length };
  world.decide(trial, { step: rung, verdict, reason, rule: 'asha', ...facts });
  if (stops) world.change(trial, 'stopped', reason);
  return stops;
}

/**
 * The world of most tests. Sweep s1 runs: nine trials have ended and two train; trial 9 is at step 3
 * of 9, trial 10 at step 1. Trial 8 failed. s2 is finished, s3 waits for GPUs.
 */
export function smallWorld(): World {
  const world = new World();
  world.executors = [
    {
      name: 'box',
      state: 'online',
      address: '127.0.0.1',
      labels: { zone: 'a' },
      cpus: 8,
      cpus_free: 4,
      gpus: 0,
      gpus_free: 0,
      memory_bytes: 25_165_824_000,
      memory_free_bytes: 12_000_000_000,
      running: [{ sweep: 's1', trial: 9, attempt: 1, ranks: [0, 1] }],
      drain: null,
      health_problem: null,
      storage_problem: '',
      quarantine: null,
      disk_free_bytes: 52_428_800_000,
      memory_available_bytes: 9_663_676_416,
      seconds_since_heartbeat: 1.5,
    },
    {
      name: 'node-7',
      state: 'lost',
      address: '10.0.0.7',
      labels: {},
      cpus: 32,
      cpus_free: 0,
      gpus: 4,
      gpus_free: 0,
      memory_bytes: 270_582_939_648,
      memory_free_bytes: 0,
      running: [],
      drain: null,
      health_problem: null,
      storage_problem: '',
      quarantine: null,
      disk_free_bytes: null,
      memory_available_bytes: null,
      seconds_since_heartbeat: null,
    },
  ];
  world.addSweep({
    id: 's2',
    name: 'resnet-baseline',
    tags: ['nightly'],
    max_trials: 9,
    file: sweepFile,
    parameters,
  });
  runAsha(world, 's2', 9, 11);
  world.changeSweep('s2', 'completed', 'all 9 trials have ended');

  world.addSweep({
    id: 's3',
    name: 'transformer-large',
    scheduler: 'median',
    searcher: 'grid',
    workers: 8,
    min_workers: 8,
    max_trials: 40,
    rungs: [],
    waiting_reason: 'trial 0 needs 8 GPUs; executor box has none and node-7 is lost',
  });
  world.addTrial('s3', { lr: 0.01 });

  world.addSweep({
    id: 's1',
    name: 'fashion-mnist',
    max_trials: 12,
    file: sweepFile,
    parameters,
  });
  runAsha(world, 's1', 8, 4);
  const random = randomStream(99);
  const failed = world.addTrial('s1', { ...drawConfig(random), lr: 0.48 });
  world.start(failed);
  world.report(failed, 1, { accuracy: 'nan', loss: 'inf' });
  const failure = failed.attempts[0];
  if (failure) {
    failure.failure =
      'rank 1 was killed by signal 9 (SIGKILL)\nepoch 1 done\nallocating 12 GiB for activations\nKilled';
  }
  world.change(failed, 'failed', 'rank 1 was killed by signal 9 (SIGKILL)');
  for (const [lr, reached] of [
    [0.062, 3],
    [0.021, 1],
  ] as const) {
    const trial = world.addTrial('s1', { ...drawConfig(random), lr });
    trial.milestone = reached === 3 ? 9 : 3;
    world.start(trial);
    train(world, trial, reached, random);
  }
  return world;
}

/**
 * Successive halving that pauses and promotes: sweep s1 with the rungs 1, 3 and 9. Trial 0 was
 * promoted at rung 1 and trains, 1 and 2 are paused at rung 1.
 */
export function promotingWorld(): World {
  const world = new World();
  world.addSweep({ id: 's1', name: 'promoting', parameters });
  const values = [0.7, 0.5, 0.6];
  values.forEach((value, i) => {
    const trial = world.addTrial('s1', drawConfig(randomStream(i)));
    world.start(trial);
    world.report(trial, 1, { accuracy: value });
    world.checkpoint(trial);
    pauseAt(world, trial, 1, value);
  });
  world.promote(world.trial('s1', 0), 'promoted at rung 1: accuracy 0.7 is rank 1 of 3 at rung 1');
  return world;
}

/** The scheduler's verdict on a trial that has reached a rung. No trial is promoted at once. */
export function pauseAt(world: World, trial: TrialDetail, rung: number, value: number): void {
  const peers = world.trialsOf(trial.sweep).filter((each) => each.step >= rung).length;
  const reason = `paused at step ${rung}: accuracy ${value} is rank ${peers} of ${peers} at rung ${rung}`;
  const facts = { rung, value, cutoff: null, rank: peers, peers };
  world.decide(trial, { step: rung, verdict: 'pause', reason, rule: 'asha', ...facts });
}

/** A sweep of two metrics, s1, with two trials on its front and one dominated trial. */
export function frontWorld(): World {
  const world = new World();
  world.addSweep({
    id: 's1',
    name: 'fast-and-good',
    metrics: [
      { name: 'accuracy', mode: 'max', target: null },
      { name: 'latency_ms', mode: 'min', target: null },
    ],
    scheduler: 'none',
    rungs: [],
    parameters,
  });
  for (const [accuracy, latency_ms] of [
    [0.8, 12],
    [0.7, 15],
    [0.9, 30],
  ] as const) {
    const trial = world.addTrial('s1', drawConfig(randomStream(latency_ms)));
    world.start(trial);
    world.report(trial, 1, { accuracy, latency_ms });
  }
  return world;
}

/**
 * A sweep, s1, with a parameter that exists for only one optimizer. Trials 0 to 5 have ended, 4
 * with NaN and 5 without a report; 6 trains and has reported nothing.
 */
export function conditionalWorld(): World {
  const world = new World();
  const momentum: Parameter = { name: 'momentum', type: 'float', min: 0.5, max: 0.99 };
  world.addSweep({
    id: 's1',
    name: 'conditional',
    scheduler: 'none',
    rungs: [],
    parameters: [
      { name: 'optimizer', type: 'categorical', values: ['sgd', 'adamw'] },
      { name: 'lr', type: 'float', min: 0.001, max: 1, scale: 'log' },
      { ...momentum, scale: 'linear' },
    ],
  });
  const values = [0.5, 0.8, 0.6, 0.9, 'nan', null, null] as const;
  values.forEach((value, i) => {
    const config = { optimizer: 'adamw', lr: Number((0.002 * 2 ** i).toPrecision(4)) };
    const trial = world.addTrial(
      's1',
      i % 2 === 0 ? config : { ...config, optimizer: 'sgd', momentum: 0.5 + i / 20 },
    );
    world.start(trial);
    if (value !== null) world.report(trial, 1, { accuracy: value });
    if (i === 5) world.change(trial, 'failed', 'rank 0 exited with code 1');
    else if (i < 5) world.change(trial, 'completed', 'reached step 1, the last');
  });
  return world;
}

/** A sweep of three metrics, s1. Trials 0, 1 and 3 are on its front; trial 2 is dominated. */
export function threeMetricWorld(): World {
  const world = new World();
  world.addSweep({
    id: 's1',
    name: 'small-fast-and-good',
    metrics: [
      { name: 'accuracy', mode: 'max', target: null },
      { name: 'latency_ms', mode: 'min', target: null },
      { name: 'size_mb', mode: 'min', target: null },
    ],
    scheduler: 'none',
    rungs: [],
    parameters,
  });
  for (const [accuracy, latency_ms, size_mb] of [
    [0.8, 12, 40],
    [0.7, 10, 35],
    [0.65, 15, 50],
    [0.9, 30, 45],
  ] as const) {
    const trial = world.addTrial('s1', drawConfig(randomStream(latency_ms)));
    world.start(trial);
    world.report(trial, 1, { accuracy, latency_ms, size_mb });
  }
  return world;
}

/**
 * A sweep, s1, that has failed: trials 0 to 4 cannot read a file, 5 left with exit code 137, and 6 is
 * complete.
 */
export function failingWorld(): World {
  const world = new World();
  world.addSweep({ id: 's1', name: 'failing', scheduler: 'none', rungs: [], parameters });
  for (let number = 0; number < 7; number += 1) {
    const trial = world.addTrial('s1', drawConfig(randomStream(number)));
    world.start(trial);
    if (number === 6) {
      world.report(trial, 1, { accuracy: 0.5 });
      world.change(trial, 'completed', 'reached step 1, the last');
      continue;
    }
    const message =
      number === 5
        ? 'rank 0 left with exit code 137'
        : `rank 1: cannot read /data/part-${number}.csv`;
    const attempt = trial.attempts[0];
    if (attempt) attempt.failure = `${message}\nopening part ${number}\nNo such file or directory`;
    world.change(trial, 'failed', message);
  }
  world.changeSweep('s1', 'failed', '6 of 7 trials have failed');
  return world;
}

/** A population of four trials, s1. At step 3, trial 3 continued from trial 0; all are at step 6. */
export function populationWorld(): World {
  const world = new World();
  world.addSweep({ id: 's1', name: 'population', scheduler: 'pbt', rungs: [], parameters });
  const random = randomStream(12);
  for (let number = 0; number < 4; number += 1) {
    const trial = world.addTrial('s1', drawConfig(random));
    world.start(trial);
    train(world, trial, 3, random);
    world.checkpoint(trial);
  }
  world.clone(world.trial('s1', 3), 0, 3);
  for (const trial of world.trialsOf('s1')) train(world, trial, 6, random);
  return world;
}

/** A sweep of very many trials, to test that the page stays fast. */
export function largeWorld(trials: number): World {
  const world = new World();
  world.addSweep({
    id: 'big',
    name: 'big-sweep',
    max_trials: trials,
    rungs: [1, 3, 9, 27],
    max_step: 27,
    parameters,
  });
  runAsha(world, 'big', trials, 5);
  const trial = world.addTrial('big', drawConfig(randomStream(1)));
  world.start(trial);
  return world;
}
