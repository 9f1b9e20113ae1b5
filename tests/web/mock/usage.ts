import type { ExecutorOccupancy, HeldAttempt, QueuedGang } from '../../../web/src/api/contract';
import { noCost } from './no_cost';
import { randomStream } from './random';
import { smallWorld } from './scenarios';
import type { World } from './world';

const minute = 60_000;
const outcomes = ['finished', 'stopped', 'paused', 'failed', 'lost', 'killed'];
const sweeps = [
  ['s1', 'fashion-mnist'],
  ['s2', 'resnet-baseline'],
  ['s3', 'transformer-large'],
] as const;

/** An attempt that holds GPUs of one executor, from and to times in minutes before now. */
export function heldAttempt(
  now: number,
  from: number,
  to: number | null,
  changes: Partial<HeldAttempt> = {},
): HeldAttempt {
  const at = (minutes: number): string => new Date(now - minutes * minute).toISOString();
  return {
    sweep: 's1',
    sweep_name: 'fashion-mnist',
    trial: 0,
    attempt: 1,
    outcome: to === null ? '' : 'finished',
    begin: at(from),
    end: to === null ? null : at(to),
    ranks: [{ rank: 0, executor: 'box', cpus: 1, gpus: [0] }],
    ...changes,
  };
}

function occupancy(executor: string, gpus: number[]): ExecutorOccupancy {
  const shares = (hour: number): ExecutorOccupancy['share'] => ({
    hour,
    day: hour * 0.8,
    joined: hour * 0.7,
  });
  const mean = gpus.length > 0 ? gpus.reduce((a, b) => a + b) / gpus.length : 0.42;
  return {
    executor,
    joined: '2026-11-20T10:00:00.000000Z',
    lost: null,
    share: shares(mean),
    gpus: gpus.map(shares),
  };
}

export function queuedGang(place: number, changes: Partial<QueuedGang> = {}): QueuedGang {
  return {
    place,
    sweep: 's3',
    sweep_name: 'transformer-large',
    owner: 'ada',
    trial: place,
    gangs: 1,
    ready: true,
    priority: 0,
    share: 0.25,
    sweep_share: 0.125,
    workers: 8,
    cpus_per_worker: 2,
    gpus_per_worker: 1,
    not_before: null,
    reason: 'needs 8 GPUs; 3 are free on gpu-1',
    ...changes,
  };
}

/** The small world with costs, two hosts with GPUs and one without, and trials that wait. */
export function usageWorld(): World {
  const world = smallWorld();
  const now = Date.now();
  world.costs.set('s1', {
    ...noCost,
    resource: 'gpu',
    used_hours: 12.5,
    wasted_hours: 1.25,
    saved_hours: 31.4,
    attempts: 13,
    running: 2,
    broken: 3,
    stopped: 2,
    price: { gpu_hour: 2, currency: 'EUR', used: 25, wasted: 2.5, saved: 62.8 },
  });
  world.occupancy = [
    occupancy('box', []),
    occupancy('gpu-1', [0.97, 0.91, 0.6, 0.12]),
    occupancy('gpu-2', [0.88, 0.9]),
  ];
  const random = randomStream(3);
  let trial = 0;
  for (const [executor, gpus] of [
    ['gpu-1', [0, 1, 2, 3]],
    ['gpu-2', [0, 1]],
    ['box', [-1]],
  ] as const) {
    for (const gpu of gpus) {
      for (let from = 58; from > 1; ) {
        const to = from - 2 - random() * 14;
        const [sweep, sweep_name] = sweeps[Math.floor(random() * 3)] ?? sweeps[0];
        const outcome = outcomes[Math.floor(random() * outcomes.length)] ?? 'finished';
        const ends = to > 0 ? to : null;
        world.held.push(
          heldAttempt(now, from, ends, {
            sweep,
            sweep_name,
            trial: (trial += 1) % 9,
            outcome: ends === null ? '' : outcome,
            ranks: [{ rank: 0, executor, cpus: 1, gpus: gpu < 0 ? [] : [gpu] }],
          }),
        );
        from = to - random() * 3;
      }
    }
  }
  world.queue = [
    queuedGang(1, { trial: 0, priority: 5 }),
    queuedGang(2, {
      sweep: 's1',
      sweep_name: 'fashion-mnist',
      trial: 11,
      owner: 'bob',
      workers: 2,
    }),
    queuedGang(3, { trial: null, gangs: 39 }),
    queuedGang(4, {
      sweep: 's1',
      sweep_name: 'fashion-mnist',
      trial: 8,
      owner: 'bob',
      ready: false,
      not_before: '2026-11-21T10:05:00.000000Z',
      reason: 'waits before its restart (failure.backoff)',
    }),
  ];
  return world;
}
