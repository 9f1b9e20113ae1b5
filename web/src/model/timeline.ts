import type {
  ExecutorOccupancy,
  HeldAttempt,
  OccupancyShares,
  Timeline,
  TrialState,
} from '../api/contract';
import { parseTime } from './time';

/** A bar: an attempt on one slot. Times are in milliseconds. */
export interface Bar {
  attempt: HeldAttempt;
  begin: number;
  end: number;
  /** The ranks of the attempt on this slot. */
  ranks: number[];
}

/** A slot of an executor: a GPU, or a lane for ranks without a GPU. */
export interface Slot {
  executor: string;
  name: string;
  bars: Bar[];
}

/** The state whose colour and mark stand for the end of an attempt; undefined: it still runs. */
export function stateOfOutcome(outcome: string): TrialState | undefined {
  switch (outcome) {
    case '':
      return undefined;
    case 'finished':
      return 'completed';
    case 'stopped':
    case 'paused':
    case 'killed':
      return outcome;
    default:
      return 'failed'; // failed or lost
  }
}

/** The slots of all executors with the attempts that held them. Names of executors come in order. */
export function slotsOf(timeline: Timeline, executors: readonly ExecutorOccupancy[]): Slot[] {
  const until = parseTime(timeline.until);
  const hosts = new Map<string, { gpus: Map<number, Bar[]>; others: Bar[] }>();
  const hostOf = (name: string): { gpus: Map<number, Bar[]>; others: Bar[] } => {
    const known = hosts.get(name);
    if (known) return known;
    const made = { gpus: new Map<number, Bar[]>(), others: [] };
    hosts.set(name, made);
    return made;
  };
  for (const { executor, gpus } of executors) {
    const host = hostOf(executor);
    gpus.forEach((_, gpu) => host.gpus.set(gpu, []));
  }
  for (const attempt of timeline.attempts) {
    const begin = parseTime(attempt.begin);
    const end = attempt.end === null ? until : parseTime(attempt.end);
    for (const { rank, executor, gpus } of attempt.ranks) {
      const host = hostOf(executor);
      if (gpus.length === 0) addRank(host.others, attempt, begin, end, rank);
      for (const gpu of gpus) {
        const bars = host.gpus.get(gpu) ?? [];
        host.gpus.set(gpu, bars);
        addRank(bars, attempt, begin, end, rank);
      }
    }
  }
  const slots: Slot[] = [];
  for (const executor of [...hosts.keys()].sort()) {
    const { gpus, others } = hostOf(executor);
    for (const gpu of [...gpus.keys()].sort((a, b) => a - b)) {
      const lanes = lanesOf(gpus.get(gpu) ?? []);
      // Trials that share a GPU have a lane each.
      lanes.forEach((bars, i) => slots.push({ executor, name: i === 0 ? `GPU ${gpu}` : '', bars }));
    }
    if (others.length > 0 || gpus.size === 0) {
      lanesOf(others).forEach((bars, i) =>
        slots.push({ executor, name: i === 0 ? 'CPUs' : '', bars }),
      );
    }
  }
  return slots;
}

// Ranks of one attempt on one slot are one bar.
function addRank(
  bars: Bar[],
  attempt: HeldAttempt,
  begin: number,
  end: number,
  rank: number,
): void {
  const last = bars.at(-1);
  if (last?.attempt === attempt) last.ranks.push(rank);
  else bars.push({ attempt, begin, end, ranks: [rank] });
}

/** Puts bars that overlap into different lanes; there is at least one lane. */
export function lanesOf(bars: readonly Bar[]): Bar[][] {
  const lanes: Bar[][] = [];
  for (const bar of [...bars].sort((a, b) => a.begin - b.begin)) {
    const free = lanes.find((lane) => (lane.at(-1)?.end ?? -Infinity) <= bar.begin);
    if (free) free.push(bar);
    else lanes.push([bar]);
  }
  return lanes.length > 0 ? lanes : [[]];
}

/** A number for each sweep, by which it gets its colour: the oldest sweep of the list has 0. */
export function sweepOrder(attempts: readonly HeldAttempt[]): Map<string, number> {
  const number = (id: string): number => Number(id.slice(1));
  const ids = [...new Set(attempts.map(({ sweep }) => sweep))];
  ids.sort((a, b) => number(a) - number(b));
  return new Map(ids.map((id, i) => [id, i]));
}

const minute = 60_000;
const tickSteps = [1, 2, 5, 10, 30, 60, 120, 360, 720, 1440].map((minutes) => minutes * minute);

/** Round times between two times, at most about `most` of them, in the time zone of the browser. */
export function timeTicks(since: number, until: number, most: number): number[] {
  const step = tickSteps.find((each) => (until - since) / each <= most) ?? 2 * 1440 * minute;
  const zone = new Date(since).getTimezoneOffset() * minute;
  const ticks: number[] = [];
  for (let at = Math.ceil((since - zone) / step) * step + zone; at <= until; at += step) {
    ticks.push(at);
  }
  return ticks;
}

/** "14:05", or with the day: "29 Nov 14:00". */
export function formatTick(time: number, withDay: boolean): string {
  const at = new Date(time);
  const clock = [at.getHours(), at.getMinutes()].map((n) => String(n).padStart(2, '0')).join(':');
  if (!withDay) return clock;
  return `${at.getDate()} ${at.toLocaleString('en-GB', { month: 'short' })} ${clock}`;
}

export interface OccupancyRow {
  executor: string;
  slots: string;
  shares: OccupancyShares;
}

/** A row for each executor, and for each GPU if it has several. */
export function occupancyRows(executors: readonly ExecutorOccupancy[]): OccupancyRow[] {
  return executors.flatMap(({ executor, share, gpus }) => [
    { executor, slots: gpus.length > 0 ? 'all GPUs' : 'CPUs', shares: share },
    ...(gpus.length > 1
      ? gpus.map((shares, gpu) => ({ executor, slots: `GPU ${gpu}`, shares }))
      : []),
  ]);
}
