import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import { besideMeaning, type Dot } from '../model/history';
import { formatMetric, plural } from '../model/numbers';
import { trialStates } from '../model/states';
import { formatDuration } from '../model/time';
import { ChartHead } from './chart_head';
import { HistoryPlot, type HistoryContent } from './history_plot';
import { stateMarks } from './marks';
import { paintEpoch } from './theme';

interface Props extends HistoryContent {
  /** The metric that is drawn upwards and, where `x` is `value`, the other one. */
  metric: string;
  xMetric: string;
  trials: number;
  summary: string;
  hovered: number | undefined;
  onHover(number: number | undefined): void;
  onOpen(number: number): void;
  views?: ComponentChildren;
  controls?: ComponentChildren;
}

const along = { number: 'trial', seconds: 'time of end', value: '' } as const;

/** What trials came to, one after another, or in two metrics. */
export function HistoryChart(props: Props): JSX.Element {
  const [asTable, setAsTable] = useState(false);
  return (
    <figure class="chart" aria-label={`What trials came to in ${props.metric}`}>
      <ChartHead
        title={props.metric}
        by={along[props.x] || props.xMetric}
        views={props.views}
        controls={props.controls}
        asTable={asTable}
        onAsTable={setAsTable}
      />
      {asTable ? <DotTable {...props} /> : <Canvas {...props} />}
      <figcaption>
        {props.summary}
        {!asTable && <Legend dots={props.dots} />}
      </figcaption>
    </figure>
  );
}

function Canvas(props: Props): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<HistoryPlot>();
  const latest = useRef(props);
  latest.current = props;
  const [clipped, setClipped] = useState(0);
  const epoch = paintEpoch.value;

  useEffect(() => {
    const made = new HistoryPlot(host.current as HTMLElement, {
      hover: (number) => latest.current.onHover(number),
      open: (number) => latest.current.onOpen(number),
      clip: setClipped,
    });
    plot.current = made;
    return () => made.destroy();
  }, []);
  useEffect(() => {
    plot.current?.update(props);
  }, [props.dots, props.line, props.x, props.logarithmic, props.best, props.selected]);
  useEffect(() => plot.current?.repaint(), [epoch]);
  useEffect(() => plot.current?.highlight(props.hovered), [props.hovered]);

  const hovered = props.dots.find((dot) => dot.number === props.hovered);
  return (
    <div class="plot">
      <div
        ref={host}
        class={props.hovered === undefined ? 'plot-host' : 'plot-host plot-pointed'}
        data-testid="history"
        aria-hidden="true"
      />
      {props.dots.length === 0 && (
        <p class="plot-empty">
          {props.trials === 0
            ? 'No trials yet.'
            : `Nothing yet: trials appear as they ${props.x === 'seconds' ? 'end' : 'report'}.`}
        </p>
      )}
      {clipped > 0 && (
        <p class="plot-note">{plural(clipped, 'trial')} beyond the frame, at its edge</p>
      )}
      {hovered && <Tooltip dot={hovered} {...props} />}
    </div>
  );
}

function Tooltip({
  dot,
  x,
  metric,
  xMetric,
}: { dot: Dot } & Pick<Props, 'x' | 'metric' | 'xMetric'>): JSX.Element {
  return (
    <div class="plot-tip" aria-hidden="true">
      <b>trial {dot.number}</b> {dot.state}, {dotText(dot, x, metric, xMetric)}
    </div>
  );
}

function dotText(dot: Dot, x: Props['x'], metric: string, xMetric: string): string {
  if (dot.beside !== undefined) return besideMeaning[dot.beside];
  const value = `${metric} ${formatMetric(dot.y)}`;
  if (x === 'value') return `${xMetric} ${formatMetric(dot.x)}, ${value}`;
  return x === 'seconds' ? `${value} after ${formatDuration(dot.x)}` : value;
}

function Legend({ dots }: { dots: readonly Dot[] }): JSX.Element {
  const there = new Set(dots.map((dot) => dot.state));
  return (
    <ul class="legend" aria-label="Marks">
      {trialStates
        .filter((state) => there.has(state))
        .map((state) => (
          <li key={state} class={`state-${state}`}>
            <svg viewBox="-1.3 -1.3 2.6 2.6" width="10" height="10" aria-hidden="true">
              <path
                d={stateMarks[state].path}
                fill={stateMarks[state].filled ? 'currentColor' : 'none'}
                stroke={stateMarks[state].filled ? 'none' : 'currentColor'}
                stroke-width="0.5"
              />
            </svg>
            {state}
          </li>
        ))}
    </ul>
  );
}

const mostRows = 500;

function DotTable({ dots, x, metric, xMetric }: Props): JSX.Element {
  const between = x === 'seconds' ? 'ended after' : x === 'value' ? xMetric : undefined;
  const xText = (dot: Dot): string =>
    x === 'seconds' ? formatDuration(dot.x) : Number.isFinite(dot.x) ? formatMetric(dot.x) : '';
  return (
    <div class="table-scroll plot-table" tabIndex={0} role="region" aria-label="Trials’ values">
      <table class="data">
        <thead>
          <tr>
            <th scope="col">trial</th>
            <th scope="col">state</th>
            {between && (
              <th scope="col" class="number">
                {between}
              </th>
            )}
            <th scope="col" class="number">
              {metric}
            </th>
          </tr>
        </thead>
        <tbody>
          {dots.slice(0, mostRows).map((dot, i) => (
            <tr key={i}>
              <th scope="row">{dot.number}</th>
              <td>{dot.state}</td>
              {between && <td class="number">{xText(dot)}</td>}
              <td class="number">
                {dot.beside === undefined ? formatMetric(dot.y) : besideMeaning[dot.beside]}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {dots.length > mostRows && (
        <p class="muted none">
          The first {mostRows} of {plural(dots.length, 'trial')}; filter to see others.
        </p>
      )}
    </div>
  );
}
