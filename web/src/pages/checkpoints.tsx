import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { api } from '../api/client';
import type { Checkpoint, TrialDetail } from '../api/contract';
import { mayChange } from '../live/session';
import { formatBytes } from '../model/numbers';
import { sentence } from '../model/reason';
import { Confirm } from '../ui/dialog';
import { CopyButton } from '../ui/parts';
import { useSteering } from './steering';
import { UseModelButton } from './use_model_button';

/** The checkpoints of a trial: kept, pinned, or deleted with the reason. */
export function Checkpoints({ trial }: { trial: TrialDetail }): JSX.Element {
  const [asked, setAsked] = useState<Checkpoint>();
  const { outcome, press, answer } = useSteering();
  const pin = (checkpoint: Checkpoint, pinned: boolean): Promise<{ effect: string }> =>
    api.pinCheckpoint(trial.sweep, trial.number, checkpoint, pinned);
  return (
    <section class="panel card" aria-labelledby="checkpoints-title" data-testid="checkpoints">
      <h2 id="checkpoints-title">Checkpoints</h2>
      {outcome}
      {trial.checkpoints.length === 0 && <p class="muted">None saved yet.</p>}
      <ul class="checkpoints" tabIndex={0} aria-label="Checkpoints">
        {trial.checkpoints.map((checkpoint) => (
          <li key={`${checkpoint.attempt}-${checkpoint.step}`}>
            {checkpoint.dropped === null ? (
              <Kept
                checkpoint={checkpoint}
                onPin={() => void press(() => pin(checkpoint, true))}
                onUnpin={() => setAsked(checkpoint)}
              />
            ) : (
              <div class="muted">
                <b>step {checkpoint.step}</b> attempt {checkpoint.attempt} · deleted.{' '}
                {sentence(checkpoint.reason)}
              </div>
            )}
          </li>
        ))}
      </ul>
      {trial.checkpoints.some(({ dropped }) => dropped === null) && (
        <UseModelButton sweep={trial.sweep} trial={trial.number} />
      )}
      {asked && (
        <Confirm
          title={`Unpin the checkpoint at step ${asked.step}?`}
          text="Its files are deleted unless the sweep file keeps it."
          action="Unpin"
          onYes={() => answer(() => pin(asked, false))}
          onClose={() => setAsked(undefined)}
        />
      )}
    </section>
  );
}

function Kept({
  checkpoint,
  onPin,
  onUnpin,
}: {
  checkpoint: Checkpoint;
  onPin(): void;
  onUnpin(): void;
}): JSX.Element {
  const { step, attempt, pinned } = checkpoint;
  return (
    <>
      <div class="checkpoint-head">
        <span>
          <b>step {step}</b>{' '}
          <span class="muted">
            attempt {attempt} · {formatBytes(checkpoint.bytes)}
            {pinned && ' · pinned'}
          </span>
        </span>
        {mayChange.value && (
          <button
            type="button"
            class="quiet"
            aria-label={`${pinned ? 'Unpin' : 'Pin'} the checkpoint at step ${step}`}
            onClick={pinned ? onUnpin : onPin}
          >
            {pinned ? 'Unpin…' : 'Pin'}
          </button>
        )}
      </div>
      <div class="path-line">
        <code title={`${checkpoint.path}\n${checkpoint.digest}`}>
          <bdi>{checkpoint.path}</bdi>
        </code>
        <CopyButton text={checkpoint.path} what={`path of the checkpoint at step ${step}`} />
      </div>
    </>
  );
}
