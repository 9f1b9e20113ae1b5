import { createHash } from 'node:crypto';

import type {
  Branch,
  CheckpointDetail,
  FailedAttempt,
  Failures,
  FailureGroup,
  ResolvedSweep,
} from '../../../web/src/api/contract';
import type { World } from './world';

/** The parts of the sweep file that the mock knows. */
export function resolvedOf(world: World, id: string): ResolvedSweep {
  const { name, searcher, scheduler, metric, max_step, max_trials, workers, parameters } =
    world.sweep(id);
  return {
    resolved: {
      name,
      metric,
      searcher: { name: searcher },
      scheduler: { name: scheduler, max: max_step },
      resources: { workers },
      stop: { max_trials },
      parameters: Object.fromEntries(parameters.map(({ name: key, ...rest }) => [key, rest])),
    },
  };
}

/** Groups by message as the server does, with a simpler pattern. */
export function failuresOf(world: World, id: string): Failures {
  const failed = world.trialsOf(id).flatMap(({ number, attempts }) =>
    attempts
      .filter(({ outcome }) => outcome === 'failed' || outcome === 'lost')
      .map(
        (attempt): FailedAttempt => ({
          trial: number,
          attempt: attempt.number,
          rank: rankOf(attempt.failure),
          executor: attempt.executor,
          kind: attempt.outcome === 'lost' ? 'lost' : 'exit',
          failure: attempt.failure,
          time: attempt.ended ?? attempt.decided,
        }),
      ),
  );
  failed.sort((a, b) => a.time.localeCompare(b.time));
  const groups = new Map<string, FailureGroup & { numbers: Set<number> }>();
  for (const each of failed) {
    const message = each.failure.split('\n')[0] ?? '';
    const pattern = message.replace(/(?<!signal |code )\b\d+/g, 'N');
    const key = `${each.kind} ${pattern}`;
    let group = groups.get(key);
    if (!group) {
      const first = { ...each, failure: message };
      const none = { attempts: 0, trials: 0, some_trials: [], numbers: new Set<number>() };
      group = { kind: each.kind, pattern, first, last: each.time, ...none };
      groups.set(key, group);
    }
    group.attempts += 1;
    group.last = each.time;
    group.numbers.add(each.trial);
  }
  const listed = [...groups.values()].map(({ numbers, ...group }) => ({
    ...group,
    trials: numbers.size,
    some_trials: [...numbers].sort((a, b) => a - b).slice(0, 20),
  }));
  return {
    attempts: failed.length,
    trials: new Set(failed.map(({ trial }) => trial)).size,
    first: failed[0] ?? null,
    groups: listed.sort((a, b) => b.attempts - a.attempts),
    ungrouped: 0,
  };
}

function rankOf(failure: string): number | null {
  const found = /^rank (\d+)/.exec(failure);
  return found ? Number(found[1]) : null;
}

export function branchesOf(world: World, id: string): Branch[] {
  return world.trialsOf(id).flatMap(({ number, decisions }): Branch[] => [
    ...(world.clones.get(`${id}/${number}`) ?? []).map(({ donor, step }) => ({
      ...{ trial: number, donor, step },
    })),
    ...decisions
      .filter(({ verdict }) => verdict === 'promote')
      .map(({ step }) => ({ trial: number, donor: null, step })),
  ]);
}

/** A checkpoint by its name, such as `1-9`; undefined if the trial has none. */
export function checkpointOf(
  world: World,
  id: string,
  number: number,
  name: string,
): CheckpointDetail | undefined {
  const trial = world.trialsOf(id)[number];
  const found = trial?.checkpoints.find(({ attempt, step }) => `${attempt}-${step}` === name);
  if (!trial || !found) return undefined;
  const executor = trial.attempts.find((each) => each.number === found.attempt)?.executor ?? '';
  const best = trial.best;
  return { ...found, sweep: id, trial: number, executor, best, stored: false, stored_url: null };
}

const model = Buffer.from('the weights of the model');
const sha256 = createHash('sha256').update(model).digest('hex');

/** A file of every checkpoint; undefined if there is none of this name. */
export function checkpointFile(name: string): Buffer | undefined {
  if (name === 'model.safetensors') return model;
  if (name !== 'manifest.json') return undefined;
  const files = { 'model.safetensors': { bytes: model.length, sha256 } };
  return Buffer.from(JSON.stringify({ format: 1, step: 9, files }));
}
