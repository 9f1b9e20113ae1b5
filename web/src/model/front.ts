import type { Best, Sweep, Metrics } from '../api/contract';
import { better, compareByMode, fromWire } from './numbers';

/** Whether a report counts: every metric of the sweep is finite and no constraint is violated. */
export function isCounted(sweep: Sweep, metrics: Metrics): boolean {
  const value = (name: string): number => fromWire(metrics[name] ?? 'nan');
  const within = Object.entries(sweep.constraints).every(
    ([name, { min, max }]) =>
      Number.isFinite(value(name)) &&
      value(name) >= (min ?? -Infinity) &&
      value(name) <= (max ?? Infinity),
  );
  return within && sweep.metrics.every(({ name }) => Number.isFinite(value(name)));
}

/** Whether a report that counts would join the front: no known report is as good in every metric. */
export function joinsFront(sweep: Sweep, metrics: Metrics): boolean {
  return !sweep.pareto_front.some((known) =>
    sweep.metrics.every(
      ({ name, mode }, i) =>
        !better(mode, fromWire(metrics[name] ?? 'nan'), fromWire(known.values[i] ?? 'nan')),
    ),
  );
}

/** The front, sorted by the first metric with the best first. */
export function orderedFront(sweep: Sweep): Best[] {
  const { mode } = sweep.metric;
  return [...sweep.pareto_front].sort((a, b) =>
    compareByMode(mode, fromWire(a.value), fromWire(b.value)),
  );
}

/** "latency_ms ≤ 20, recall 0.5 … 1". */
export function constraintsSummary(constraints: Sweep['constraints']): string {
  return Object.entries(constraints)
    .map(([name, { min, max }]) =>
      min !== null && max !== null
        ? `${name} ${min} … ${max}`
        : min !== null
          ? `${name} ≥ ${min}`
          : `${name} ≤ ${max}`,
    )
    .join(', ');
}
