import type { ComponentChildren, JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';

import type { SweepDetail, TrialDetail } from '../../api/contract';
import { LiveComparison, type ComparedTrial } from '../../live/comparison_live';
import { compareObjects, mostCompared, parseNumbers } from '../../model/compare';
import { formatBytes, formatConfig, formatMetric, fromWire, plural } from '../../model/numbers';
import { attemptOutcome, originSentence, splitFailure, trialSentence } from '../../model/reason';
import { rowOf } from '../../model/sweep_model';
import { formatDuration } from '../../model/time';
import { curveOf, metricNames } from '../../model/trial_model';
import { compareUrl, navigate, place, setQuery, sweepUrl, trialUrl } from '../../router';
import { lineToken } from '../../ui/colors';
import { CurveChart } from '../../ui/curve_chart';
import type { Line } from '../../ui/curve_plot';
import { StateLabel } from '../../ui/icons';
import { Loading, Pick, Trouble, When } from '../../ui/parts';
import { paintEpoch, token } from '../../ui/theme';
import { useLive } from '../use_live';
import '../../styles/compare.css';
import { ComparedTable, FactTable, type Fact } from './compared_table';
import { LogsTogether } from './logs_together';
import { AddField, ComparedChips } from './picked';

/** Up to five trials of a sweep next to each other. */
export function CompareTrials({ sweep: id }: { sweep: string }): JSX.Element {
  const numbers = parseNumbers(place.value.query.get('trials'));
  const live = useLive(() => new LiveComparison(id, numbers), [id, numbers.join()]);
  const sweep = live?.sweep.value;
  const change = (next: readonly number[]): void =>
    navigate(compareUrl(id, next.map(String), place.peek().query));
  if (live?.error.value && !sweep) return <Trouble error={live.error.value} />;
  if (!live || !sweep) return <Loading what={`trials of ${id}`} />;
  const missing = live.missing.value;
  const compared = numbers.flatMap((number) => live.trials.value.get(number) ?? []);
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href="/">Sweeps</a> <span aria-hidden="true">/</span>{' '}
        <a href={sweepUrl(id)}>{sweep.name || id}</a>
      </nav>
      <div class="page-head">
        <h1>Compare {plural(compared.length, 'trial')}</h1>
        <ComparedChips
          items={compared.map(({ trial: { number } }, i) => ({
            key: String(number),
            name: `trial ${number}`,
            href: trialUrl(id, number),
            color: lineToken(i),
          }))}
          onRemove={(key) => change(numbers.filter((number) => String(number) !== key))}
        />
        {numbers.length < mostCompared && (
          <AddField label="trial" onAdd={(text) => change([...numbers, Number(text)])} />
        )}
      </div>
      {missing.length > 0 && (
        <p class="notice notice-bad" role="alert">
          The sweep has no trial {missing.join(' and no trial ')}.
        </p>
      )}
      {compared.length === 0 ? (
        <p class="muted">Add the number of a trial, or choose rows in the table of the sweep.</p>
      ) : (
        <Comparison sweep={sweep} compared={compared} />
      )}
    </>
  );
}

function Comparison({
  sweep,
  compared,
}: {
  sweep: SweepDetail;
  compared: readonly ComparedTrial[];
}): JSX.Element {
  const trials = compared.map(({ trial }) => trial);
  const heads = trials.map(({ number }, i) => (
    <a key={number} href={trialUrl(sweep.id, number)}>
      <span class="line-swatch" style={{ background: `var(${lineToken(i)})` }} /> trial {number}
    </a>
  ));
  const order = sweep.parameters.map(({ name }) => name);
  return (
    <>
      <section class="panel" aria-label="Learning curves">
        <Curves sweep={sweep} compared={compared} />
      </section>
      <section class="panel card" aria-labelledby="config-title" data-testid="configurations">
        <h2 id="config-title">Configuration</h2>
        <ComparedTable
          heads={heads}
          rows={compareObjects(
            trials.map(({ config }) => config),
            order,
          )}
          noun="parameter"
          format={formatConfig}
        />
      </section>
      <section class="panel card" aria-labelledby="course-title" data-testid="course">
        <h2 id="course-title">Course</h2>
        <Course sweep={sweep} trials={trials} heads={heads} />
      </section>
      <LogsTogether trials={trials} />
    </>
  );
}

function Curves({
  sweep,
  compared,
}: {
  sweep: SweepDetail;
  compared: readonly ComparedTrial[];
}): JSX.Element {
  const { query } = place.value;
  const [hovered, setHovered] = useState<number>();
  const names = [...new Set(compared.flatMap(({ trial }) => metricNames(trial, sweep)))];
  const wanted = query.get('metric');
  const metric = wanted !== null && names.includes(wanted) ? wanted : sweep.metric.name;
  const epoch = paintEpoch.value;
  const lines = useMemo(
    () =>
      compared.flatMap(({ trial, logged }, i): Line[] => {
        const curve = curveOf(trial.history, logged, trial.attempts, metric);
        if (curve.length === 0) return [];
        const { number, state } = trial;
        const color = token(lineToken(i));
        return [{ number, curve, color, faint: false, live: state === 'running' }];
      }),
    [compared.map(({ trial }) => trial), metric, epoch].flat(),
  );
  return (
    <CurveChart
      lines={lines}
      version={compared.reduce((n, each) => n + each.trial.history.length + each.logged.length, 0)}
      metric={metric}
      time={sweep.time_attr || 'step'}
      logarithmic={query.get('y') === 'log'}
      rungs={sweep.rungs}
      maxStep={sweep.max_step}
      best={undefined}
      selected={undefined}
      hovered={hovered}
      summary={curvesText(lines, metric)}
      onHover={setHovered}
      onSelect={(number) => navigate(trialUrl(sweep.id, number))}
      onLogarithmic={(on) => setQuery({ y: on ? 'log' : undefined })}
      controls={
        names.length > 1 && (
          <Pick
            label="metric"
            value={metric}
            options={names}
            onChange={(chosen) => setQuery({ metric: chosen })}
          />
        )
      }
    />
  );
}

function curvesText(lines: readonly Line[], metric: string): string {
  if (lines.length === 0) return `None of these trials has reported ${metric} yet.`;
  const last = lines.map(
    ({ number, curve }) => `trial ${number} ${formatMetric(curve.values.at(-1) ?? NaN)}`,
  );
  return `Last ${metric}: ${last.join(', ')}.`;
}

/** The state of each trial, its attempts and its checkpoints. */
function Course({
  sweep,
  trials,
  heads,
}: {
  sweep: SweepDetail;
  trials: readonly TrialDetail[];
  heads: readonly ComponentChildren[];
}): JSX.Element {
  const best = sweep.best?.trial;
  const facts: Fact<TrialDetail>[] = [
    ['state', ({ state }) => <StateLabel state={state} />],
    ['why', (trial) => trialSentence(rowOf(trial))],
    [
      `best ${sweep.metric.name}`,
      ({ number, best: value }) => (
        <>
          <b>{value === null ? '–' : formatMetric(fromWire(value))}</b>
          {number === best && <span class="tag">best</span>}
        </>
      ),
    ],
    ['last step', ({ step }) => step],
    ['trained', ({ seconds }) => formatDuration(fromWire(seconds))],
    ['origin', originSentence],
    ['created', ({ created }) => <When time={created} />],
    ['ended', ({ ended }) => <When time={ended} />],
    ['attempts', (trial) => <AttemptList trial={trial} />],
    ['checkpoints', (trial) => <CheckpointList trial={trial} />],
  ];
  return <FactTable heads={heads} facts={facts} compared={trials} />;
}

function AttemptList({ trial }: { trial: TrialDetail }): JSX.Element {
  if (trial.attempts.length === 0) return <span class="muted">not started</span>;
  return (
    <ol class="plain-list">
      {trial.attempts.map((attempt) => (
        <li key={attempt.number}>
          <b>{attempt.number}</b> {attemptOutcome(attempt)}
          <span class="muted"> on {attempt.executor || 'no executor'}</span>
          {attempt.resumed_from !== null && (
            <span class="muted">, from step {attempt.resumed_from}</span>
          )}
          {attempt.failure && (
            <span class="failure">. {splitFailure(attempt.failure).sentence}</span>
          )}
        </li>
      ))}
    </ol>
  );
}

function CheckpointList({ trial }: { trial: TrialDetail }): JSX.Element {
  const kept = trial.checkpoints.filter(({ dropped }) => dropped === null);
  const dropped = trial.checkpoints.length - kept.length;
  return (
    <>
      {kept.length === 0 && <span class="muted">none kept</span>}
      <ul class="plain-list">
        {kept.map(({ attempt, step, bytes, pinned }) => (
          <li key={`${attempt}-${step}`}>
            step {step}{' '}
            <span class="muted">
              {formatBytes(bytes)}
              {pinned && ', pinned'}
            </span>
          </li>
        ))}
      </ul>
      {dropped > 0 && <span class="muted">{dropped} deleted</span>}
    </>
  );
}
