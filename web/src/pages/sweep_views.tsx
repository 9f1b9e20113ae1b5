import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';

import { api } from '../api/client';
import type { Metric, Sweep } from '../api/contract';
import { explain } from '../live/session';
import type { LiveSweep } from '../live/sweep_live';
import { strandsOf, type Axis } from '../model/axes';
import { formatBrushes, type Brush, type Brushes } from '../model/brush';
import type { Curve } from '../model/curve';
import { CurveStore } from '../model/curve_store';
import { emptyReason } from '../model/empty';
import {
  bestLine,
  frontDots,
  frontLine,
  frontPoints,
  historyDots,
  type Along,
} from '../model/history';
import { plural } from '../model/numbers';
import { curvesSummary, historySummary, parallelSummary } from '../model/summary';
import type { SweepModel, TrialRow } from '../model/sweep_model';
import { place, setQuery } from '../router';
import { LogCheck } from '../ui/chart';
import { linesOf, type ColorBy } from '../ui/colors';
import { CurveChart } from '../ui/curve_chart';
import type { Line } from '../ui/curve_plot';
import { HistoryChart } from '../ui/history_chart';
import { ParallelChart } from '../ui/parallel_chart';
import { Pick } from '../ui/parts';
import { paintEpoch } from '../ui/theme';
import { EmptyNote } from './empty_note';
import { usePaced } from './use_rows';
import { isMoreView, moreViews, type MoreView } from './views';
import { usePointMenu } from './views/point_menu';

type MainView = 'curves' | 'history' | 'parallel';
export type View = MainView | MoreView;

const views: Record<MainView, { short: string; label: string }> = {
  curves: { short: 'Curves', label: 'Learning curves' },
  history: { short: 'History', label: 'History of trials' },
  parallel: { short: 'Parallel', label: 'Parallel coordinates' },
};

export function chooseView(wanted: string | null): View {
  if (isMoreView(wanted)) return wanted;
  return wanted === 'history' || wanted === 'parallel' ? wanted : 'curves';
}

interface Props {
  view: View;
  live: LiveSweep;
  model: SweepModel;
  version: number;
  /** The rows of the table, and its rows without brushes. */
  rows: readonly TrialRow[];
  unbrushed: readonly TrialRow[];
  /** Says that these rows are not all; empty otherwise. */
  partial: string;
  axes: readonly Axis[];
  brushes: Brushes;
  /** The filter of the rows as a text; empty without one. */
  filter: string;
  colorBy: ColorBy;
  logarithmic: boolean;
  selected: number | undefined;
  hovered: number | undefined;
  onSelect(number: number): void;
  onHover(number: number | undefined): void;
  /** Undefined: the user cannot enqueue. */
  onEnqueueCopy: ((number: number) => void) | undefined;
}

interface ChartProps extends Props {
  onOpen(number: number): void;
}

/** One of several charts of the trials. */
export function SweepViews(props: Props): JSX.Element {
  const { view, model } = props;
  const { noteClick, open, menu } = usePointMenu(model.sweep.id, props.onEnqueueCopy);
  const chart: ChartProps = { ...props, onOpen: open };
  if (isMoreView(view)) {
    const { label, Shown } = moreViews[view];
    return (
      <section class="panel" aria-label={label} onClickCapture={noteClick}>
        <Shown {...chart} views={<ViewSwitch view={view} sweep={model.sweep} />} />
        {menu}
      </section>
    );
  }
  const Shown = { curves: Curves, history: History, parallel: Parallel }[view];
  return (
    <section class="panel" aria-label={views[view].label} onClickCapture={noteClick}>
      <Shown {...chart} />
      {menu}
    </section>
  );
}

function ViewSwitch({ view, sweep }: { view: View; sweep: Sweep }): JSX.Element {
  const more = Object.entries(moreViews).filter(([key, { suits }]) => key === view || suits(sweep));
  const choose = (key: string): void => setQuery({ view: key === 'curves' ? undefined : key });
  return (
    <div class="segments" role="group" aria-label="View">
      {Object.entries(views).map(([key, { short, label }]) => (
        <button
          key={key}
          type="button"
          title={label}
          aria-pressed={key === view}
          onClick={() => choose(key)}
        >
          {short}
        </button>
      ))}
      <select
        aria-label="More views"
        class={isMoreView(view) ? 'chosen' : ''}
        value={isMoreView(view) ? view : ''}
        onChange={(event) => event.currentTarget.value && choose(event.currentTarget.value)}
      >
        <option value="">More…</option>
        {more.map(([key, { label }]) => (
          <option key={key} value={key}>
            {label}
          </option>
        ))}
      </select>
    </div>
  );
}

const manyDots = 2000;

function emptyNote({ model, rows }: Props, metric: string): JSX.Element {
  return <EmptyNote reason={emptyReason(model.sweep, rows.length, metric)} />;
}

const setLogarithmic = (on: boolean): void => setQuery({ y: on ? 'log' : undefined });

// Above this number of curves, the best are lines and all others are a density picture.
const mostLines = 300;
const bestLines = 100;
const runningLines = 60;
/** Points of a curve that is read again for a zoom. */
const zoomPoints = 512;

function Curves(props: Props): JSX.Element {
  const { live, model, rows, colorBy, filter } = props;
  const { sweep, curves } = model;
  const epoch = paintEpoch.value;
  const dense = curves.size > mostLines;
  const drawn = useMemo(
    () => (rows.length > mostLines ? chooseRows(rows, sweep.metric.mode) : rows),
    [rows, sweep.metric.mode],
  );
  const zoom = useZoom(live, model, drawn);
  const curveOf = (number: number): Curve | undefined =>
    zoom.detail?.get(number) ?? curves.get(number);
  // A page of curves may bring the line of a row that had none.
  const lines = useMemo(
    () => linesOf(drawn, curveOf, colorBy),
    [drawn, curves, curves.size, colorBy, epoch, zoom.detail],
  );
  const density = useMemo(
    () => (dense ? { store: curves, chosen: filter ? rows : undefined, filter } : undefined),
    [dense, curves, filter ? rows : undefined, filter],
  );
  const lineOf = (number: number): Line | undefined => {
    const row = model.trials.get(number);
    return row && linesOf([row], curveOf, colorBy)[0];
  };
  const reading = live.reading.value === '' ? '' : ' Reading more…';
  return (
    <CurveChart
      lines={lines}
      density={density}
      lineOf={lineOf}
      version={props.version}
      metric={model.curveMetric}
      time={sweep.time_attr || 'step'}
      logarithmic={props.logarithmic}
      rungs={sweep.rungs}
      maxStep={sweep.max_step}
      best={sweep.best?.trial}
      selected={props.selected}
      hovered={props.hovered}
      summary={
        curvesSummary(sweep, curves, model.curveMetric) +
        (dense && drawn !== rows ? ` ${linesSummary(drawn, sweep.metric)}` : '') +
        reading
      }
      onHover={props.onHover}
      onSelect={props.onSelect}
      onZoom={zoom.onZoom}
      onLogarithmic={setLogarithmic}
      views={<ViewSwitch view={props.view} sweep={props.model.sweep} />}
      controls={<CurveControls model={model} colorBy={colorBy} />}
      empty={emptyNote(props, model.curveMetric)}
    />
  );
}

function linesSummary(drawn: readonly TrialRow[], { name }: Metric): string {
  const training = drawn.filter(({ state }) => state === 'running').length;
  const lines = `Lines: ${plural(drawn.length, 'trial')}, the best in ${name}`;
  return `${lines}${training > 0 ? ' and those that train' : ''}. Colour: how many curves.`;
}

/** The best trials, and trials that train. */
function chooseRows(rows: readonly TrialRow[], mode: Metric['mode']): TrialRow[] {
  const ranked = rows.filter(({ best }) => best !== undefined && Number.isFinite(best));
  const sign = mode === 'max' ? -1 : 1;
  const keys = Float64Array.from(ranked, ({ best }) => sign * (best as number)).sort();
  const worst = keys[Math.min(bestLines, keys.length) - 1] ?? -Infinity;
  const chosen = ranked.filter(({ best }) => sign * (best as number) <= worst).slice(0, bestLines);
  const known = new Set(chosen);
  const training = rows.filter((row) => row.state === 'running' && !known.has(row));
  return [...chosen, ...training.slice(0, runningLines)];
}

/** Reads the lines in more detail while the user looks at a range of steps. */
function useZoom(
  live: LiveSweep,
  model: SweepModel,
  rows: readonly TrialRow[],
): {
  detail: ReadonlyMap<number, Curve> | undefined;
  onZoom(range?: readonly [number, number]): void;
} {
  const [range, setRange] = useState<readonly [number, number]>();
  const [detail, setDetail] = useState<ReadonlyMap<number, Curve>>();
  // The newest points of a trial that trains arrive as events.
  const numbers = rows
    .filter(({ state, number }) => state !== 'running' && model.curves.isThinned(number))
    .slice(0, bestLines)
    .map(({ number }) => number);
  useEffect(() => {
    setDetail(undefined);
    if (!range || numbers.length === 0) return;
    let isNewest = true;
    const margin = (range[1] - range[0]) * 0.1;
    const [first, last] = [
      Math.max(0, Math.floor(range[0] - margin)),
      Math.ceil(range[1] + margin),
    ];
    live.readDetail(numbers, first, last, zoomPoints).then(
      (page) => {
        if (!isNewest) return;
        const store = new CurveStore();
        store.add(page, zoomPoints);
        setDetail(
          new Map(numbers.flatMap((n) => (store.has(n) ? [[n, store.get(n) as Curve]] : []))),
        );
      },
      (error: unknown) => void explain(error),
    );
    return () => {
      isNewest = false;
    };
  }, [live, range, numbers.join(), model.curveMetric]);
  return { detail, onZoom: setRange };
}

function CurveControls({ model, colorBy }: { model: SweepModel; colorBy: ColorBy }): JSX.Element {
  const own = model.sweep.metric.name;
  const others = [...model.metricNames].filter(
    (name) => name !== own && api.hasCurves(model.sweep.id, name),
  );
  const names = [own, ...others.sort()];
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

function History(props: ChartProps): JSX.Element {
  const { model, rows, logarithmic } = props;
  const { sweep } = model;
  const several = sweep.metrics.length > 1;
  const along: Along = place.value.query.get('x') === 'ended' ? 'ended' : 'number';
  const paced = usePaced(
    rows,
    `${props.filter} ${rows.length === 0}`,
    rows.length > manyDots ? 1000 : 0,
  );
  const { metric, metrics, constraints, pareto_front: front } = sweep;
  const dots = useMemo(
    () => (several ? frontDots(paced, sweep) : historyDots(paced, sweep, along)),
    [paced, metric, metrics, constraints, several && front, along],
  );
  const line = useMemo(() => {
    if (!several) return bestLine(dots, metric.mode);
    // A front in more than two metrics has no edge in two of them.
    return metrics.length === 2 ? frontLine(frontPoints(sweep), metric.mode) : [];
  }, [dots, metric.mode]);
  const summary = useMemo(
    () => historySummary(sweep, dots, paced.length, along),
    [dots, paced.length, along, sweep.best],
  );
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
      summary={summary + props.partial}
      empty={emptyNote(props, sweep.metric.name)}
      onHover={props.onHover}
      onOpen={props.onOpen}
      views={<ViewSwitch view={props.view} sweep={props.model.sweep} />}
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

function Parallel(props: ChartProps): JSX.Element {
  const { model, unbrushed, axes, brushes } = props;
  const { sweep } = model;
  const strands = useMemo(() => strandsOf(axes, unbrushed, sweep), [axes, unbrushed]);
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
      selected={props.selected}
      hovered={props.hovered}
      summary={
        parallelSummary(axes, brushes, strands.numbers.length, props.rows.length) + props.partial
      }
      empty={emptyNote(props, sweep.metric.name)}
      onHover={props.onHover}
      onOpen={props.onOpen}
      onBrush={brush}
      views={<ViewSwitch view={props.view} sweep={props.model.sweep} />}
      controls={<LogCheck on={props.logarithmic} onChange={setLogarithmic} />}
    />
  );
}
