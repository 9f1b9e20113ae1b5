import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import { api } from '../api/client';
import type { Importance, Sweep } from '../api/contract';
import { explain } from '../live/session';
import { throttle } from '../live/throttle';
import { plural } from '../model/numbers';
import { sentence } from '../model/reason';
import { Pick } from '../ui/parts';

// The server computes it from all trials each time, and it changes slowly.
const refreshMs = 2000;

/** How important each parameter is for the chosen metric; read again when trials end. */
export function ImportanceCard({ sweep }: { sweep: Sweep }): JSX.Element {
  const [metric, setMetric] = useState(sweep.metric.name);
  const importance = useImportance(sweep, metric);
  return (
    <section class="panel card" aria-labelledby="importance-title" data-testid="importance">
      <div class="card-head">
        <h2 id="importance-title">Importance</h2>
        {sweep.metrics.length > 1 && (
          <Pick
            label="for"
            value={metric}
            options={sweep.metrics.map(({ name }) => name)}
            onChange={setMetric}
          />
        )}
      </div>
      {importance && <Bars importance={importance} />}
    </section>
  );
}

function Bars({ importance }: { importance: Importance }): JSX.Element {
  if (importance.reason) return <p class="muted small">{sentence(importance.reason)}</p>;
  const { best, trials, parameters } = importance;
  return (
    <>
      <table class="rungs">
        <tbody>
          {parameters.map(({ name, importance: share }) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>
                <span class="rung-bar" style={{ width: `${share * 100}%` }} />
              </td>
              <td class="number">{Math.round(share * 100)}%</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="muted small">
        Share of each parameter in what distinguishes the best {best} of {plural(trials, 'trial')}.
      </p>
    </>
  );
}

function useImportance(sweep: Sweep, metric: string): Importance | undefined {
  const [importance, setImportance] = useState<Importance>();
  const read = useRef<() => void>(() => undefined);
  useEffect(() => {
    const abort = new AbortController();
    read.current = throttle(refreshMs, async () => {
      if (abort.signal.aborted) return;
      try {
        setImportance(await api.importance(sweep.id, metric, abort.signal));
      } catch (error) {
        explain(error);
      }
    });
    return () => abort.abort();
  }, [sweep.id, metric]);
  const { completed, stopped, failed, paused } = sweep.trials;
  const over = completed + stopped + failed + paused;
  useEffect(() => read.current(), [sweep.id, metric, over]);
  return importance;
}
