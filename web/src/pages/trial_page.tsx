import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';

import { api, hasServer } from '../api/client';
import type { LoggedPoint, Schedule, Sweep, TrialDetail } from '../api/contract';
import { LiveTrial } from '../live/trial_live';
import type { Clone } from '../model/curve';
import { formatMetric, formatStep, fromWire, plural } from '../model/numbers';
import { beginnings, trialSentence } from '../model/reason';
import { beginningsSummary } from '../model/rungs';
import { rowOf } from '../model/sweep_model';
import { countTrials } from '../model/states';
import { formatDuration } from '../model/time';
import { trialTitle } from '../model/title';
import { clonesOf, curveOf, metricNames } from '../model/trial_model';
import type { Yielding } from '../model/yielding';
import { compareUrl, navigate, place, setQuery, sweepUrl, trialUrl } from '../router';
import { colorToken } from '../ui/colors';
import { CurveChart } from '../ui/curve_chart';
import type { Line } from '../ui/curve_plot';
import { StateLabel } from '../ui/icons';
import { useKeys } from '../ui/keys';
import { Fact, Loading, Pick, Trouble, When } from '../ui/parts';
import { paintEpoch, token } from '../ui/theme';
import { Checkpoints } from './checkpoints';
import { DeletionBar } from './deletion_bar';
import { LineageCard, useSchedule } from './lineage_card';
import { LogPanel } from './log_panel';
import { Notes } from './notes/notes';
import { ConfigList } from './sweep_cards';
import { TrialActions } from './trial_actions';
import { Attempts, Decisions, Origin } from './trial_parts';
import { useLive } from './use_live';
import { useTitle } from './use_title';

export function TrialPage({ sweep: id, number }: { sweep: string; number: number }): JSX.Element {
  const live = useLive(() => new LiveTrial(id, number), [id, number]);
  const sweep = live?.sweep.value;
  const trial = live?.trial.value;
  useKeys({
    j: () => sweep && number + 1 < countTrials(sweep.trials) && navigate(trialUrl(id, number + 1)),
    k: () => number > 0 && navigate(trialUrl(id, number - 1)),
  });
  useTitle(sweep && trial && trialTitle(sweep, trial));
  const parts = useSchedule(id, number, trial?.attempt_count ?? 0);
  if (live?.error.value && !trial) return <Trouble error={live.error.value} />;
  if (!live || !trial || !sweep) return <Loading what={`trial ${number} of ${id}`} />;
  return (
    <>
      <DeletionBar sweep={sweep} onUndone={() => live.refresh()} />
      <TrialHead sweep={sweep} trial={trial} yielding={live.yielding.value} />
      <div class="overview">
        <section class="panel" aria-label="Learning curve">
          <TrialCurve sweep={sweep} trial={trial} logged={live.logged.value} parts={parts} />
        </section>
        <div class="side">
          <section class="panel card" aria-labelledby="config-title">
            <h2 id="config-title">Configuration</h2>
            <ConfigList config={trial.config} order={sweep.parameters.map((each) => each.name)} />
            <Origin trial={trial} />
          </section>
          <LineageCard trial={trial} parts={parts} />
          <Checkpoints key={number} trial={trial} />
        </div>
      </div>
      <Decisions trial={trial} metric={sweep.metric} />
      <Attempts trial={trial} />
      {hasServer() && trial.attempts.some((attempt) => attempt.ranks.length > 0) && (
        <LogPanel trial={trial} reports={live.reports.value} />
      )}
    </>
  );
}

function TrialHead({
  sweep,
  trial,
  yielding,
}: {
  sweep: Sweep;
  trial: TrialDetail;
  yielding: Yielding | undefined;
}): JSX.Element {
  const others = Object.entries(trial.metrics).filter(([name]) => name !== sweep.metric.name);
  const history = beginningsSummary(beginnings(trial));
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        {hasServer() && (
          <>
            <a href="/">Sweeps</a> <span aria-hidden="true">/</span>{' '}
          </>
        )}
        <a href={sweepUrl(sweep.id)}>{sweep.name || sweep.id}</a>
      </nav>
      <TrialActions
        key={trial.number}
        sweep={sweep}
        trial={trial}
        neighbours={<Neighbours sweep={sweep} number={trial.number} />}
      >
        <h1>Trial {trial.number}</h1>
        <StateLabel state={trial.state} large />
      </TrialActions>
      <p class="why" data-testid="why">
        {trialSentence({ ...rowOf(trial), yielding })}
      </p>
      <dl class="facts">
        <Fact name={`Best ${sweep.metric.name}`}>
          <b class="value">{trial.best === null ? '–' : formatMetric(fromWire(trial.best))}</b>
        </Fact>
        {others.slice(0, 4).map(([name, value]) => (
          <Fact key={name} name={`Last ${name}`}>
            {formatMetric(fromWire(value))}
          </Fact>
        ))}
        <Fact name="Step">
          {trial.step}
          {sweep.max_step > 0 && <span class="muted"> of {sweep.max_step}</span>}
        </Fact>
        <Fact name="Trained">{formatDuration(fromWire(trial.seconds))}</Fact>
        <Fact name="Attempts">
          {trial.attempt_count}
          {history !== '' && <span class="muted"> · {history}</span>}
        </Fact>
        <Fact name="Created">
          <When time={trial.created} />
        </Fact>
      </dl>
      <Notes
        key={`notes ${trial.number}`}
        title={`trial ${trial.number}`}
        of={trial}
        isClosed={sweep.deletion !== undefined}
        save={(changes) => api.steerTrial(trial.sweep, trial.number, 'annotate', changes)}
      />
    </>
  );
}

function Neighbours({ sweep, number }: { sweep: Sweep; number: number }): JSX.Element {
  const best = sweep.best?.trial;
  const compared = best === undefined || best === number ? [number] : [number, best];
  return (
    <nav class="neighbours" aria-label="Other trials">
      {hasServer() && (
        <a class="button" href={compareUrl(sweep.id, compared.map(String))}>
          {compared.length > 1 ? 'Compare with the best' : 'Compare…'}
        </a>
      )}
      {number > 0 && api.hasTrial(sweep.id, number - 1) && (
        <a class="button" href={trialUrl(sweep.id, number - 1)} title="Previous trial (k)">
          ← {number - 1}
        </a>
      )}
      {number + 1 < countTrials(sweep.trials) && api.hasTrial(sweep.id, number + 1) && (
        <a class="button" href={trialUrl(sweep.id, number + 1)} title="Next trial (j)">
          {number + 1} →
        </a>
      )}
    </nav>
  );
}

function TrialCurve({
  sweep,
  trial,
  logged,
  parts,
}: {
  sweep: Sweep;
  trial: TrialDetail;
  logged: readonly LoggedPoint[];
  parts: Schedule['schedule'];
}): JSX.Element {
  const { query } = place.value;
  const names = metricNames(trial, sweep);
  const wanted = query.get('metric');
  const metric = wanted !== null && names.includes(wanted) ? wanted : sweep.metric.name;
  const epoch = paintEpoch.value;
  const clones = useMemo(() => clonesOf(parts, trial.number), [parts, trial.number]);
  const lines = useMemo((): Line[] => {
    const curve = curveOf(trial.history, logged, trial.attempts, metric);
    if (curve.length === 0) return [];
    for (const clone of clones) curve.clone(clone);
    const color = token(colorToken(trial, 'state'));
    return [{ number: trial.number, curve, color, faint: false, live: trial.state === 'running' }];
  }, [trial.history, logged, trial.attempts, trial.state, metric, epoch, clones]);
  const judged = trial.decisions.map(({ rung, step }) => rung || step);
  const last = lines[0]?.curve.values.at(-1);
  const seams = lines[0]?.curve.seams ?? [];
  return (
    <CurveChart
      lines={lines}
      version={trial.history.length + logged.length}
      metric={metric}
      time={sweep.time_attr || 'step'}
      logarithmic={query.get('y') === 'log'}
      rungs={[...new Set(judged)].sort((a, b) => a - b)}
      maxStep={sweep.max_step}
      best={undefined}
      selected={undefined}
      hovered={undefined}
      summary={
        last === undefined
          ? `No report of ${metric} yet.`
          : [
              `${metric} ${formatMetric(last)} at step ${formatStep(lines[0]?.curve.steps.at(-1) ?? trial.step)}, ${plural(trial.history.length, 'report')}.`,
              judged.length > 0 && 'Dashed: the scheduler decided.',
              seams.length > 0 &&
                `Tick: from step ${seams.map(formatStep).join(' and ')} on, the values are from an earlier attempt.`,
              clones.length > 0 && `Gaps: it continued from ${clonesText(clones)}.`,
            ]
              .filter(Boolean)
              .join(' ')
      }
      onHover={() => undefined}
      onSelect={() => undefined}
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

// "trial 2 at step 6, trial 4 at step 9"
function clonesText(clones: readonly Clone[]): string {
  return clones.map(({ donor, step }) => `trial ${donor} at step ${step}`).join(', ');
}
