import { gzipSync } from 'node:zlib';

import type { Clone } from '../../../web/src/api/contract';
import { better, fromWire } from '../../../web/src/model/numbers';
import type { Points, World } from './world';

/** Answers longer than this are compressed. */
export const leastZipped = 1024;
export const zipped = { 'Content-Encoding': 'gzip' };

export interface PackedTrial extends Points {
  number: number;
  segments: readonly { attempt: number; step: number }[];
  clones: readonly Clone[];
}

const headerBytes = 64;
const aligned = (bytes: number): number => Math.ceil(bytes / 8) * 8;

/** Curves in the binary form of the server. `next`: the first trial of the next page. */
export function encodeCurves(
  trials: readonly PackedTrial[],
  seq: number,
  next?: number,
): ArrayBuffer {
  const lists = new Map<string, number>();
  const starts = [0];
  const steps: number[] = [];
  const values: number[] = [];
  const table: number[] = [];
  for (const trial of trials) {
    const key = trial.steps.join();
    let list = lists.get(key);
    if (list === undefined) {
      lists.set(key, (list = lists.size));
      for (const step of trial.steps) steps.push(step);
      starts.push(steps.length);
    }
    table.push(trial.number, list, values.length, 0);
    for (const value of trial.values) values.push(value);
  }
  const segments = trials.flatMap(({ number, segments: parts }) =>
    parts.map(({ attempt, step }) => [number, attempt, step] as const),
  );
  const clones = trials.flatMap(({ number, clones: all }) =>
    all.map(({ donor, step }) => [number, donor, step] as const),
  );

  const sizes = [
    ...[4 * starts.length, 8 * steps.length, 16 * trials.length, 4 * values.length],
    ...[16 * segments.length, 16 * clones.length],
  ].map(aligned);
  const buffer = new ArrayBuffer(sizes.reduce((sum, size) => sum + size, headerBytes));
  const head = new DataView(buffer);
  new TextEncoder().encodeInto('ATCURVE1', new Uint8Array(buffer));
  head.setBigUint64(8, BigInt(seq), true);
  [
    ...[trials.length, lists.size, values.length, steps.length, clones.length, segments.length],
    next === undefined ? 0 : next + 1,
  ].forEach((field, i) => head.setUint32(16 + 4 * i, field, true));
  let at = headerBytes;
  const place = (part: number): number => {
    const begin = at;
    at += sizes[part] as number;
    return begin;
  };
  new Uint32Array(buffer, place(0), starts.length).set(starts);
  new Float64Array(buffer, place(1), steps.length).set(steps);
  new Uint32Array(buffer, place(2), table.length).set(table);
  new Float32Array(buffer, place(3), values.length).set(values);
  for (const marks of [segments, clones]) {
    const begin = place(marks === segments ? 4 : 5);
    marks.forEach(([trial, other, step], i) => {
      head.setUint32(begin + 16 * i, trial, true);
      head.setUint32(begin + 16 * i + 4, other, true);
      head.setFloat64(begin + 16 * i + 8, step, true);
    });
  }
  return buffer;
}

/** At most `most` points: the first, the last, and the lowest and highest of each part between. */
export function thinned({ steps, values }: Points, most: number): Points {
  const count = steps.length;
  if (count <= most) return { steps, values };
  const kept = new Set([0, count - 1]);
  const parts = Math.max(1, Math.floor((most - 2) / 2));
  for (let part = 0; part < parts; part += 1) {
    const begin = 1 + Math.floor((part * (count - 2)) / parts);
    const end = 1 + Math.floor(((part + 1) * (count - 2)) / parts);
    let low = begin;
    let high = begin;
    for (let i = begin; i < end; i += 1) {
      if ((values[i] as number) < (values[low] as number)) low = i;
      if ((values[i] as number) > (values[high] as number)) high = i;
    }
    kept.add(low).add(high);
  }
  const order = [...kept].sort((a, b) => a - b);
  return {
    steps: order.map((i) => steps[i] as number),
    values: order.map((i) => values[i] as number),
  };
}

const pageTrials = 1000;

/** Pages of curves, kept until the world changes. */
export class CurvePages {
  private readonly known = new Map<string, { seq: number; bytes: Buffer; zipped: boolean }>();

  answer(world: World, id: string, query: URLSearchParams): { bytes: Buffer; zipped: boolean } {
    const key = `${id} ${query}`;
    const found = this.known.get(key);
    // An answer may be a little older than the newest event, like the server's.
    if (found && world.seq - found.seq < 20) return found;
    const raw = Buffer.from(this.page(world, id, query));
    const isLarge = raw.length > leastZipped;
    const bytes = isLarge ? gzipSync(raw, { level: 1 }) : raw;
    const made = { seq: world.seq, bytes, zipped: isLarge };
    if (isLarge) this.known.set(key, made);
    return made;
  }

  private page(world: World, id: string, query: URLSearchParams): ArrayBuffer {
    const sweep = world.sweep(id);
    const metric = query.get('metric') ?? sweep.metric.name;
    const points = Number(query.get('points') ?? 256);
    const first = Number(query.get('first_step') ?? -Infinity);
    const last = Number(query.get('last_step') ?? Infinity);
    let trials = world.trialsOf(id);
    let next: number | undefined;
    if (query.has('trials')) {
      const wanted = new Set((query.get('trials') as string).split(',').map(Number));
      trials = trials.filter(({ number }) => wanted.has(number));
    } else if (query.has('best')) {
      const { mode } = sweep.metric;
      const value = (best: (typeof trials)[number]['best']): number => fromWire(best ?? 'nan');
      trials = [...trials]
        .sort((a, b) => (better(mode, value(a.best), value(b.best)) ? -1 : 1))
        .slice(0, Number(query.get('best')));
    } else {
      const from = Number(query.get('page_token') ?? 0);
      if (from + pageTrials < trials.length) next = from + pageTrials;
      trials = trials.slice(from, from + pageTrials);
    }
    const packed = trials.map((trial): PackedTrial => {
      const all = world.pointsOf(trial, metric);
      const from = all.steps.findIndex((step) => step >= first);
      const end = all.steps.findLastIndex((step) => step <= last) + 1;
      const within =
        from < 0
          ? { steps: [], values: [] }
          : { steps: all.steps.slice(from, end), values: all.values.slice(from, end) };
      const { steps, values } = thinned(within, points);
      const begin = steps[0];
      return {
        ...{ number: trial.number, steps, values },
        segments: begin === undefined ? [] : [{ attempt: 1, step: begin }],
        clones: world.clones.get(`${id}/${trial.number}`) ?? [],
      };
    });
    return encodeCurves(packed, world.seq, next);
  }
}
