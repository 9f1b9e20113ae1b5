import type { Sweep, TrialState } from '../api/types';
import type { Curve } from './curve';
import { formatCount, formatMetric, fromWire, plural } from './numbers';
import { trialStates } from './states';

/** What the learning curves show, in words, for those who do not see them. */
export function curvesSummary(
  sweep: Sweep,
  curves: ReadonlyMap<number, Curve>,
  metric: string,
): string {
  const drawn = [...curves.values()].filter((curve) => curve.length > 0);
  if (drawn.length === 0) return `No trial has reported ${metric} yet.`;
  const steps = drawn.map((curve) => curve.steps.at(-1) as number);
  const reach = steps.reduce((most, step) => Math.max(most, step), 0);
  const parts = [`${metric} of ${plural(drawn.length, 'trial')} up to step ${reach}.`];
  const { best } = sweep;
  if (best && metric === sweep.metric.name) {
    parts.push(
      `Best: ${formatMetric(fromWire(best.value))}, trial ${best.trial} at step ${best.step}.`,
    );
  }
  return parts.join(' ');
}

/** "1 running, 2 completed, 5 stopped". */
export function countsSummary(counts: Record<TrialState, number>): string {
  const parts = trialStates
    .filter((state) => counts[state] > 0)
    .map((state) => `${formatCount(counts[state])} ${state}`);
  return parts.length > 0 ? parts.join(', ') : 'no trials yet';
}

/** What a person is about to do, with what it costs. */
export function confirmation(verb: 'stop' | 'kill', sweep: Sweep): string {
  const { running, pending, paused } = sweep.trials;
  const waiting = pending + paused;
  if (verb === 'stop') {
    const first =
      running === 0
        ? 'No trial is running.'
        : `${plural(running, 'running trial')} will finish ${running === 1 ? 'its' : 'their'} training.`;
    const second =
      waiting === 0
        ? 'No new trial will start.'
        : `No new trial will start, and ${plural(waiting, 'waiting trial')} will not go on.`;
    return `${first} ${second}`;
  }
  const first =
    running === 0 ? 'No trial is running.' : `${plural(running, 'running trial')} will end now.`;
  return `${first} What was trained since the last checkpoints is lost; checkpoints already saved are kept.`;
}
