import type { Sweep } from '../api/contract';
import { plural } from './numbers';
import { sentence } from './reason';
import { isLive } from './states';

/** A message for a user who looks elsewhere. */
export interface Notice {
  sweep: string;
  title: string;
  body: string;
}

type Watched = Pick<Sweep, 'id' | 'name' | 'state' | 'reason' | 'waiting_reason' | 'trials'>;

/** What happened between two reads of the sweeps: ends, failures and sweeps that wait. */
export function noticesBetween(before: readonly Watched[], after: readonly Watched[]): Notice[] {
  const earlier = new Map(before.map((sweep) => [sweep.id, sweep]));
  return after.flatMap((sweep) => {
    const known = earlier.get(sweep.id);
    const told = known && noticeOf(known, sweep);
    return told ? [{ sweep: sweep.id, ...told }] : [];
  });
}

function noticeOf(before: Watched, after: Watched): Omit<Notice, 'sweep'> | undefined {
  const name = after.name || after.id;
  const { failed } = after.trials;
  if (isLive(before.state) && !isLive(after.state)) {
    const failures = failed > 0 ? ` ${plural(failed, 'trial')} failed.` : '';
    return {
      title: `${name}: ${after.state}`,
      body: `${sentence(after.reason)}${failures}`.trim(),
    };
  }
  const more = failed - before.trials.failed;
  if (more > 0) {
    return {
      title: `${name}: ${plural(more, 'trial')} failed`,
      body: `${failed} have failed in all.`,
    };
  }
  if (!before.waiting_reason && after.waiting_reason) {
    return { title: `${name}: waiting`, body: sentence(after.waiting_reason) };
  }
  return undefined;
}
