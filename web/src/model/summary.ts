import type { Limits, Sweep, TrialState } from '../api/contract';
import type { Axis } from './axes';
import { brushText, type Brushes } from './brush';
import type { CurveStore } from './curve_store';
import { missingMeaning, type Along, type Dot } from './history';
import { formatCount, formatMetric, formatStep, fromWire, plural } from './numbers';
import { countTrials, trialStates } from './states';
import { formatDuration } from './time';

/** What the learning curves show, in words for readers who do not see them. */
export function curvesSummary(
  sweep: Sweep,
  curves: Pick<CurveStore, 'size' | 'lastStep'>,
  metric: string,
): string {
  if (curves.size === 0) return `No trial has reported ${metric} yet.`;
  const reach = formatStep(curves.lastStep);
  const parts = [`${metric} of ${plural(curves.size, 'trial')} up to step ${reach}.`];
  const { best } = sweep;
  if (best && metric === sweep.metric.name) {
    parts.push(
      `Best: ${formatMetric(fromWire(best.value))}, trial ${best.trial} at step ${best.step}.`,
    );
  }
  return parts.join(' ');
}

/** The results of the trials, in words. */
export function historySummary(
  sweep: Sweep,
  dots: readonly Dot[],
  trials: number,
  along: Along,
): string {
  const several = sweep.metrics.length > 1;
  const { best, pareto_front: front, metrics } = sweep;
  const parts: string[] = [];
  if (several) {
    const more = metrics.length > 2 ? `, of all ${metrics.length} metrics` : '';
    parts.push(
      `Each trial’s newest report; ${plural(front.length, 'report')} on the front${more}.`,
    );
  } else {
    const line = `the line is the best ${along === 'ended' ? 'at that time' : 'so far'}.`;
    parts.push(`The best ${sweep.metric.name} of ${plural(trials, 'trial')}; ${line}`);
    if (best) parts.push(`Best: ${formatMetric(fromWire(best.value))}, trial ${best.trial}.`);
  }
  const missing = Object.entries(missingMeaning).flatMap(([kind, meaning]) => {
    const count = dots.filter((dot) => dot.missing === kind).length;
    return count > 0 ? [`${formatCount(count)} ${meaning}`] : [];
  });
  if (missing.length > 0) parts.push(`${missing.join(', ')}.`);
  const undrawn = trials - new Set(dots.map((dot) => dot.number)).size;
  const yet = !several && along === 'ended' ? 'ended' : 'reported';
  if (undrawn > 0) parts.push(`${formatCount(undrawn)} not ${yet} yet.`);
  return parts.join(' ');
}

/** Which trials are drawn across which axes. */
export function parallelSummary(
  axes: readonly Axis[],
  brushes: Brushes,
  trials: number,
  kept: number,
): string {
  const brushed = axes.flatMap((axis) => {
    const brush = brushes[axis.key];
    return brush ? [brushText(axis, brush)] : [];
  });
  const drawn = `${plural(trials, 'trial')} across ${plural(axes.length, 'axis', 'axes')}.`;
  if (brushed.length === 0) return drawn;
  return `${drawn} ${formatCount(kept)} within ${brushed.join('; ')}.`;
}

/** "1 running, 2 completed, 5 stopped". */
export function countsSummary(counts: Record<TrialState, number>): string {
  const parts = trialStates
    .filter((state) => counts[state] > 0)
    .map((state) => `${formatCount(counts[state])} ${state}`);
  return parts.length > 0 ? parts.join(', ') : 'no trials yet';
}

/** "2 to 8 workers". */
export function workersText({
  workers,
  min_workers,
}: Pick<Sweep, 'workers' | 'min_workers'>): string {
  return `${min_workers < workers ? `${min_workers} to ` : ''}${plural(workers, 'worker')}`;
}

/** The limits that are set: "2 h, 50 GPU-hours, target 0.95". */
export function limitsSummary(limits: Limits): string {
  const parts = [
    limits.target !== null && `target ${formatMetric(limits.target)}`,
    limits.max_time > 0 && formatDuration(limits.max_time),
    limits.max_gpu_hours > 0 && `${formatMetric(limits.max_gpu_hours)} GPU-hours`,
    limits.patience > 0 && `patience ${plural(limits.patience, 'trial')}`,
    limits.max_trial_time > 0 && `${formatDuration(limits.max_trial_time)} per trial`,
    limits.trial_patience > 0 && `patience ${plural(limits.trial_patience, 'report')}`,
    limits.plateau &&
      `plateau of ${limits.plateau.metric} over ${plural(limits.plateau.patience, 'report')}`,
    ...Object.entries(limits.threshold).flatMap(([metric, { at_least, at_most }]) => [
      at_least !== undefined && `${metric} ≥ ${formatMetric(at_least)} ends a trial`,
      at_most !== undefined && `${metric} ≤ ${formatMetric(at_most)} ends a trial`,
    ]),
  ];
  return parts.filter(Boolean).join(', ');
}

/** The consequences of an action, for its dialog. */
/** How long the server waits before it deletes a sweep. */
export const deletionDelaySeconds = 10;

export function confirmation(verb: 'stop' | 'kill' | 'delete', sweep: Sweep): string {
  const { running, pending, paused } = sweep.trials;
  if (verb === 'delete') {
    return `Its ${plural(countTrials(sweep.trials), 'trial')} will be deleted with their checkpoints, logs and files. You can undo this for ${deletionDelaySeconds} s.`;
  }
  const waiting = pending + paused;
  if (verb === 'stop') {
    const first =
      running === 0
        ? 'No trial is running.'
        : `${plural(running, 'running trial')} will finish ${running === 1 ? 'its' : 'their'} training.`;
    const second =
      waiting === 0
        ? 'No new trial will start.'
        : `No new trial will start, and ${plural(waiting, 'waiting trial')} will not continue.`;
    return `${first} ${second}`;
  }
  const first =
    running === 0 ? 'No trial is running.' : `${plural(running, 'running trial')} will end now.`;
  return `${first} Training since the last checkpoints is lost; saved checkpoints are kept.`;
}
