import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';

import { api, type SweepVerb } from '../api/client';
import type { Config, SweepDetail } from '../api/contract';
import { isLive } from '../model/states';
import { confirmation } from '../model/summary';
import { navigate } from '../router';
import { Confirm } from '../ui/dialog';
import { useSteering } from './steering';
import { EnqueueDialog, ExtendDialog } from './sweep_dialogs';

/** The head of a sweep's page with its actions and their outcome. */
export function SweepActions({
  sweep,
  onActed,
  children,
}: {
  sweep: SweepDetail;
  onActed(): void;
  children: ComponentChildren;
}): JSX.Element {
  const [asked, setAsked] = useState<'stop' | 'kill' | 'delete' | 'extend' | 'enqueue'>();
  const { outcome, press, answer } = useSteering();
  const steer = async (verb: SweepVerb, body?: object): Promise<{ effect: string }> => {
    const steered = await api.steerSweep(sweep.id, verb, body);
    onActed();
    return steered;
  };
  const enqueue = async (config: Config): Promise<{ effect: string }> => {
    const { number } = await api.enqueue(sweep.id, config);
    return { effect: `trial ${number} is enqueued; it starts before new proposals` };
  };
  const remove = async (): Promise<{ effect: string }> => {
    const deleted = await api.deleteSweep(sweep.id);
    navigate('/');
    return deleted;
  };
  const close = (): void => setAsked(undefined);
  const name = sweep.name || sweep.id;
  const live = isLive(sweep.state);
  const starts = live && !sweep.end_state;
  return (
    <>
      <div class="page-head">
        {children}
        <div class="actions">
          {starts && sweep.state === 'running' && (
            <button type="button" onClick={() => void press(() => steer('pause'))}>
              Pause
            </button>
          )}
          {sweep.state === 'paused' && (
            <button type="button" onClick={() => void press(() => steer('resume'))}>
              Resume
            </button>
          )}
          {starts && (
            <button type="button" onClick={() => setAsked('enqueue')}>
              Enqueue…
            </button>
          )}
          {(starts || !live) && (
            <button type="button" onClick={() => setAsked('extend')}>
              Extend…
            </button>
          )}
          {starts && (
            <button type="button" onClick={() => setAsked('stop')}>
              Stop…
            </button>
          )}
          {live && (
            <button type="button" class="danger-quiet" onClick={() => setAsked('kill')}>
              Kill…
            </button>
          )}
          {!live && (
            <button type="button" class="danger-quiet" onClick={() => setAsked('delete')}>
              Delete…
            </button>
          )}
        </div>
      </div>
      {outcome}
      {(asked === 'stop' || asked === 'kill') && (
        <Confirm
          title={`${asked === 'kill' ? 'Kill' : 'Stop'} ${name}?`}
          text={confirmation(asked, sweep)}
          action={asked === 'kill' ? 'Kill now' : 'Stop the sweep'}
          danger={asked === 'kill'}
          onYes={() => answer(() => steer(asked))}
          onClose={close}
        />
      )}
      {asked === 'delete' && (
        <Confirm
          title={`Delete ${name}?`}
          text={confirmation(asked, sweep)}
          action="Delete"
          danger
          onYes={() => answer(remove)}
          onClose={close}
        />
      )}
      {asked === 'extend' && (
        <ExtendDialog
          sweep={sweep}
          onYes={(limits) => answer(() => steer('extend', limits))}
          onClose={close}
        />
      )}
      {asked === 'enqueue' && (
        <EnqueueDialog
          sweep={sweep}
          onYes={(config) => answer(() => enqueue(config))}
          onClose={close}
        />
      )}
    </>
  );
}
