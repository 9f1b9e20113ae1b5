import type { SweepCost } from '../../../web/src/api/contract';

/** The cost of a sweep without attempts. */
export const noCost: SweepCost = {
  sweep: 's1',
  time: '2026-11-21T10:00:00.000000Z',
  resource: 'worker',
  used_hours: 0,
  wasted_hours: 0,
  saved_hours: null,
  attempts: 0,
  running: 0,
  broken: 0,
  stopped: 0,
  price: null,
};
