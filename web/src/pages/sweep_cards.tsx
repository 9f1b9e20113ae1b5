import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';

import type { Best, Config, Sweep, SweepDetail } from '../api/contract';
import { orderedFront } from '../model/front';
import { formatConfig, formatCount, formatMetric, fromWire, plural } from '../model/numbers';
import { leftStates, rungCounts, rungSummary, type RungCount } from '../model/rungs';
import type { SweepModel } from '../model/sweep_model';
import { isLive } from '../model/states';
import { trialUrl } from '../router';
import { DataTable, type TableColumn } from '../ui/data_table';
import { CopyButton } from '../ui/parts';
import { UseModelButton } from './use_model_button';

/** The best configuration so far, with its checkpoint. */
export function BestCard({ sweep }: { sweep: SweepDetail }): JSX.Element {
  const { best, metric } = sweep;
  if (!best) {
    return (
      <section class="panel card" aria-labelledby="best-title">
        <h2 id="best-title">Best</h2>
        <p class="muted">
          {isLive(sweep.state)
            ? `No trial has reported ${metric.name} yet.`
            : `No trial has reported ${metric.name}.`}
        </p>
      </section>
    );
  }
  const others = Object.entries(best.metrics).filter(([name]) => name !== metric.name);
  return (
    <section class="panel card" aria-labelledby="best-title" data-testid="best">
      <div class="card-head">
        <h2 id="best-title">Best</h2>
        <a href={trialUrl(sweep.id, best.trial)}>trial {best.trial}</a>
        <span class="muted">at step {best.step}</span>
      </div>
      <p class="headline">
        <span class="headline-value">{formatMetric(fromWire(best.value))}</span>
        <span class="muted">{metric.name}</span>
      </p>
      {others.length > 0 && (
        <p class="muted small">
          {others.map(([name, value]) => `${name} ${formatMetric(fromWire(value))}`).join(' · ')}
        </p>
      )}
      <ConfigList config={best.config} order={sweep.parameters.map((each) => each.name)} />
      {best.checkpoint ? (
        <div class="path">
          <span class="small muted">
            checkpoint
            {best.checkpoint_step !== null &&
              best.checkpoint_step !== best.step &&
              ` at step ${best.checkpoint_step}`}
          </span>
          <div class="path-line">
            <code title={best.checkpoint}>
              <bdi>{best.checkpoint}</bdi>
            </code>
            <CopyButton text={best.checkpoint} what="checkpoint path" />
          </div>
          <UseModelButton
            key={best.checkpoint}
            sweep={sweep.id}
            trial={best.trial}
            path={best.checkpoint}
          />
        </div>
      ) : (
        <p class="muted small">No checkpoint yet.</p>
      )}
    </section>
  );
}

/** The front of a sweep with several metrics: no report is better than another in all of them. */
export function FrontCard({ sweep }: { sweep: Sweep }): JSX.Element {
  const front = orderedFront(sweep);
  return (
    <section class="panel card" aria-labelledby="front-title" data-testid="front">
      <h2 id="front-title">Pareto front</h2>
      {front.length === 0 ? (
        <p class="muted">No report counts yet.</p>
      ) : (
        <div class="table-scroll" tabIndex={0} role="region" aria-label="Table of the front">
          <DataTable
            class="narrow"
            columns={frontColumns(sweep)}
            rows={front}
            rowKey={({ trial, step }) => `${trial}-${step}`}
          />
        </div>
      )}
      {front.length > 0 && (
        <p class="muted small">
          {plural(front.length, 'report')} that no other beats in all metrics.
        </p>
      )}
    </section>
  );
}

function frontColumns({ id, metrics }: Sweep): TableColumn<Best>[] {
  return [
    { label: 'trial', cell: ({ trial }) => <a href={trialUrl(id, trial)}>{trial}</a> },
    { label: 'step', numeric: true, cell: ({ step }) => step },
    ...metrics.map(({ name, mode }, i) => ({
      label: (
        <>
          {name} <span aria-hidden="true">{mode === 'max' ? '↑' : '↓'}</span>
        </>
      ),
      numeric: true,
      hint: mode === 'max' ? 'maximised' : 'minimised',
      cell: ({ values }: Best) => formatMetric(fromWire(values[i] ?? 'nan')),
    })),
  ];
}

export function ConfigList({
  config,
  order,
}: {
  config: Config;
  order?: readonly string[] | undefined;
}): JSX.Element {
  const names = Object.keys(config);
  const rank = (name: string): number => {
    const at = order?.indexOf(name) ?? -1;
    return at < 0 ? names.length : at;
  };
  names.sort((a, b) => rank(a) - rank(b));
  return (
    <div class="config">
      <dl>
        {names.map((name) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd title={String(config[name])}>{formatConfig(config[name])}</dd>
          </div>
        ))}
      </dl>
      <CopyButton text={JSON.stringify(config)} what="configuration as JSON" />
    </div>
  );
}

/** One bar per rung: how many trials reached it, and what they did next. */
export function RungCard({ model }: { model: SweepModel }): JSX.Element {
  const { rungs } = model.sweep;
  // The counts need all trials, so they follow the table and not each event.
  const counts = useMemo(
    () => rungCounts(rungs, model.trials.values()),
    [model, rungs, model.revision],
  );
  const most = Math.max(1, ...counts.map((rung) => rung.reached));
  return (
    <section class="panel card" aria-labelledby="rungs-title" data-testid="rungs">
      <h2 id="rungs-title">Rungs</h2>
      <table class="rungs">
        <thead class="visually-hidden">
          <tr>
            <th scope="col">step</th>
            <th scope="col">next state</th>
            <th scope="col">trials that reached it</th>
          </tr>
        </thead>
        <tbody>
          {counts.map((rung) => (
            <tr key={rung.step}>
              <th scope="row">step {rung.step}</th>
              <td>
                {rung.reached > 0 && <RungBar rung={rung} most={most} />}
                <span class="muted small">{rungSummary(rung) || 'no trial yet'}</span>
              </td>
              <td class="number">{formatCount(rung.reached)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function RungBar({ rung, most }: { rung: RungCount; most: number }): JSX.Element {
  return (
    <span class="rung-bars" style={{ width: `${(rung.reached / most) * 100}%` }}>
      {rung.continued > 0 && <span class="fill-running" style={{ flexGrow: rung.continued }} />}
      {leftStates
        .filter((state) => rung.left[state] > 0)
        .map((state) => (
          <span key={state} class={`fill-${state}`} style={{ flexGrow: rung.left[state] }} />
        ))}
    </span>
  );
}
