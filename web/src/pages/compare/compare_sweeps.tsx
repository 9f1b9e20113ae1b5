import type { ComponentChildren, JSX } from 'preact';
import { useMemo } from 'preact/hooks';

import { api } from '../../api/client';
import type { Sweep } from '../../api/contract';
import { LiveSweepComparison, type ComparedSweep } from '../../live/sweep_comparison_live';
import { compareObjects, flatten, mostCompared, parseCompared } from '../../model/compare';
import { distributionOf, quantileOf } from '../../model/distribution';
import { bestLine, historyDots, type Along } from '../../model/history';
import { formatCount, formatMetric, fromWire, plural } from '../../model/numbers';
import { countEnded, countTrials } from '../../model/states';
import { countsSummary } from '../../model/summary';
import { rowOf } from '../../model/sweep_model';
import { formatDuration, parseTime } from '../../model/time';
import { compareSweepsUrl, navigate, place, setQuery, sweepUrl } from '../../router';
import { LogCheck } from '../../ui/chart';
import { lineToken } from '../../ui/colors';
import { StateLabel } from '../../ui/icons';
import { Loading, Pick, Trouble } from '../../ui/parts';
import { SeriesChart } from '../../ui/series_chart';
import type { Series } from '../../ui/series_plot';
import { useAnswer } from '../use_answer';
import { useLive } from '../use_live';
import '../../styles/compare.css';
import { ComparedTable, FactTable, type Fact } from './compared_table';
import { AddField, ComparedChips } from './picked';

/** Up to five sweeps next to each other. */
export function CompareSweeps(): JSX.Element {
  const ids = parseCompared(place.value.query.get('sweeps'));
  const live = useLive(() => new LiveSweepComparison(ids), [ids.join()]);
  const others = useSweeps().filter(({ id }) => !ids.includes(id));
  const change = (next: readonly string[]): void =>
    navigate(compareSweepsUrl(next, place.peek().query));
  if (live?.error.value && live.sweeps.value.size === 0)
    return <Trouble error={live.error.value} />;
  const read = live?.sweeps.value ?? new Map<string, ComparedSweep>();
  const missing = live?.missing.value ?? [];
  const compared = ids.flatMap((id) => read.get(id) ?? []);
  const pending = ids.length - compared.length - missing.length;
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href="/">Sweeps</a>
      </nav>
      <div class="page-head">
        <h1>Compare {plural(ids.length, 'sweep')}</h1>
        <ComparedChips
          items={compared.map(({ sweep }, i) => ({
            key: sweep.id,
            name: nameOf(sweep),
            href: sweepUrl(sweep.id),
            color: lineToken(i),
          }))}
          onRemove={(key) => change(ids.filter((id) => id !== key))}
        />
        {ids.length < mostCompared && (
          <AddField
            label="sweep"
            options={others.map((sweep) => [sweep.id, nameOf(sweep)] as const)}
            onAdd={(id) => change([...ids, id])}
          />
        )}
      </div>
      {missing.length > 0 && (
        <p class="notice notice-bad" role="alert">
          There is no sweep {missing.join(' and no sweep ')}.
        </p>
      )}
      {ids.length === 0 && <p class="muted">Choose a sweep.</p>}
      {pending > 0 && <Loading what={plural(pending, 'sweep')} />}
      {compared.length > 0 && pending === 0 && <Comparison compared={compared} />}
    </>
  );
}

const nameOf = ({ id, name }: Sweep): string => (name && name !== id ? `${id} ${name}` : id);

// The sweeps to choose from.
function useSweeps(): readonly Sweep[] {
  const read = async (signal: AbortSignal): Promise<Sweep[]> => {
    const all: Sweep[] = [];
    await api.sweeps((page) => all.push(...page), signal);
    return all;
  };
  return useAnswer(read, { about: [], leastMs: 1000 }).answer ?? [];
}

function Comparison({ compared }: { compared: readonly ComparedSweep[] }): JSX.Element {
  const heads = compared.map(({ sweep }, i) => (
    <a key={sweep.id} href={sweepUrl(sweep.id)}>
      <span class="line-swatch" style={{ background: `var(${lineToken(i)})` }} /> {nameOf(sweep)}
    </a>
  ));
  const specifications = useMemo(
    () => compareObjects(compared.map(({ resolved }) => flatten(resolved))),
    [...compared],
  );
  return (
    <>
      <Plots compared={compared} />
      <section class="panel card" aria-labelledby="totals-title" data-testid="totals">
        <h2 id="totals-title">Results and cost</h2>
        <Totals compared={compared} heads={heads} />
      </section>
      <section class="panel card" aria-labelledby="spec-title" data-testid="specifications">
        <h2 id="spec-title">Specification</h2>
        <ComparedTable heads={heads} rows={specifications} noun="key" format={(text) => text} />
      </section>
    </>
  );
}

// Sweeps with another metric or direction have no place on the axes of the first one.
function Plots({ compared }: { compared: readonly ComparedSweep[] }): JSX.Element | null {
  const { query } = place.value;
  const along: Along = query.get('x') === 'number' ? 'number' : 'ended';
  const logarithmic = query.get('y') === 'log';
  const metric = compared[0]?.sweep.metric;
  const same = (each: ComparedSweep): boolean =>
    each.sweep.metric.name === metric?.name && each.sweep.metric.mode === metric.mode;
  const [progress, distribution] = useMemo(() => {
    const series = compared.map((each, i): [Series, Series] | undefined => {
      if (!same(each)) return undefined;
      const { sweep, trials } = each;
      const base = { number: i, name: nameOf(sweep), color: lineToken(i) };
      const rows = trials.map(rowOf);
      const dots = historyDots(rows, sweep, along);
      const end = dots.at(-1)?.x;
      const finals = rows.flatMap(({ best }) => best ?? []);
      return [
        {
          ...base,
          points: bestLine(dots, sweep.metric.mode),
          ...(end === undefined ? {} : { end }),
        },
        { ...base, points: distributionOf(finals) },
      ];
    });
    const drawn = series.flatMap((pair) => (pair ? [pair] : []));
    return [drawn.map(([first]) => first), drawn.map(([, second]) => second)] as const;
  }, [...compared, along]);
  if (!metric) return null;
  const left = compared.filter((each) => !same(each)).map(({ sweep }) => nameOf(sweep));
  const note = left.length > 0 && ` Not drawn, because it has another metric: ${left.join(', ')}.`;
  const best = metric.mode === 'max' ? 'highest' : 'lowest';
  return (
    <div class="two-plots">
      <section class="panel" aria-label="Best so far">
        <SeriesChart
          label="Best value so far"
          title={`best ${metric.name}`}
          by={along === 'ended' ? 'time' : 'trial'}
          series={progress}
          x={along === 'ended' ? 'seconds' : 'number'}
          logarithmic={logarithmic}
          empty="No trial has ended with a result yet."
          summary={
            <>
              The {best} {metric.name} so far,{' '}
              {along === 'ended' ? 'by the end of each trial' : 'by trial number'}.{note}
            </>
          }
          onOpen={(i) => compared[i] && navigate(sweepUrl(compared[i].sweep.id))}
          controls={
            <>
              <Pick
                label="by"
                value={along}
                options={[
                  ['ended', 'time'],
                  ['number', 'trials'],
                ]}
                onChange={(chosen) => setQuery({ x: chosen === 'number' ? chosen : undefined })}
              />
              <LogCheck
                on={logarithmic}
                onChange={(on) => setQuery({ y: on ? 'log' : undefined })}
              />
            </>
          }
        />
      </section>
      <section class="panel" aria-label="Distribution of results">
        <SeriesChart
          label="Distribution of results"
          title="share of trials"
          by={metric.name}
          series={distribution}
          x="value"
          yRange={[0, 1.02]}
          logarithmic={false}
          empty="No trial has a result yet."
          summary={
            <>
              The share of trials whose best {metric.name} is at most this value.{note}
            </>
          }
          onOpen={(i) => compared[i] && navigate(sweepUrl(compared[i].sweep.id))}
        />
      </section>
    </div>
  );
}

function Totals({
  compared,
  heads,
}: {
  compared: readonly ComparedSweep[];
  heads: readonly ComponentChildren[];
}): JSX.Element {
  const sum = (numbers: number[]): number => numbers.reduce((total, each) => total + each, 0);
  const facts: Fact<ComparedSweep>[] = [
    ['state', ({ sweep }) => <StateLabel state={sweep.state} />],
    [
      'best',
      ({ sweep: { best, metric } }) =>
        best ? (
          <>
            <b>{formatMetric(fromWire(best.value))}</b>{' '}
            <span class="muted">
              {metric.name}, trial {best.trial} at step {best.step}
            </span>
          </>
        ) : (
          '–'
        ),
    ],
    [
      'median',
      ({ trials }) => {
        const finals = trials.flatMap(({ best }) => (best === null ? [] : fromWire(best)));
        const median = quantileOf(distributionOf(finals), 0.5);
        return median === undefined ? '–' : formatMetric(median);
      },
    ],
    [
      'trials',
      ({ sweep: { trials } }) =>
        `${formatCount(countEnded(trials))} of ${formatCount(countTrials(trials))} ended`,
    ],
    ['by state', ({ sweep }) => countsSummary(sweep.trials)],
    ['steps', ({ trials }) => formatCount(sum(trials.map(({ step }) => step)))],
    [
      'time of training',
      ({ trials }) => formatDuration(sum(trials.map(({ seconds }) => fromWire(seconds)))),
    ],
    [
      'duration',
      ({ sweep: { created, ended } }) =>
        formatDuration(((ended ? parseTime(ended) : Date.now()) - parseTime(created)) / 1000),
    ],
  ];
  return <FactTable heads={heads} facts={facts} compared={compared} />;
}
