import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';

import { api, hasServer, type SweepVerb } from '../api/client';
import type { Config, SweepDetail } from '../api/contract';
import { mayChange } from '../live/session';
import { isLive } from '../model/states';
import { confirmation, deletionDelaySeconds } from '../model/summary';
import { editUrl, navigate, newSweepUrl } from '../router';
import { Confirm } from '../ui/dialog';
import { saveAs } from '../ui/export/save_as';
import { useSteering } from './steering';
import { EnqueueDialog, ExtendDialog, type EnqueueStart } from './sweep_dialogs';

const startsTrials = ({ state, end_state }: SweepDetail): boolean => isLive(state) && !end_state;
const isClosed = ({ deletion }: SweepDetail): boolean => !mayChange.value || deletion !== undefined;

/** Whether the sweep takes configurations from this user. */
export const mayEnqueue = (sweep: SweepDetail): boolean => startsTrials(sweep) && !isClosed(sweep);

/** The head of a sweep's page with its actions and their outcome. */
export function SweepActions({
  sweep,
  enqueueing,
  onEnqueue,
  onActed,
  children,
}: {
  sweep: SweepDetail;
  /** Set while the dialog to enqueue is open. */
  enqueueing: EnqueueStart | undefined;
  onEnqueue(start: EnqueueStart | undefined): void;
  onActed(): void;
  children: ComponentChildren;
}): JSX.Element {
  const [asked, setAsked] = useState<'stop' | 'kill' | 'delete' | 'extend'>();
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
    const deleted = await api.deleteSweep(sweep.id, deletionDelaySeconds);
    navigate('/');
    return deleted;
  };
  const download = async (): Promise<{ effect: string }> => {
    const file = `${sweep.id}.html`;
    saveAs(await api.report(sweep.id), file);
    return { effect: `the report is in ${file}; a browser opens it without a server` };
  };
  const close = (): void => setAsked(undefined);
  const name = sweep.name || sweep.id;
  const live = isLive(sweep.state);
  const starts = startsTrials(sweep);
  const report = (
    <button type="button" onClick={() => void press(download)}>
      Download report
    </button>
  );
  return (
    <>
      <div class="page-head">
        {children}
        {isClosed(sweep) && hasServer() && <div class="actions">{report}</div>}
        {!isClosed(sweep) && (
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
            <a class="button" href={editUrl(sweep.id)}>
              Edit…
            </a>
            <a class="button" href={newSweepUrl(sweep.id)}>
              Clone…
            </a>
            {report}
            {starts && (
              <button type="button" onClick={() => onEnqueue(bestStart(sweep))}>
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
        )}
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
      {enqueueing && (
        <EnqueueDialog
          sweep={sweep}
          start={enqueueing}
          onYes={(config) => answer(() => enqueue(config))}
          onClose={() => onEnqueue(undefined)}
        />
      )}
    </>
  );
}

function bestStart({ best }: SweepDetail): EnqueueStart {
  return best
    ? { config: best.config, source: `the best trial, ${best.trial}` }
    : { config: {}, source: '' };
}
