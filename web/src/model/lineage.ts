import type { Branch } from '../api/contract';

/** The steps that one trial trained in one piece. */
export interface Stretch {
  from: number;
  to: number;
  /** The trial in which the weights began. */
  founder: number;
}

/** A trial as a lane over steps. */
export interface Lane {
  trial: number;
  stretches: Stretch[];
  /** The steps at which it was promoted. */
  promotions: number[];
  /** Where it continued from another trial. */
  clones: { donor: number; step: number; founder: number }[];
  /** How many trials continued from its checkpoints. */
  children: number;
}

/**
 * The lanes of the trials that took part in a clone or a promotion, by number. `branches` are in the order
 * of time; `steps` has the last step of each trial.
 *
 * A trial that continues from a donor has the donor's founder from then on. If it had gone further than the
 * donor's checkpoint, it trains these steps again.
 */
export function lanesOf(branches: readonly Branch[], steps: ReadonlyMap<number, number>): Lane[] {
  const lanes = new Map<number, Lane>();
  const laneOf = (trial: number): Lane => {
    let lane = lanes.get(trial);
    if (!lane) {
      const whole = { from: 0, to: steps.get(trial) ?? 0, founder: trial };
      lane = { trial, stretches: [whole], promotions: [], clones: [], children: 0 };
      lanes.set(trial, lane);
    }
    return lane;
  };
  for (const { trial, donor, step } of branches) {
    const lane = laneOf(trial);
    if (donor === null) {
      lane.promotions.push(step);
      continue;
    }
    const from = laneOf(donor);
    if (donor !== trial) from.children += 1;
    const { founder } = founderAt(from, step);
    lane.clones.push({ donor, step, founder });
    const last = lane.stretches.at(-1) as Stretch;
    const to = Math.max(last.to, step);
    // Later weights replace what the trial had trained beyond the checkpoint.
    lane.stretches = lane.stretches.filter((each) => each.from < step);
    const cut = lane.stretches.at(-1);
    if (cut) cut.to = step;
    lane.stretches.push({ from: step, to, founder });
  }
  return [...lanes.values()].sort((a, b) => a.trial - b.trial);
}

function founderAt({ stretches }: Lane, step: number): Stretch {
  const reached = stretches.filter(({ from }) => from < step);
  return (reached.at(-1) ?? stretches[0]) as Stretch;
}

/** The trials whose weights some lane still trains at its end, and how many lanes those are. */
export function founders(lanes: readonly Lane[]): { founder: number; lanes: number }[] {
  const counts = new Map<number, number>();
  for (const { stretches } of lanes) {
    const founder = stretches.at(-1)?.founder;
    if (founder !== undefined) counts.set(founder, (counts.get(founder) ?? 0) + 1);
  }
  return [...counts]
    .map(([founder, count]) => ({ founder, lanes: count }))
    .sort((a, b) => b.lanes - a.lanes || a.founder - b.founder);
}
