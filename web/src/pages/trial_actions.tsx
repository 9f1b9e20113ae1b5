import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';

import { api, type TrialVerb } from '../api/client';
import type { Sweep, TrialDetail } from '../api/contract';
import { mayChange } from '../live/session';
import { isLive } from '../model/states';
import { Confirm, Dialog, Field } from '../ui/dialog';
import { useSteering } from './steering';

interface Asked {
  sweep: Sweep;
  trial: TrialDetail;
  onYes(body: object): Promise<string>;
  onClose(): void;
}

/**
 * The head of a trial's page with its actions and their outcome. Events update the page.
 */
export function TrialActions({
  sweep,
  trial,
  neighbours,
  children,
}: {
  sweep: Sweep;
  trial: TrialDetail;
  neighbours: JSX.Element;
  children: ComponentChildren;
}): JSX.Element {
  const [asked, setAsked] = useState<TrialVerb>();
  const { outcome, answer } = useSteering();
  const act = (verb: TrialVerb, body?: object): Promise<string> =>
    answer(() => api.steerTrial(trial.sweep, trial.number, verb, body));
  const close = (): void => setAsked(undefined);
  return (
    <>
      <div class="page-head">
        {children}
        <div class="actions">
          {mayChange.value &&
            !sweep.deletion &&
            (isLive(trial.state) ? (
              <button type="button" class="danger-quiet" onClick={() => setAsked('kill')}>
                Kill…
              </button>
            ) : (
              <>
                <button type="button" onClick={() => setAsked('retry')}>
                  Retry…
                </button>
                <button type="button" onClick={() => setAsked('continue')}>
                  Continue…
                </button>
              </>
            ))}
          {neighbours}
        </div>
      </div>
      {outcome}
      {asked === 'kill' && (
        <Confirm
          title={`Kill trial ${trial.number}?`}
          text="It ends now. Training since its last checkpoint is lost."
          action="Kill now"
          danger
          onYes={() => act('kill')}
          onClose={close}
        />
      )}
      {asked === 'retry' && (
        <Retry sweep={sweep} trial={trial} onYes={(body) => act('retry', body)} onClose={close} />
      )}
      {asked === 'continue' && (
        <Continue
          sweep={sweep}
          trial={trial}
          onYes={(body) => act('continue', body)}
          onClose={close}
        />
      )}
    </>
  );
}

function Retry({ sweep, trial, onYes, onClose }: Asked): JSX.Element {
  const newest = trial.checkpoints.filter((checkpoint) => checkpoint.dropped === null).at(-1);
  // A completed trial has no steps left after its newest checkpoint.
  const anew = !sweep.external && (newest === undefined || trial.state === 'completed');
  return (
    <Dialog
      title={`Retry trial ${trial.number}?`}
      action="Retry"
      onYes={(typed) => onYes({ from_start: anew || 'from_start' in typed })}
      onClose={onClose}
    >
      {anew && (
        <p>
          It starts from the beginning.
          {newest && ' Its checkpoints that are not pinned are deleted.'}
        </p>
      )}
      {newest && !anew && !sweep.external && (
        <label class="check">
          <input type="checkbox" name="from_start" />
          <span>
            from the beginning instead of step {newest.step}; checkpoints that are not pinned are
            deleted
          </span>
        </label>
      )}
      <p class="muted dialog-note">
        Its count of restarts is reset.{!isLive(sweep.state) && ' The sweep will run again.'}
      </p>
    </Dialog>
  );
}

function Continue({ sweep, trial, onYes, onClose }: Asked): JSX.Element {
  const next = trial.step + 1;
  const [until] = useState(Math.max(next, sweep.max_step));
  return (
    <Dialog
      title={`Continue trial ${trial.number}?`}
      action="Continue"
      onYes={(typed) => onYes({ until: Number(typed.until) })}
      onClose={onClose}
    >
      <Field label="Until step" hint={`it has reached ${trial.step}`}>
        <input name="until" type="number" min={next} defaultValue={until} required />
      </Field>
      <p class="muted dialog-note">
        The scheduler does not judge it until then.
        {!isLive(sweep.state) && ' The sweep will run again.'}
      </p>
    </Dialog>
  );
}
