import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';

import { strandsOf, type Axis } from '../model/axes';
import { brushFilter, formatBrushes, type Brush, type Brushes } from '../model/brush';
import {
  bestLine,
  frontDots,
  frontLine,
  frontPoints,
  historyDots,
  type Along,
} from '../model/history';
import { curvesSummary, historySummary, parallelSummary } from '../model/summary';
import type { SweepModel, TrialRow } from '../model/sweep_model';
import { navigate, place, setQuery, trialUrl } from '../router';
import { LogCheck } from '../ui/chart';
import { linesOf, type ColorBy } from '../ui/colors';
import { CurveChart } from '../ui/curve_chart';
import { HistoryChart } from '../ui/history_chart';
import { ParallelChart } from '../ui/parallel_chart';
import { Pick } from '../ui/parts';
import { paintEpoch } from '../ui/theme';

export type View = 'curves' | 'history' | 'parallel';

const views: Record<View, { short: string; label: string }> = {
  curves: { short: 'Curves', label: 'Learning curves' },
  history: { short: 'History', label: 'History of trials' },
  parallel: { short: 'Parallel', label: 'Parallel coordinates' },
};

export function chooseView(wanted: string | null): View {
  return wanted === 'history' || wanted === 'parallel' ? wanted : 'curves';
}

interface Props {
  view: View;
  model: SweepModel;
  version: number;
  /** The rows of the table, and its rows without brushes. */
  rows: readonly TrialRow[];
  unbrushed: readonly TrialRow[];
  axes: readonly Axis[];
  brushes: Brushes;
  colorBy: ColorBy;
  logarithmic: boolean;
  selected: number | undefined;
  hovered: number | undefined;
  onSelect(number: number): void;
  onHover(number: number | undefined): void;
}

/** One of several charts of the trials. */
export function SweepViews(props: Props): JSX.Element {
  const Shown = { curves: Curves, history: History, parallel: Parallel }[props.view];
  return (
    <section class="panel" aria-label={views[props.view].label}>
      <Shown {...props} />
    </section>
  );
}

function ViewSwitch({ view }: { view: View }): JSX.Element {
  return (
    <div class="segments" role="group" aria-label="View">
      {Object.entries(views).map(([key, { short, label }]) => (
        <button
          key={key}
          type="button"
          title={label}
          aria-pressed={key === view}
          onClick={() => setQuery({ view: key === 'curves' ? undefined : key })}
        >
          {short}
        </button>
      ))}
    </div>
  );
}

const setLogarithmic = (on: boolean): void => setQuery({ y: on ? 'log' : undefined });

function Curves(props: Props): JSX.Element {
  const { model, rows, colorBy } = props;
  const { sweep } = model;
  const epoch = paintEpoch.value;
  const lines = useMemo(() => linesOf(rows, model.curves, colorBy), [rows, colorBy, epoch]);
  return (
    <CurveChart
      lines={lines}
      version={props.version}
      metric={model.curveMetric}
      time={sweep.time_attr || 'step'}
      logarithmic={props.logarithmic}
      rungs={sweep.rungs}
      maxStep={sweep.max_step}
      best={sweep.best?.trial}
      selected={props.selected}
      hovered={props.hovered}
      summary={curvesSummary(sweep, model.curves, model.curveMetric)}
      onHover={props.onHover}
      onSelect={props.onSelect}
      onLogarithmic={setLogarithmic}
      views={<ViewSwitch view={props.view} />}
      controls={<CurveControls model={model} colorBy={colorBy} />}
    />
  );
}

function CurveControls({ model, colorBy }: { model: SweepModel; colorBy: ColorBy }): JSX.Element {
  const own = model.sweep.metric.name;
  const names = [own, ...[...model.metricNames].filter((name) => name !== own).sort()];
  return (
    <>
      {names.length > 1 && (
        <Pick
          label="metric"
          value={model.curveMetric}
          options={names}
          onChange={(chosen) => setQuery({ metric: chosen === own ? undefined : chosen })}
        />
      )}
      <Pick
        label="colour"
        value={colorBy}
        options={['trial', 'state']}
        onChange={(chosen) => setQuery({ color: chosen })}
      />
    </>
  );
}

function History(props: Props): JSX.Element {
  const { model, rows, logarithmic } = props;
  const { sweep } = model;
  const several = sweep.metrics.length > 1;
  const along: Along = place.value.query.get('x') === 'ended' ? 'ended' : 'number';
  const dots = useMemo(
    () => (several ? frontDots(rows, sweep) : historyDots(rows, sweep, along)),
    [rows, sweep, along],
  );
  const line = useMemo(() => {
    if (!several) return bestLine(dots, sweep.metric.mode);
    // A front in more than two metrics has no edge in two of them.
    return sweep.metrics.length === 2 ? frontLine(frontPoints(sweep), sweep.metric.mode) : [];
  }, [dots, sweep]);
  const [first = sweep.metric, second = first] = sweep.metrics;
  return (
    <HistoryChart
      dots={dots}
      line={line}
      x={several ? 'value' : along === 'ended' ? 'seconds' : 'number'}
      logarithmic={logarithmic}
      metric={second.name}
      xMetric={first.name}
      trials={rows.length}
      best={sweep.best?.trial}
      selected={props.selected}
      hovered={props.hovered}
      summary={historySummary(sweep, dots, rows.length, along)}
      onHover={props.onHover}
      onOpen={(number) => navigate(trialUrl(sweep.id, number))}
      views={<ViewSwitch view={props.view} />}
      controls={
        <>
          {!several && (
            <Pick
              label="by"
              value={along}
              options={[
                ['number', 'number'],
                ['ended', 'time of end'],
              ]}
              onChange={(chosen) => setQuery({ x: chosen === 'ended' ? chosen : undefined })}
            />
          )}
          <LogCheck on={logarithmic} onChange={setLogarithmic} />
        </>
      }
    />
  );
}

function Parallel(props: Props): JSX.Element {
  const { model, unbrushed, axes, brushes } = props;
  const { sweep } = model;
  const strands = useMemo(() => strandsOf(axes, unbrushed, sweep), [axes, unbrushed]);
  const chosenIn = (within: Brushes): ReadonlySet<number> | undefined => {
    if (!axes.some((axis) => within[axis.key])) return undefined;
    const matches = brushFilter(within, axes, sweep);
    return new Set(unbrushed.filter(matches).map((row) => row.number));
  };
  const brush = (axis: Axis, made: Brush | undefined): void => {
    const { [axis.key]: _, ...others } = brushes;
    const next: Brushes = made ? { ...others, [axis.key]: made } : others;
    setQuery({ brush: formatBrushes(next) });
  };
  return (
    <ParallelChart
      axes={axes}
      strands={strands}
      brushes={brushes}
      chosenIn={chosenIn}
      selected={props.selected}
      hovered={props.hovered}
      summary={parallelSummary(axes, brushes, strands.length, props.rows.length)}
      onHover={props.onHover}
      onOpen={(number) => navigate(trialUrl(sweep.id, number))}
      onBrush={brush}
      views={<ViewSwitch view={props.view} />}
      controls={<LogCheck on={props.logarithmic} onChange={setLogarithmic} />}
    />
  );
}
