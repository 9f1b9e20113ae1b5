import type { TrialReported } from '../api/events';
import type { Metric, Schedule, TrialDetail } from '../api/types';
import { Curve, type Clone } from './curve';
import { better, fromWire } from './numbers';

/** The trial with a report more; one that it already contains changes nothing. */
export function appendReport(
  trial: TrialDetail,
  event: TrialReported,
  metric: Metric | undefined,
): TrialDetail {
  const known = trial.history.some(
    (point) => point.attempt === event.attempt && point.step === event.step,
  );
  if (known) return trial;
  const { attempt, step, seconds, time, metrics } = event;
  const judged = metric ? metrics[metric.name] : undefined;
  const improves =
    metric !== undefined &&
    judged !== undefined &&
    (trial.best === null || better(metric.mode, fromWire(judged), fromWire(trial.best)));
  return {
    ...trial,
    step,
    seconds: Math.max(trial.seconds, seconds),
    metrics,
    best: improves ? judged : trial.best,
    history: [...trial.history, { attempt, step, seconds, time, metrics }],
  };
}

/** Names of all metrics the trial has reported, the sweep's own first. */
export function metricNames(trial: TrialDetail, metric: Metric): string[] {
  const names = new Set([metric.name]);
  for (const point of trial.history) for (const name of Object.keys(point.metrics)) names.add(name);
  return [...names];
}

export function curveOf(trial: TrialDetail, metric: string): Curve {
  const curve = new Curve();
  for (const point of trial.history) {
    const value = point.metrics[metric];
    if (value !== undefined) curve.append(point.step, fromWire(value));
  }
  return curve;
}

/** Where the trial went on from another's checkpoint, of what its weights come from now. */
export function clonesOf(parts: Schedule['schedule'], number: number): Clone[] {
  return parts.flatMap(({ trial, step }, i) => {
    const donor = parts[i - 1]?.trial;
    return trial === number && donor !== undefined && donor !== number ? [{ donor, step }] : [];
  });
}
