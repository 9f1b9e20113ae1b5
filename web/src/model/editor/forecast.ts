import type { SimulatedOutcome } from '../../api/contract';
import { formatHours } from '../cost';
import { formatCount, plural } from '../numbers';
import { trialStates } from '../states';
import { formatDuration } from '../time';

/** "About 3 h 20 min with 8 slots: 12 GPU-hours, 100 trials (60 completed, 40 stopped), 900 steps." */
export function forecastText(outcome: SimulatedOutcome): string {
  const { wall_seconds, gpu_hours, cpu_hours, trials, steps, slots } = outcome;
  const hours =
    gpu_hours > 0 ? `${formatHours(gpu_hours)} GPU-hours` : `${formatHours(cpu_hours)} CPU-hours`;
  const counts = trialStates
    .filter((state) => trials[state] > 0)
    .map((state) => `${formatCount(trials[state])} ${state}`);
  const all = trialStates.reduce((sum, state) => sum + trials[state], 0);
  return (
    `About ${formatDuration(wall_seconds)} with ${plural(slots, 'slot')}: ${hours}, ` +
    `${plural(all, 'trial')} (${counts.join(', ')}), ${plural(steps, 'step')}.`
  );
}
