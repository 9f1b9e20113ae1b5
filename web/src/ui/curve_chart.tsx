import type { ComponentChildren, JSX } from 'preact';

import { formatMetric, formatStep, plural } from '../model/numbers';
import { Chart, ChartTable, LogCheck } from './chart';
import { CurvePainter, type CurveContent, type Line } from './curve_plot';
import type { TableColumn } from './data_table';
import type { PlotData } from './export/plot_export';
import { usePlot } from './use_plot';

interface Props extends CurveContent {
  /** The x axis: steps, or the metric that the sweep measures time in. */
  time: string;
  /** Grows when a line changes in place. */
  version: number;
  summary: string;
  hovered: number | undefined;
  onHover(number: number | undefined): void;
  onSelect(number: number): void;
  onZoom?(range: readonly [number, number] | undefined): void;
  onLogarithmic(logarithmic: boolean): void;
  /** The choice among several charts, and further controls. */
  views?: ComponentChildren;
  controls?: ComponentChildren;
  tall?: boolean;
  /** Shown instead of curves if there are none. */
  empty?: ComponentChildren;
}

/** Learning curves. */
export function CurveChart(props: Props): JSX.Element {
  return (
    <Chart
      label={`Learning curves of ${props.metric}`}
      title={props.metric}
      by={props.time}
      views={props.views}
      controls={
        <>
          {props.controls}
          <LogCheck on={props.logarithmic} onChange={props.onLogarithmic} />
        </>
      }
      data={() => curveData(props)}
      canvas={() => <Canvas {...props} />}
      table={() => <CurveTable {...props} />}
      caption={() => (
        <>
          {props.summary}
          {hasClones(props.lines) &&
            ' A ring: a trial continues from there with the checkpoint of another trial.'}
        </>
      )}
    />
  );
}

// With a picture of very many curves, these are all curves, not only the drawn lines.
function curveData({ lines, density, time, metric }: Props): PlotData {
  function* rows(): Iterable<number[]> {
    const curves = density
      ? [...density.store.numbers()].map((number) => ({ number, curve: density.store.get(number) }))
      : lines;
    for (const { number, curve } of curves) {
      for (let at = 0; curve && at < curve.length; at += 1)
        yield [number, curve.steps[at] as number, curve.values[at] as number];
    }
  }
  return { columns: ['trial', time, metric], rows: rows() };
}

function Canvas(props: Props): JSX.Element {
  const { lines, logarithmic, metric, best, selected, onHover } = props;
  const { host, clipped } = usePlot(
    {
      painter: () => new CurvePainter(),
      content: props,
      hovered: props.hovered,
      onHover,
      onClick: props.onSelect,
      ...(props.onZoom ? { onZoom: props.onZoom } : {}),
    },
    [props.version, lines, props.density?.chosen, logarithmic, metric, best, selected],
  );
  const empty = emptyText(props);
  const hovered = lineOf(props, props.hovered);
  return (
    <div class="plot">
      <div
        ref={host}
        class={props.tall ? 'plot-host plot-tall' : 'plot-host'}
        data-testid="curves"
        aria-hidden="true"
      />
      {empty !== undefined && <p class="plot-empty">{empty}</p>}
      {clipped > 0 && (
        <p class="plot-note">
          {plural(clipped, 'curve')} {clipped === 1 ? 'leaves' : 'leave'} the frame
        </p>
      )}
      {hovered && <Tooltip line={hovered} metric={metric} />}
    </div>
  );
}

function lineOf({ lines, lineOf: other }: Props, number: number | undefined): Line | undefined {
  if (number === undefined) return undefined;
  return lines.find((line) => line.number === number) ?? other?.(number);
}

// A ring is drawn only if the donor's line is shown.
function hasClones(lines: readonly Line[]): boolean {
  const shown = new Set(lines.map((line) => line.number));
  return lines.some(({ curve }) => curve.clones.some(({ donor }) => shown.has(donor)));
}

function emptyText({ lines, density, metric, empty }: Props): ComponentChildren {
  if (density && density.store.size > 0) return undefined;
  if (lines.length === 0) return empty ?? 'No reports yet: curves appear as trials train.';
  if (lines.some((line) => line.curve.values.some(Number.isFinite))) return undefined;
  return `Nothing to draw: every ${metric} reported is NaN or infinite.`;
}

function Tooltip({ line, metric }: { line: Line; metric: string }): JSX.Element {
  const last = line.curve.length - 1;
  return (
    <div class="plot-tip" aria-hidden="true">
      <b>trial {line.number}</b> {metric} {formatMetric(line.curve.values[last] ?? NaN)} at step{' '}
      {formatStep(line.curve.steps[last] ?? NaN)}
      {line.curve.clones.map(({ donor, step }) => `, cloned trial ${donor} at step ${step}`)}
    </div>
  );
}

const mostSteps = 12;

function CurveTable({
  lines,
  rungs,
  metric,
  time,
  empty,
}: Pick<Props, 'lines' | 'rungs' | 'metric' | 'time' | 'empty'>): JSX.Element {
  const steps = tableSteps(lines, rungs);
  const columns = steps.map(
    (step): TableColumn<Line> => ({
      label: `${time} ${formatStep(step)}`,
      numeric: true,
      cell: ({ curve }) =>
        step <= (curve.steps.at(-1) ?? -1) ? formatMetric(curve.at(step) ?? NaN) : '',
    }),
  );
  return (
    <ChartTable
      label="Curves as a table"
      caption={`${metric} by ${time}, ${plural(lines.length, 'trial')}`}
      columns={[{ label: 'trial', cell: ({ number }) => number }, ...columns]}
      rows={lines}
      empty={empty}
      rowKey={({ number }) => number}
    />
  );
}

/** The steps with a column: all if they are few, otherwise rungs and evenly spaced steps. */
export function tableSteps(
  lines: readonly Pick<Line, 'curve'>[],
  rungs: readonly number[],
): number[] {
  const all = new Set<number>();
  for (const { curve } of lines) for (const step of curve.steps) all.add(step);
  const steps = [...all].sort((a, b) => a - b);
  if (steps.length <= mostSteps) return steps;
  const chosen = new Set(rungs.filter((rung) => all.has(rung)));
  const wanted = Math.max(2, mostSteps - chosen.size);
  for (let i = 0; i < wanted; i += 1) {
    chosen.add(steps[Math.round((i / (wanted - 1)) * (steps.length - 1))] as number);
  }
  return [...chosen].sort((a, b) => a - b);
}
