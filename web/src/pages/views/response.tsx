import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';

import { axesOf, valueAt, type Axis } from '../../model/axes';
import { formatMetric, plural } from '../../model/numbers';
import { Response, leastObserved, observe, type Observed } from '../../model/response';
import { place, setQuery } from '../../router';
import { Chart, ChartTable } from '../../ui/chart';
import { ContourPainter, type Cell } from '../../ui/response/contour_plot';
import { Pick } from '../../ui/parts';
import { coordinateAt, spread } from '../../ui/response/response_scale';
import { SlicePainter, type ModelPoint } from '../../ui/response/slice_plot';
import { usePlot } from '../../ui/use_plot';
import '../../styles/views.css';
import { usePaced } from '../use_rows';
import type { ViewProps } from './view';

const modelPoints = 60;
const gridWidth = 48;
const gridHeight = 36;
const manyTrials = 2000;
const fewMs = 1000;
const manyMs = 5000;
/** A prediction is shown if the trials near it weigh at least half as much as one at its place. */
const leastWeight = 0.5;

function useMetric({ model }: ViewProps): { metric: string; choice: JSX.Element } {
  const { sweep } = model;
  const names = [...model.metricNames].sort();
  const wanted = place.value.query.get('of');
  const metric = wanted !== null && model.metricNames.has(wanted) ? wanted : sweep.metric.name;
  const choose = (of: string): void => setQuery({ of: of === sweep.metric.name ? undefined : of });
  return { metric, choice: <Pick label="of" value={metric} options={names} onChange={choose} /> };
}

function useParameters({ model, rows }: ViewProps): readonly Axis[] {
  const { sweep } = model;
  return useMemo(
    () => axesOf(sweep, rows, false).filter(({ mode }) => mode === undefined),
    [sweep.parameters, rows],
  );
}

const fewText = (observed: number): string =>
  observed < leastObserved ? ` A model needs ${leastObserved} trials with a value.` : '';

/** Models follow the trials less often than the table does. */
function usePacedRows(props: ViewProps): ViewProps {
  const few = props.rows.length <= manyTrials;
  const rows = usePaced(props.rows, props.rows.length === 0, few ? fewMs : manyMs);
  return { ...props, rows };
}

/** A metric over each parameter, with a model of how the parameter acts. */
export function Slices(unpaced: ViewProps): JSX.Element {
  const props = usePacedRows(unpaced);
  const { metric, choice } = useMetric(props);
  const parameters = useParameters(props);
  const { sweep } = props.model;
  const observed = useMemo(
    () => parameters.map((axis) => observe(props.rows, [axis], metric, sweep)),
    [parameters, props.rows, metric],
  );
  const most = Math.max(0, ...observed.map(({ values }) => values.length));
  return (
    <Chart
      label={`${metric} over each parameter`}
      title={metric}
      by="each parameter"
      views={props.views}
      controls={choice}
      data={() => ({
        columns: ['parameter', 'value', 'trial', metric],
        rows: observed.flatMap(dataOf),
      })}
      canvas={() => (
        <div class="pair-plots">
          {parameters.map((axis, i) => (
            <Slice
              key={axis.key}
              {...props}
              axis={axis}
              observed={observed[i] as Observed}
              metric={metric}
            />
          ))}
        </div>
      )}
      table={() => (
        <ChartTable
          label="Predictions as a table"
          columns={[
            { label: 'parameter', cell: ({ axis }) => axis.name },
            { label: 'lowest prediction', numeric: true, cell: ({ low }) => formatMetric(low) },
            { label: 'highest prediction', numeric: true, cell: ({ high }) => formatMetric(high) },
          ]}
          rows={observed.map((each, i) => {
            const means = modelOf(parameters[i] as Axis, each).map(({ mean }) => mean);
            return {
              axis: parameters[i] as Axis,
              low: Math.min(...means),
              high: Math.max(...means),
            };
          })}
          rowKey={({ axis }) => axis.key}
        />
      )}
      caption={() =>
        `${plural(most, 'trial')}. Line and band: the mean and one standard deviation of trials ` +
        `nearby (kernel regression).${fewText(most)}`
      }
    />
  );
}

function dataOf({ axes, numbers, places, values }: Observed): (string | number)[][] {
  const [axis] = axes;
  if (!axis) return [];
  return numbers.map((number, i) => {
    const at = places[0]?.[i] as number;
    const value = axis.kind === 'listed' ? String(axis.values[at]) : valueAt(axis, at);
    return [axis.name, value, number, values[i] as number];
  });
}

function modelOf(axis: Axis, observed: Observed): ModelPoint[] {
  const response = Response.of(observed);
  if (!response) return [];
  const places =
    axis.kind === 'listed'
      ? axis.values.map((_, i) => i)
      : Array.from({ length: modelPoints }, (_, i) => i / (modelPoints - 1));
  return places.flatMap((at) => {
    const { mean, deviation, weight } = response.predict([at]);
    if (weight < leastWeight) return [];
    return { x: coordinateAt(axis, at), mean, low: mean - deviation, high: mean + deviation };
  });
}

function Slice({
  model,
  axis,
  observed,
  metric,
  selected,
  hovered,
  onHover,
  onOpen,
}: ViewProps & { axis: Axis; observed: Observed; metric: string }): JSX.Element {
  const { sweep } = model;
  const dots = useMemo(
    () =>
      observed.numbers.map((number, i) => ({
        number,
        x: coordinateAt(axis, observed.places[0]?.[i] as number) + spread(axis, number),
        y: observed.values[i] as number,
      })),
    [observed],
  );
  const points = useMemo(() => modelOf(axis, observed), [observed]);
  const best = metric === sweep.metric.name ? sweep.best?.trial : undefined;
  const { host } = usePlot(
    {
      painter: () => new SlicePainter(),
      content: { axis, dots, model: points, best, selected },
      hovered,
      onHover,
      onClick: onOpen,
    },
    [axis, dots, points, best, selected],
  );
  return (
    <div class="pair-plot">
      <h3 data-plot-text={axis.name}>{axis.name}</h3>
      <div ref={host} class="plot-host plot-pair" data-testid="slice" aria-hidden="true" />
    </div>
  );
}

/** A metric over two parameters, predicted by a model. */
export function Contour(unpaced: ViewProps): JSX.Element {
  const props = usePacedRows(unpaced);
  const { metric, choice } = useMetric(props);
  const parameters = useParameters(props);
  const { query } = place.value;
  const find = (key: string, fallback: number): Axis | undefined =>
    parameters.find(({ name }) => name === query.get(key)) ?? parameters[fallback];
  const across = find('across', 0);
  const up = find('up', across === parameters[1] ? 0 : 1);
  if (!across || !up)
    return (
      <div class="chart">
        <div class="chart-head">{props.views}</div>
        <p class="muted none">A contour needs two parameters.</p>
      </div>
    );
  const names = parameters.map(({ name }) => name);
  return (
    <ContourChart
      {...props}
      metric={metric}
      across={across}
      up={up}
      controls={
        <>
          {choice}
          <Pick
            label="across"
            value={across.name}
            options={names}
            onChange={(name) => setQuery({ across: name })}
          />
          <Pick
            label="up"
            value={up.name}
            options={names.filter((name) => name !== across.name)}
            onChange={(name) => setQuery({ up: name })}
          />
        </>
      }
    />
  );
}

function ContourChart(
  props: ViewProps & { metric: string; across: Axis; up: Axis; controls: JSX.Element },
): JSX.Element {
  const { model, rows, metric, across, up } = props;
  const { sweep } = model;
  const observed = useMemo(
    () => observe(rows, [across, up], metric, sweep),
    [rows, across, up, metric],
  );
  const mode = sweep.metrics.find(({ name }) => name === metric)?.mode ?? 'max';
  const grid = useMemo(() => predictGrid(observed, mode), [observed, mode]);
  return (
    <Chart
      label={`${metric} over ${across.name} and ${up.name}`}
      title={metric}
      by={`${across.name} and ${up.name}`}
      views={props.views}
      controls={props.controls}
      data={() => ({
        columns: [across.name, up.name, `predicted ${metric}`],
        rows: grid.cells.map(({ left, right, bottom, top, value }) => [
          (left + right) / 2,
          (bottom + top) / 2,
          value,
        ]),
      })}
      canvas={() => <ContourCanvas {...props} observed={observed} cells={grid.cells} />}
      table={() => (
        <ChartTable
          label="Trials as a table"
          columns={[
            { label: 'trial', cell: (i: number) => observed.numbers[i] },
            { label: metric, numeric: true, cell: (i) => formatMetric(observed.values[i] ?? NaN) },
          ]}
          rows={observed.numbers.map((_, i) => i)}
          rowKey={(i) => i}
        />
      )}
      caption={() => (
        <>
          {plural(observed.values.length, 'trial')}. Colours: the mean of trials nearby (kernel
          regression); white where there are none.{fewText(observed.values.length)}
          {grid.cells.length > 0 && <ColorScale low={grid.worst} high={grid.best} />}
        </>
      )}
    />
  );
}

interface Grid {
  cells: (Cell & { value: number })[];
  worst: number;
  best: number;
}

function predictGrid(observed: Observed, mode: 'min' | 'max'): Grid {
  const response = Response.of(observed);
  const [across, up] = observed.axes;
  if (!response || !across || !up) return { cells: [], worst: NaN, best: NaN };
  const found: (Omit<Cell, 'shade'> & { value: number })[] = [];
  for (const x of edgesOf(across, gridWidth)) {
    for (const y of edgesOf(up, gridHeight)) {
      const { mean, weight } = response.predict([x.at, y.at]);
      if (weight < leastWeight) continue;
      found.push({ left: x.from, right: x.to, bottom: y.from, top: y.to, value: mean });
    }
  }
  const values = found.map(({ value }) => value);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const [worst, best] = mode === 'min' ? [high, low] : [low, high];
  const shadeOf = (value: number): number =>
    best === worst ? 0.5 : (value - worst) / (best - worst);
  const cells = found.map((cell) => ({ ...cell, shade: shadeOf(cell.value) }));
  return { cells, worst, best };
}

/** The places of a grid on an axis, each with the coordinates of its ends. */
function edgesOf(axis: Axis, count: number): { at: number; from: number; to: number }[] {
  if (axis.kind === 'listed')
    return axis.values.map((_, i) => ({ at: i, from: i - 0.5, to: i + 0.5 }));
  return Array.from({ length: count }, (_, i) => ({
    at: (i + 0.5) / count,
    from: coordinateAt(axis, i / count),
    to: coordinateAt(axis, (i + 1) / count),
  }));
}

function ContourCanvas({
  model,
  across,
  up,
  metric,
  observed,
  cells,
  selected,
  hovered,
  onHover,
  onOpen,
}: ViewProps & {
  across: Axis;
  up: Axis;
  metric: string;
  observed: Observed;
  cells: readonly Cell[];
}): JSX.Element {
  const { sweep } = model;
  const dots = useMemo(
    () =>
      observed.numbers.map((number, i) => ({
        number,
        x: coordinateAt(across, observed.places[0]?.[i] as number) + spread(across, number),
        y: coordinateAt(up, observed.places[1]?.[i] as number) + spread(up, number * 31),
        value: observed.values[i] as number,
      })),
    [observed],
  );
  const best = metric === sweep.metric.name ? sweep.best?.trial : undefined;
  const { host } = usePlot(
    {
      painter: () => new ContourPainter(),
      content: { across, up, cells, dots, best, selected },
      hovered,
      onHover,
      onClick: onOpen,
    },
    [across, up, cells, dots, best, selected],
  );
  return (
    <div class="plot">
      <div ref={host} class="plot-host" data-testid="contour" aria-hidden="true" />
      {dots.length === 0 && <p class="plot-empty">No trial has reported {metric} yet.</p>}
    </div>
  );
}

function ColorScale({ low, high }: { low: number; high: number }): JSX.Element {
  return (
    <span class="color-scale">
      {formatMetric(low)} <span class="color-scale-bar" /> {formatMetric(high)}
    </span>
  );
}
