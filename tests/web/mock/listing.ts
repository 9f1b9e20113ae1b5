import { createHash } from 'node:crypto';

import type { Trial, TrialDetail } from '../../../web/src/api/contract';
import { FilterError, parseFilter } from '../../../web/src/model/filter';
import { fromWire } from '../../../web/src/model/numbers';
import { rowOf, SweepModel } from '../../../web/src/model/sweep_model';
import { trialStates } from '../../../web/src/model/states';
import { trialColumns } from '../../../web/src/pages/trial_columns';
import type { World } from './world';

/** A query that the server refuses. */
export class BadQuery extends Error {}

/** The list of trials in an order, with a filter, in pages. */
export function listedTrials(world: World, id: string, query: URLSearchParams): object {
  const order = query.get('order_by') || 'number';
  const filter = query.get('filter') ?? '';
  const digest = createHash('sha256').update(`${order}\n${filter}`).digest('hex').slice(0, 8);
  const [from = '0', used = digest] = (query.get('page_token') || `0-${digest}`).split('-');
  if (used !== digest) throw new BadQuery('page_token: it belongs to another order or filter');
  const all = listing(world, id, order, filter);
  const begin = Number(from);
  const end = begin + Number(query.get('page_size') ?? 100);
  return {
    trials: all.slice(begin, end).map(short),
    next_page_token: end < all.length ? `${end}-${digest}` : '',
    seq: world.seq,
    total_size: all.length,
  };
}

const listings = new WeakMap<World, Map<string, { seq: number; trials: TrialDetail[] }>>();

function listing(world: World, id: string, order: string, filter: string): TrialDetail[] {
  let known = listings.get(world);
  if (!known) listings.set(world, (known = new Map()));
  const key = `${id} ${order} ${filter}`;
  const found = known.get(key);
  if (found?.seq === world.seq) return found.trials;
  const trials = sorted(world, id, filtered(world, id, filter), order);
  known.set(key, { seq: world.seq, trials });
  return trials;
}

function filtered(world: World, id: string, filter: string): TrialDetail[] {
  const all = world.trialsOf(id);
  if (filter === '') return all;
  try {
    const columns = trialColumns(new SweepModel(world.sweep(id), 0), 'state');
    const matches = parseFilter(filter, columns);
    return all.filter((trial) => matches(rowOf(trial)));
  } catch (error) {
    if (error instanceof FilterError) throw new BadQuery(`filter: ${error.message}`);
    throw error;
  }
}

type Key = number | string | undefined;

function sorted(world: World, id: string, trials: TrialDetail[], order: string): TrialDetail[] {
  const name = order.replace(/^-/, '');
  const sign = order.startsWith('-') ? -1 : 1;
  const { mode } = world.sweep(id).metric;
  const read = (trial: TrialDetail): Key => {
    if (name.startsWith('config.')) return trial.config[name.slice(7)] as Key;
    if (name.startsWith('metrics.')) return numberOf(trial.metrics[name.slice(8)]);
    if (name === 'best') {
      const best = numberOf(trial.best);
      return best === undefined || mode === 'min' ? best : -best;
    }
    if (name === 'state') return trialStates.indexOf(trial.state);
    if (name === 'attempts') return trial.attempt_count;
    const value = trial[name as 'number'] as Key | null;
    return value ?? undefined;
  };
  const keys = new Map(trials.map((trial) => [trial.number, read(trial)]));
  return [...trials].sort((a, b) => {
    const [left, right] = [keys.get(a.number), keys.get(b.number)];
    if (left === undefined || right === undefined)
      return left === right ? a.number - b.number : left === undefined ? 1 : -1;
    return sign * (left < right ? -1 : left > right ? 1 : 0) || a.number - b.number;
  });
}

function numberOf(wire: Trial['best'] | undefined): number | undefined {
  const value = wire === null || wire === undefined ? NaN : fromWire(wire);
  return Number.isNaN(value) ? undefined : value;
}

function short(trial: TrialDetail): Trial {
  const {
    note: _n,
    rationale: _r,
    history: _h,
    attempts: _a,
    decisions: _d,
    checkpoints: _c,
    ...listed
  } = trial;
  return listed;
}
