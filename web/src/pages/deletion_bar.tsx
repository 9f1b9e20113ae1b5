import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';

import { api, hasServer } from '../api/client';
import type { ScheduledDeletion, Sweep } from '../api/contract';
import { mayChange } from '../live/session';
import { Icon } from '../ui/icons';
import { useSteering } from './steering';

/** Says that the server will delete the sweep, and when; with a button that undoes this. */
export function DeletionBar({ sweep, onUndone }: { sweep: Sweep; onUndone(): void }): JSX.Element {
  const { outcome, press } = useSteering();
  const undo = async (): Promise<{ effect: string }> => {
    const kept = await api.steerSweep(sweep.id, 'undelete');
    onUndone();
    return { effect: `${sweep.id}: ${kept.effect}` };
  };
  return (
    <>
      {sweep.deletion && hasServer() && (
        <div class="notice deletion-bar" data-testid="deletion">
          <Icon name="hourglass" />
          <span role="status">
            <b>{sweep.name || sweep.id} will be deleted.</b> {sweep.deletion.actor} asked for it.
          </span>
          <Countdown deletion={sweep.deletion} />
          {mayChange.value && (
            <button type="button" onClick={() => void press(undo)}>
              Undo<span class="visually-hidden"> the deletion of {sweep.name || sweep.id}</span>
            </button>
          )}
        </div>
      )}
      {outcome}
    </>
  );
}

// The clocks of the server and the browser may differ, so the time counts from the answer.
function Countdown({ deletion }: { deletion: ScheduledDeletion }): JSX.Element {
  const end = useMemo(() => Date.now() + deletion.seconds_left * 1000, [deletion]);
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 250);
    return () => clearInterval(timer);
  }, []);
  const left = Math.ceil((end - now) / 1000);
  return (
    <span class="deletion-time" aria-hidden="true">
      {left > 0 ? `${left} s left` : 'deleting…'}
    </span>
  );
}
