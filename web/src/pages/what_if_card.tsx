import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { api } from '../api/client';
import type { Replay, Sweep } from '../api/contract';
import { explain, mayChange } from '../live/session';
import { changedTrials, comparisons, unknownSentence, winnerSentence } from '../model/replay';
import { trialUrl } from '../router';
import { DataTable } from '../ui/data_table';
import { Pick } from '../ui/parts';

const schedulers = ['asha', 'pasha', 'extrapolate', 'hyperband', 'median', 'percentile', 'fifo'];
const takesFactor = (name: string): boolean => !['median', 'percentile', 'fifo'].includes(name);
const shownMost = 100;

/** Replays the sweep under another scheduler with the reports of its trials. */
export function WhatIfCard({ sweep }: { sweep: Sweep }): JSX.Element | null {
  const [name, setName] = useState(
    () => schedulers.find((other) => other !== sweep.scheduler) ?? 'asha',
  );
  const [factor, setFactor] = useState(3);
  const [busy, setBusy] = useState(false);
  const [replay, setReplay] = useState<Replay>();
  const [trouble, setTrouble] = useState('');
  const ask = async (): Promise<void> => {
    setBusy(true);
    setTrouble('');
    try {
      const options = takesFactor(name) ? { reduction_factor: factor } : {};
      setReplay(await api.replay(sweep.id, { scheduler: { name, ...options } }));
    } catch (error) {
      setReplay(undefined);
      setTrouble(explain(error)?.message ?? '');
    }
    setBusy(false);
  };
  // A replay is a POST, which the server refuses for viewers.
  if (!mayChange.value) return null;
  return (
    <section class="panel card" aria-labelledby="what-if-title" data-testid="what-if">
      <h2 id="what-if-title">What if</h2>
      <div class="controls">
        <Pick label="under" value={name} options={schedulers} onChange={setName} />
        {takesFactor(name) && (
          <label class="pick">
            factor
            <input
              type="number"
              min={2}
              max={100}
              value={factor}
              style={{ width: '3.5em' }}
              onInput={(event) => setFactor(Number(event.currentTarget.value))}
            />
          </label>
        )}
        <button type="button" class="button" disabled={busy} onClick={() => void ask()}>
          Replay
        </button>
      </div>
      {trouble && <p class="failure">{trouble}</p>}
      {replay && <Answer sweep={sweep.id} replay={replay} />}
      {!replay && !trouble && (
        <p class="muted small">
          Replays the recorded reports under another scheduler: its cost, and the trials that it
          stops.
        </p>
      )}
    </section>
  );
}

function Answer({ sweep, replay }: { sweep: string; replay: Replay }): JSX.Element {
  const changed = changedTrials(replay);
  const unknown = unknownSentence(replay);
  return (
    <>
      <DataTable
        class="narrow"
        columns={[
          { label: '', cell: (row) => row.name },
          { label: 'recorded', cell: (row) => row.recorded },
          { label: String(replay.scheduler.name), cell: (row) => row.replayed },
        ]}
        rows={comparisons(replay)}
        rowKey={(row) => row.name}
      />
      <p class="small">{winnerSentence(replay)}</p>
      {unknown && <p class="muted small">{unknown}</p>}
      {changed.length > 0 && (
        <details>
          <summary class="small">
            {changed.length} of {replay.trials.length} trials end differently
          </summary>
          <ul class="small">
            {changed.slice(0, shownMost).map((trial) => (
              <li key={trial.number} title={trial.why}>
                <a href={trialUrl(sweep, trial.number)}>trial {trial.number}</a>: {trial.recorded} →{' '}
                {trial.replayed}
              </li>
            ))}
            {changed.length > shownMost && (
              <li class="muted">and {changed.length - shownMost} more</li>
            )}
          </ul>
        </details>
      )}
    </>
  );
}
