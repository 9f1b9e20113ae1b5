import type {
  Annotation,
  Config,
  Problem,
  SweepDetail,
  TrialDetail,
} from '../../../web/src/api/contract';
import { isLive } from '../../../web/src/model/states';
import type { World } from './world';

/** A request that the server would refuse. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly errors?: Problem['errors'],
  ) {
    super(message);
  }
}

type Body = Record<string, unknown>;

/** Applies the requests of users about sweeps, trials and checkpoints like the real server. */
export function steer(world: World, id: string, rest: string, verb: string, body: Body): object {
  if (verb === 'enqueue') return enqueue(world, id, body.config as Config);
  const trial = /^\/trials\/(\d+)(?:\/checkpoints\/(\d+)-(\d+))?$/.exec(rest);
  if (!trial && verb === 'annotate') return annotate(world, world.sweep(id), body as Annotation);
  if (!trial) return steerSweep(world, id, verb, body);
  const found = world.trial(id, Number(trial[1]));
  if (verb === 'annotate') return annotate(world, found, body as Annotation);
  if (trial[2] === undefined) return steerTrial(world, found, verb, body);
  world.pin(found, Number(trial[2]), Number(trial[3]), verb === 'pin');
  const effect =
    verb === 'pin' ? 'it is kept until it is unpinned' : 'it is deleted when nothing else needs it';
  return { ...found, effect };
}

function annotate(world: World, of: SweepDetail | TrialDetail, body: Annotation): object {
  const at = body.add_tags?.findIndex((tag) => /[\s,"']/.test(tag)) ?? -1;
  if (at >= 0)
    throw new Refusal(422, `add_tags[${at}]: "${body.add_tags?.[at]}" is not a tag`, [
      { pointer: `/add_tags/${at}`, line: 0, column: 0, message: 'is not a tag' },
    ]);
  world.annotate(of, body);
  return { ...of, effect: `its tags are ${of.tags.join(', ')}` };
}

function enqueue(world: World, id: string, config: Config): TrialDetail {
  const missing = world
    .sweep(id)
    .parameters.filter(({ name, type }) => type !== 'constant' && !(name in config))
    .map(({ name }) => ({
      ...{ pointer: `/config/${name}`, line: 0, column: 0 },
      message: 'has no value; give it one',
    }));
  if (missing.length > 0) throw new Refusal(422, `${missing.length} errors`, missing);
  return world.addTrial(id, config);
}

function steerSweep(world: World, id: string, verb: string, body: Body): object {
  const sweep = world.sweep(id);
  const running = world.trialsOf(id).filter((trial) => trial.state === 'running');
  if (verb === 'undelete') {
    world.undelete(id);
    return { ...sweep, effect: 'it is kept: its deletion is undone' };
  }
  if (sweep.ended !== null && verb !== 'extend')
    throw new Refusal(409, `sweep ${id} has already ended: it is ${sweep.state}`);
  let effect = '';
  if (verb === 'pause') {
    world.changeSweep(id, 'paused', 'paused on request');
    for (const trial of running)
      world.yield(trial, 'pause', 'saved and left: its sweep was paused');
    effect = `${running.length} running trials will save a checkpoint and leave`;
  } else if (verb === 'resume') {
    world.changeSweep(id, 'running', '');
    effect = 'it goes on';
  } else if (verb === 'extend') {
    if (sweep.ended !== null) world.changeSweep(id, 'running', 'extended on request');
    const changes = Object.entries(body).map((each) => each.join(' '));
    world.edit(id, body, changes);
    effect = `now ${changes.join(', ')}`;
  } else if (verb === 'stop') {
    world.stopSweep(id, 'stopped', 'the sweep was stopped on request');
    effect = `${running.length} running trials will finish, and nothing else starts`;
  } else {
    for (const trial of world.trialsOf(id).filter((each) => isLive(each.state)))
      world.change(trial, 'killed', 'killed with its sweep');
    world.changeSweep(id, 'killed', 'the sweep was killed on request');
    effect = `${running.length} trials ended now`;
  }
  return { ...sweep, effect };
}

/** With a delay, only World.deleteSweep deletes the sweep. */
export function deleteSweep(world: World, id: string, delay: number): object {
  if (delay > 0) {
    const deletion = world.scheduleDeletion(id, delay);
    return { id, state: 'scheduled', effect: `it will be deleted in ${delay} seconds`, deletion };
  }
  world.deleteSweep(id);
  return { id, state: 'deleted', effect: 'deleted; its files go from 2 data folders' };
}

function steerTrial(world: World, trial: TrialDetail, verb: string, body: Body): object {
  const { number } = trial;
  if (verb === 'kill') {
    world.change(trial, 'killed', 'killed on request');
    return { ...trial, effect: 'it ended now' };
  }
  if (isLive(trial.state))
    throw new Refusal(409, `trial ${number} has not ended: it is ${trial.state}`);
  const reason =
    verb === 'continue' ? `continues to step ${body.until} on request` : 'retried on request';
  const { step } = trial.checkpoints.at(-1) ?? { step: 0 };
  world.change(trial, 'pending', reason);
  trial.ended = null;
  if (body.from_start === true || step === 0)
    return { ...trial, effect: 'it will start from the beginning' };
  return { ...trial, effect: `it will go on from step ${step}` };
}
