import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import { formatMetric, formatStep, plural } from '../model/numbers';
import { ChartHead, LogCheck } from './chart_head';
import { CurvePlot, type Line, type PlotContent } from './curve_plot';
import { paintEpoch } from './theme';

interface Props extends PlotContent {
  /** What the curves run along: steps, or the metric that the sweep measures time in. */
  time: string;
  /** Grows when lines were mutated. */
  version: number;
  summary: string;
  hovered: number | undefined;
  onHover(number: number | undefined): void;
  onSelect(number: number): void;
  onLogarithmic(logarithmic: boolean): void;
  /** The choice among several charts, and further controls. */
  views?: ComponentChildren;
  controls?: ComponentChildren;
  tall?: boolean;
}

/** Learning curves with their words and their table. */
export function CurveChart(props: Props): JSX.Element {
  const [asTable, setAsTable] = useState(false);
  return (
    <figure class="chart" aria-label={`Learning curves of ${props.metric}`}>
      <ChartHead
        title={props.metric}
        by={props.time}
        views={props.views}
        controls={
          <>
            {props.controls}
            <LogCheck on={props.logarithmic} onChange={props.onLogarithmic} />
          </>
        }
        asTable={asTable}
        onAsTable={setAsTable}
      />
      {asTable ? (
        <CurveTable
          lines={props.lines}
          rungs={props.rungs}
          metric={props.metric}
          time={props.time}
        />
      ) : (
        <Canvas {...props} />
      )}
      <figcaption>
        {props.summary}
        {clonesShown(props.lines) &&
          ' A ring: a trial goes on from there, with another’s checkpoint.'}
      </figcaption>
    </figure>
  );
}

function Canvas(props: Props): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<CurvePlot>();
  const latest = useRef(props);
  latest.current = props;
  const [clipped, setClipped] = useState(0);
  const epoch = paintEpoch.value;

  useEffect(() => {
    const made = new CurvePlot(host.current as HTMLElement, {
      hover: (number) => latest.current.onHover(number),
      select: (number) => latest.current.onSelect(number),
      clip: setClipped,
    });
    plot.current = made;
    return () => made.destroy();
  }, []);
  useEffect(() => {
    plot.current?.update(props);
  }, [
    props.version,
    props.lines,
    props.logarithmic,
    props.metric,
    props.best,
    props.selected,
    epoch,
  ]);
  useEffect(() => plot.current?.repaint(), [epoch]);
  useEffect(() => plot.current?.highlight(props.hovered), [props.hovered]);

  const empty = emptyText(props);
  const hovered = props.lines.find((line) => line.number === props.hovered);
  return (
    <div class="plot">
      <div
        ref={host}
        class={props.tall ? 'plot-host plot-tall' : 'plot-host'}
        data-testid="curves"
        aria-hidden="true"
      />
      {empty && <p class="plot-empty">{empty}</p>}
      {clipped > 0 && (
        <p class="plot-note">
          {plural(clipped, 'curve')} {clipped === 1 ? 'leaves' : 'leave'} the frame
        </p>
      )}
      {hovered && <Tooltip line={hovered} metric={props.metric} />}
    </div>
  );
}

// A clone is drawn from its donor's line.
function clonesShown(lines: readonly Line[]): boolean {
  const shown = new Set(lines.map((line) => line.number));
  return lines.some(({ curve }) => curve.clones.some(({ donor }) => shown.has(donor)));
}

function emptyText({ lines, metric }: Pick<Props, 'lines' | 'metric'>): string | undefined {
  if (lines.length === 0) return 'No reports yet: curves appear as trials train.';
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
const mostRows = 500;

function CurveTable({
  lines,
  rungs,
  metric,
  time,
}: Pick<Props, 'lines' | 'rungs' | 'metric' | 'time'>): JSX.Element {
  const steps = tableSteps(lines, rungs);
  return (
    <div class="table-scroll plot-table" tabIndex={0} role="region" aria-label="Curves as a table">
      <table class="data">
        <caption class="visually-hidden">
          {metric} by {time}, {plural(lines.length, 'trial')}
        </caption>
        <thead>
          <tr>
            <th scope="col">trial</th>
            {steps.map((step) => (
              <th key={step} scope="col" class="number">
                {time} {formatStep(step)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {lines.slice(0, mostRows).map(({ number, curve }) => (
            <tr key={number}>
              <th scope="row">{number}</th>
              {steps.map((step) => (
                <td key={step} class="number">
                  {step <= (curve.steps.at(-1) ?? -1) ? formatMetric(curve.at(step) ?? NaN) : ''}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {lines.length > mostRows && (
        <p class="muted">
          The first {mostRows} of {lines.length} trials; filter to see others.
        </p>
      )}
    </div>
  );
}

/** Columns: every step while they are few, otherwise rungs and evenly spread ones. */
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
