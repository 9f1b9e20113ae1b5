import type { Amount, Hours } from '../api/types';

const format = (hours: number): string => hours.toFixed(2);

/** "GPU-hours: 12.00 held, 10.10 in use (84 %), 1.90 idle"; of nodes where there are no GPUs. Empty before the first. */
export function hoursSentence(hours: Hours): string {
  if (hours.held.nodes === 0) return '';
  const of: keyof Amount = hours.held.gpus > 0 ? 'gpus' : 'nodes';
  const held = hours.held[of];
  const used = hours.in_use[of];
  const unseen = hours.unseen[of];
  return [
    `${of === 'gpus' ? 'GPU-hours' : 'Node-hours'}: ${format(held)} held`,
    `${format(used)} in use (${Math.round((100 * used) / held)} %)`,
    `${format(hours.idle[of])} idle`,
    ...(unseen > 0 ? [`${format(unseen)} while no keeper looked`] : []),
  ].join(', ');
}
