import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { api } from '../../api/client';
import type { SimulatedOutcome } from '../../api/contract';
import { executors, explain } from '../../live/session';
import { forecastText } from '../../model/editor/forecast';

/** Simulates the sweep to estimate its time and cost. */
export function Forecast({ file, directory }: { file: string; directory: string }): JSX.Element {
  const [slots, setSlots] = useState(() => String(slotsOfExecutors()));
  const [seconds, setSeconds] = useState('1');
  const [outcome, setOutcome] = useState<{ of: string; outcome: SimulatedOutcome }>();
  const [trouble, setTrouble] = useState('');
  const [busy, setBusy] = useState(false);
  const simulate = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setTrouble('');
    try {
      const assumed = { directory, slots: Number(slots), step_seconds: Number(seconds) };
      setOutcome({ of: file, outcome: await api.simulate(file, assumed) });
    } catch (error) {
      setTrouble(explain(error)?.message ?? '');
    }
    setBusy(false);
  };
  return (
    <section class="panel card" aria-labelledby="forecast-title" data-testid="forecast">
      <h2 id="forecast-title">Forecast</h2>
      <form class="controls" onSubmit={(event) => void simulate(event)}>
        <label class="pick">
          slots
          <input
            type="number"
            min={1}
            max={100_000}
            required
            value={slots}
            onInput={(event) => setSlots(event.currentTarget.value)}
          />
        </label>
        <label class="pick">
          seconds per step
          <input
            type="number"
            min={0.000001}
            step="any"
            required
            value={seconds}
            onInput={(event) => setSeconds(event.currentTarget.value)}
          />
        </label>
        <button type="submit" disabled={busy}>
          Simulate
        </button>
      </form>
      {trouble && <p class="failure">{trouble}</p>}
      {outcome && !trouble && (
        <p class={outcome.of === file ? '' : 'muted'} role="status">
          {forecastText(outcome.outcome)}
          {outcome.of !== file && ' The file has changed since.'}
        </p>
      )}
      <p class="muted small">
        An estimate: the sweep runs in virtual time with learning curves of a model.
      </p>
    </section>
  );
}

/** The GPUs, or else the CPUs, of the executors that are online. */
function slotsOfExecutors(): number {
  const online = (executors.peek() ?? []).filter(({ state }) => state === 'online');
  const sum = (of: 'cpus' | 'gpus'): number => online.reduce((all, each) => all + each[of], 0);
  return sum('gpus') || sum('cpus') || 8;
}
