import type { ComponentChildren, JSX } from 'preact';
import { useMemo } from 'preact/hooks';

import { missingMeaning, type Dot } from '../model/history';
import { formatMetric, plural } from '../model/numbers';
import { trialStates } from '../model/states';
import { formatDuration } from '../model/time';
import { Chart, ChartTable } from './chart';
import { HistoryPainter, type HistoryContent } from './history_plot';
import { stateMarks } from './marks';
import { usePlot } from './use_plot';

interface Props extends HistoryContent {
  /** The metric of the y axis. */
  metric: string;
  /** The metric of the x axis, if `x` is `value`. */
  xMetric: string;
  trials: number;
  summary: string;
  hovered: number | undefined;
  onHover(number: number | undefined): void;
  onOpen(number: number): void;
  /** Shown if no trial can be drawn. */
  empty?: ComponentChildren;
  views?: ComponentChildren;
  controls?: ComponentChildren;
}

const along = { number: 'trial', seconds: 'time of end', value: '' } as const;

/** The columns of exported data. */
const xNames = { number: 'order', seconds: 'seconds', value: '' } as const;

/** The results of the trials, one after another or in two metrics. */
export function HistoryChart(props: Props): JSX.Element {
  return (
    <Chart
      label={`Results of the trials in ${props.metric}`}
      title={props.metric}
      by={along[props.x] || props.xMetric}
      views={props.views}
      controls={props.controls}
      data={() => ({
        columns: ['trial', 'state', xNames[props.x] || props.xMetric, props.metric],
        rows: props.dots.map(({ number, state, x, y }) => [number, state, x, y]),
      })}
      canvas={() => <Canvas {...props} />}
      table={() => <DotTable {...props} />}
      caption={(asTable) => (
        <>
          {props.summary}
          {!asTable && <Legend dots={props.dots} />}
        </>
      )}
    />
  );
}

function Canvas(props: Props): JSX.Element {
  const { dots, line, x, logarithmic, best, selected, onHover } = props;
  const { host, clipped } = usePlot(
    {
      painter: () => new HistoryPainter(),
      content: props,
      hovered: props.hovered,
      onHover,
      onClick: props.onOpen,
    },
    [dots, line, x, logarithmic, best, selected],
  );
  const hovered =
    props.hovered === undefined ? undefined : dots.find((dot) => dot.number === props.hovered);
  return (
    <div class="plot">
      <div
        ref={host}
        class={props.hovered === undefined ? 'plot-host' : 'plot-host plot-pointed'}
        data-testid="history"
        aria-hidden="true"
      />
      {dots.length === 0 && (
        <p class="plot-empty">
          {props.empty ??
            `Nothing yet: trials appear as they ${x === 'seconds' ? 'end' : 'report'}.`}
        </p>
      )}
      {clipped > 0 && (
        <p class="plot-note">{plural(clipped, 'trial')} outside the frame, drawn at its edge</p>
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
  if (dot.missing !== undefined) return missingMeaning[dot.missing];
  const value = `${metric} ${formatMetric(dot.y)}`;
  if (x === 'value') return `${xMetric} ${formatMetric(dot.x)}, ${value}`;
  return x === 'seconds' ? `${value} after ${formatDuration(dot.x)}` : value;
}

function Legend({ dots }: { dots: readonly Dot[] }): JSX.Element {
  const there = useMemo(() => new Set(dots.map((dot) => dot.state)), [dots]);
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

function DotTable({ dots, x, metric, xMetric, empty }: Props): JSX.Element {
  const xText = (dot: Dot): string =>
    x === 'seconds' ? formatDuration(dot.x) : Number.isFinite(dot.x) ? formatMetric(dot.x) : '';
  const xColumn = { label: x === 'seconds' ? 'ended after' : xMetric, numeric: true, cell: xText };
  return (
    <ChartTable
      label="Trials’ values"
      columns={[
        { label: 'trial', cell: (dot) => dot.number },
        { label: 'state', cell: (dot) => dot.state },
        ...(x === 'number' ? [] : [xColumn]),
        {
          label: metric,
          numeric: true,
          cell: ({ missing, y }) =>
            missing === undefined ? formatMetric(y) : missingMeaning[missing],
        },
      ]}
      rows={dots}
      empty={empty}
      rowKey={(_, index) => index}
    />
  );
}
