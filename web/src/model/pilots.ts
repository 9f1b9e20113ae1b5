import type { Amount, Hours } from '../api/contract';

const format = (hours: number): string => hours.toFixed(2);

/** "GPU-hours: 12.00 allocated, 10.10 in use (84 %), 1.90 idle"; node-hours without GPUs. Empty before the
    first hour. */
export function hoursSentence(hours: Hours): string {
  if (hours.allocated.nodes === 0) return '';
  const unit: keyof Amount = hours.allocated.gpus > 0 ? 'gpus' : 'nodes';
  const allocated = hours.allocated[unit];
  const used = hours.in_use[unit];
  const unobserved = hours.unobserved[unit];
  return [
    `${unit === 'gpus' ? 'GPU-hours' : 'Node-hours'}: ${format(allocated)} allocated`,
    `${format(used)} in use (${Math.round((100 * used) / allocated)} %)`,
    `${format(hours.idle[unit])} idle`,
    ...(unobserved > 0 ? [`${format(unobserved)} while nobody looked`] : []),
  ].join(', ');
}
