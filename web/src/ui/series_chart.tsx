import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';

import { formatCount, formatMetric, plural } from '../model/numbers';
import { formatDuration } from '../model/time';
import { Chart, ChartTable } from './chart';
import { SeriesPainter, type SeriesContent } from './series_plot';
import { usePlot } from './use_plot';

interface Props extends Omit<SeriesContent, 'best' | 'selected'> {
  /** The name of the chart for screen readers. */
  label: string;
  title: string;
  /** The horizontal axis, after "by". */
  by?: string;
  summary: ComponentChildren;
  /** The text of an empty chart. */
  empty: string;
  onOpen?(number: number): void;
  views?: ComponentChildren;
  controls?: ComponentChildren;
}

/** Several stairs with their names. */
export function SeriesChart(props: Props): JSX.Element {
  const [hovered, setHovered] = useState<number>();
  const { label, title, by, series } = props;
  return (
    <Chart
      label={label}
      title={title}
      {...(by === undefined ? {} : { by })}
      views={props.views}
      controls={props.controls}
      data={() => ({
        columns: ['line', by ?? 'x', title],
        rows: series.flatMap(({ name, points }) => points.map(({ x, y }) => [name, x, y])),
      })}
      canvas={() => <Canvas {...props} hovered={hovered} onHover={setHovered} />}
      table={() => <PointTable {...props} />}
      caption={(asTable) => (
        <>
          {props.summary}
          {!asTable && series.length > 1 && (
            <ul class="legend" aria-label="Lines">
              {series.map(({ number, name, color }) => (
                <li
                  key={number}
                  onMouseEnter={() => setHovered(number)}
                  onMouseLeave={() => setHovered(undefined)}
                >
                  <span class="line-swatch" style={{ background: `var(${color})` }} /> {name}
                </li>
              ))}
            </ul>
          )}
        </>
      )}
    />
  );
}

function Canvas(
  props: Props & { hovered: number | undefined; onHover(number: number | undefined): void },
): JSX.Element {
  const { series, x, yRange, logarithmic, onHover, onOpen } = props;
  const { host, clipped } = usePlot(
    {
      painter: () => new SeriesPainter(),
      content: {
        ...{ series, x, logarithmic, best: undefined, selected: undefined },
        ...(yRange ? { yRange } : {}),
      },
      hovered: props.hovered,
      onHover,
      onClick: (number) => onOpen?.(number),
    },
    [series, x, logarithmic],
  );
  const drawn = series.some(({ points }) => points.length > 0);
  return (
    <div class="plot">
      <div ref={host} class="plot-host" data-testid="series" aria-hidden="true" />
      {!drawn && <p class="plot-empty">{props.empty}</p>}
      {clipped > 0 && (
        <p class="plot-note">
          {plural(clipped, 'line')} {clipped === 1 ? 'leaves' : 'leave'} the frame
        </p>
      )}
    </div>
  );
}

function PointTable({ label, title, by, x, series }: Props): JSX.Element {
  const rows = series.flatMap(({ name, points }) => points.map((point) => ({ name, ...point })));
  const xText = (value: number): string =>
    x === 'seconds'
      ? formatDuration(value)
      : x === 'number'
        ? formatCount(value)
        : formatMetric(value);
  return (
    <ChartTable
      label={`${label} as a table`}
      columns={[
        { label: 'line', cell: ({ name }) => name },
        { label: by ?? 'x', numeric: true, cell: (point) => xText(point.x) },
        { label: title, numeric: true, cell: ({ y }) => formatMetric(y) },
      ]}
      rows={rows}
      rowKey={(_, index) => index}
    />
  );
}
