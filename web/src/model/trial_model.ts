import type { TrialReported } from '../api/events';
import type { Attempt, LoggedPoint, Metric, Schedule, Sweep, TrialDetail } from '../api/contract';
import { Curve, type Clone, type ReportedPoint } from './curve';
import { better, fromWire } from './numbers';

/** Adds a report to a trial; a report that the trial already contains changes nothing. */
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
    seconds: Math.max(fromWire(trial.seconds), fromWire(seconds)),
    metrics,
    best: improves ? judged : trial.best,
    history: [...trial.history, { attempt, step, seconds, time, metrics }],
  };
}

/** Names of the metrics that the trial reported or that trials of its sweep log; the metric of the
    sweep comes first. */
export function metricNames(trial: TrialDetail, sweep: Sweep): string[] {
  const names = new Set([sweep.metric.name]);
  for (const point of trial.history) for (const name of Object.keys(point.metrics)) names.add(name);
  return [...names, ...sweep.logged_metrics.filter((name) => !names.has(name))];
}

type Measured = Pick<LoggedPoint, 'attempt' | 'step' | 'metrics'>;

/** The curve of a metric. `attempts`: those of the trial. */
export function curveOf(
  history: readonly Measured[],
  logged: readonly Measured[],
  attempts: readonly Pick<Attempt, 'number' | 'resumed_from'>[],
  metric: string,
): Curve {
  const resumed = new Map(attempts.map((each) => [each.number, each.resumed_from ?? 0]));
  const of = (points: readonly Measured[]): ReportedPoint[] =>
    points.flatMap(({ attempt, step, metrics }) => {
      const value = metrics[metric];
      if (value === undefined) return [];
      return [{ step, value: fromWire(value), attempt, resumedFrom: resumed.get(attempt) ?? 0 }];
    });
  return Curve.of(of(history), of(logged));
}

/** Where the trial continued from a checkpoint of another trial. */
export function clonesOf(parts: Schedule['schedule'], number: number): Clone[] {
  return parts.flatMap(({ trial, step }, i) => {
    const donor = parts[i - 1]?.trial;
    return trial === number && donor !== undefined && donor !== number ? [{ donor, step }] : [];
  });
}
