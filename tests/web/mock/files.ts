import type { Fault, SimulatedOutcome, ValidatedSweep } from '../../../web/src/api/contract';
import { resolvedOf } from './analysis';
import { Refusal } from './steering';
import type { World } from './world';

// The mock knows a sweep file by a few of its lines.

const numberOf = (file: string, key: string): number | undefined => {
  const found = new RegExp(`\\b${key}: *(\\d+)`).exec(file);
  return found ? Number(found[1]) : undefined;
};

/** Refuses a file without `command`, or with the line `wrong: …`. */
function check(file: string): void {
  const lines = file.split('\n');
  const wrong = lines.findIndex((line) => line.startsWith('wrong:'));
  const faults: Fault[] = [];
  if (wrong >= 0)
    faults.push({ pointer: '/wrong', line: wrong + 1, column: 1, message: 'unknown key' });
  if (!lines.some((line) => line.startsWith('command:')))
    faults.push({ pointer: '', line: 0, column: 0, message: '`command` is missing' });
  if (faults.length > 0) throw new Refusal(422, `${faults.length} errors`, faults);
}

export function validated(world: World, file: string): ValidatedSweep {
  check(file);
  const priority = numberOf(file, 'priority') ?? 0;
  // The tests edit this sweep.
  const known = world.sweeps.has('s1') ? resolvedOf(world, 's1').resolved : {};
  return { resolved: { ...known, priority }, rungs: [1, 3, 9], warm_start: [], warnings: [] };
}

export function simulated(file: string, query: URLSearchParams): SimulatedOutcome {
  check(file);
  const [slots, seconds] = [Number(query.get('slots')), Number(query.get('step_seconds'))];
  const trials = numberOf(file, 'max_trials') ?? 10;
  const none = { pending: 0, running: 0, paused: 0, stopped: 0, failed: 0, killed: 0 };
  return {
    ...{ slots, reason: '', slot_hours: 1, cpu_hours: 2, gpu_hours: 0, peak_slots: slots },
    ...{ wall_seconds: (trials * seconds) / slots, steps: trials, best: null },
    trials: { ...none, completed: trials },
  };
}

/** Creates a sweep once for each key. */
export function created(world: World, file: string, key: string): object {
  check(file);
  const id = world.createdBy.get(key) ?? `s${world.sweeps.size + 1}`;
  if (!world.createdBy.has(key)) world.addSweep({ id, name: 'created', file });
  world.createdBy.set(key, id);
  return world.sweep(id);
}

export function edited(
  world: World,
  id: string,
  patch: Record<string, unknown>,
  dryRun: boolean,
): object {
  if ('searcher' in patch)
    throw new Refusal(422, 'searcher: cannot change after the sweep has started', []);
  const sweep = world.sweep(id);
  const changes = Object.entries(patch).map(([key, value]) => {
    const before = (sweep as unknown as Record<string, unknown>)[key];
    return `${key} ${value} (was ${before})`;
  });
  if (!dryRun) world.edit(id, patch, changes);
  return { ...sweep, effect: `now ${changes.join(', ')}` };
}
