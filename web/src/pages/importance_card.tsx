import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { api } from '../api/client';
import type { Importance, Metric, ParameterImportance, Sweep } from '../api/contract';
import { formatPercent, formatStep, plural } from '../model/numbers';
import { sentence } from '../model/reason';
import { isLive } from '../model/states';
import { Pick } from '../ui/parts';
import { useAnswer } from './use_answer';

// The server computes it from all trials each time, and it changes slowly.
const refreshMs = 2000;
const whileRunningMs = 20_000;

type Mode = Metric['mode'];

/** How important each parameter is for a metric; read again when trials end, and while they run. */
export function ImportanceCard({ sweep }: { sweep: Sweep }): JSX.Element {
  const [metric, setMetric] = useState(sweep.metric.name);
  const [mode, setMode] = useState<Mode>('min');
  const isObjective = sweep.metrics.some(({ name }) => name === metric);
  const importance = useImportance(sweep, metric, isObjective ? undefined : mode);
  const names = metricNames(sweep);
  return (
    <section class="panel card" aria-labelledby="importance-title" data-testid="importance">
      <div class="card-head card-head-picks">
        <h2 id="importance-title">Importance</h2>
        {names.length > 1 && (
          <Pick label="for" value={metric} options={names} onChange={setMetric} />
        )}
        {!isObjective && (
          <Pick
            label="best is"
            value={mode}
            options={[
              ['min', 'low'],
              ['max', 'high'],
            ]}
            onChange={(chosen) => setMode(chosen as Mode)}
          />
        )}
      </div>
      {importance && <Bars importance={importance} />}
    </section>
  );
}

// Objectives first, then what trials report and log.
function metricNames(sweep: Sweep): string[] {
  const reported = Object.keys(sweep.best?.metrics ?? {});
  const others = [...new Set([...reported, ...sweep.logged_metrics])].sort();
  const objectives = sweep.metrics.map(({ name }) => name);
  const wanted = others.filter(
    (name) => !objectives.includes(name) && api.hasImportance(sweep.id, name, 'min'),
  );
  return [...objectives, ...wanted];
}

const percent = (share: number): number => Math.round(share * 100);

function Bars({ importance }: { importance: Importance }): JSX.Element {
  if (importance.reason) return <p class="muted small">{sentence(importance.reason)}</p>;
  const { best, trials, step, parameters } = importance;
  return (
    <>
      <table class="rungs">
        <thead class="visually-hidden">
          <tr>
            <th scope="col">parameter</th>
            <th scope="col">bar</th>
            <th scope="col">share</th>
            <th scope="col">interval</th>
          </tr>
        </thead>
        <tbody>
          {parameters.map((parameter) => (
            <tr key={parameter.name}>
              <th scope="row">{parameter.name}</th>
              <td>
                <Bar parameter={parameter} />
              </td>
              <td class="number">{formatPercent(parameter.importance)}</td>
              <td class="number interval">
                {percent(parameter.low)}–{percent(parameter.high)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="muted small">
        Share of each parameter in what distinguishes the best {best} of {plural(trials, 'trial')}{' '}
        up to step {formatStep(step)}. The thin line is the interval: parameters whose intervals
        overlap may change places.
      </p>
    </>
  );
}

function Bar({ parameter }: { parameter: ParameterImportance }): JSX.Element {
  const { importance, low, high } = parameter;
  return (
    <span class="share" aria-hidden="true">
      <span class="rung-bar" style={{ width: `${importance * 100}%` }} />
      <span
        class="share-interval"
        style={{ left: `${low * 100}%`, width: `${(high - low) * 100}%` }}
      />
    </span>
  );
}

function useImportance(
  sweep: Sweep,
  metric: string,
  mode: Mode | undefined,
): Importance | undefined {
  const { completed, stopped, failed, paused } = sweep.trials;
  return useAnswer((signal) => api.importance(sweep.id, metric, mode, signal), {
    about: [sweep.id, metric, mode],
    changes: [completed + stopped + failed + paused],
    leastMs: refreshMs,
    // Trials that run count as soon as they reach the common step.
    everyMs: isLive(sweep.state) ? whileRunningMs : undefined,
  }).answer;
}
