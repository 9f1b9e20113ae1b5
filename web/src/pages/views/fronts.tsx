import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';

import { countedReports, type Reported } from '../../model/hypervolume';
import { formatMetric, plural } from '../../model/numbers';
import { Chart, ChartTable } from '../../ui/chart';
import { PairPainter, type PairDot } from '../../ui/pair_plot';
import { usePlot } from '../../ui/use_plot';
import '../../styles/views.css';
import type { ViewProps } from './view';

const mostPlots = 10;

/** The front of several metrics, as a plot for each pair of metrics. */
export function Fronts(props: ViewProps): JSX.Element {
  const { model, rows, version } = props;
  const { metrics, pareto_front: front } = model.sweep;
  const reports = useMemo(() => countedReports(rows, model.sweep), [rows, version]);
  const pairs = metrics
    .flatMap((_, i) => metrics.slice(i + 1).map((__, k) => [i, i + 1 + k] as const))
    .slice(0, mostPlots);
  return (
    <Chart
      label="Fronts of pairs of metrics"
      title={`front of ${metrics.length} metrics`}
      views={props.views}
      data={() => ({
        columns: ['trial', ...metrics.map(({ name }) => name)],
        rows: reports.map(({ trial, values }) => [trial, ...values]),
      })}
      canvas={() => (
        <div class="pair-plots">
          {pairs.map(([i, k]) => (
            <PairPlot key={`${i}-${k}`} {...props} reports={reports} x={i} y={k} />
          ))}
        </div>
      )}
      table={() => (
        <ChartTable
          label="The front as a table"
          columns={[
            { label: 'trial', cell: ({ trial }) => trial },
            ...metrics.map(({ name }, i) => ({
              label: name,
              numeric: true,
              cell: ({ values }: Reported) => formatMetric(values[i] ?? NaN),
            })),
          ]}
          rows={front.map(({ trial, values }) => ({ trial, values }))}
          rowKey={(_, index) => index}
        />
      )}
      caption={() =>
        `The newest report of ${plural(rows.length, 'trial')} in each pair of metrics. ` +
        `Large dots: the ${plural(front.length, 'report')} that no other beats in all ${metrics.length} metrics. ` +
        'In two of the metrics, such a report may look worse than others.'
      }
    />
  );
}

function PairPlot({
  model,
  reports,
  x,
  y,
  selected,
  hovered,
  onHover,
  onOpen,
}: ViewProps & { reports: readonly Reported[]; x: number; y: number }): JSX.Element {
  const { sweep } = model;
  const [across, up] = [sweep.metrics[x], sweep.metrics[y]];
  const dots = useMemo((): PairDot[] => {
    const onFront = new Set(sweep.pareto_front.map(({ trial, values }) => keyOf(trial, values)));
    const unique = new Map(reports.map((each) => [keyOf(each.trial, each.values), each]));
    return [...unique].map(([key, { trial, values }]) => ({
      number: trial,
      x: values[x] ?? NaN,
      y: values[y] ?? NaN,
      onFront: onFront.has(key),
    }));
  }, [reports, x, y]);
  const { host } = usePlot(
    {
      painter: () => new PairPainter(),
      content: { dots, best: undefined, selected },
      hovered,
      onHover,
      onClick: onOpen,
    },
    [dots, selected],
  );
  const direction = (mode?: string): string => (mode === 'max' ? '↑' : '↓');
  return (
    <div class="pair-plot">
      <h3 data-plot-text={`${up?.name} by ${across?.name}`}>
        {up?.name} {direction(up?.mode)}{' '}
        <span class="muted">
          by {across?.name} {direction(across?.mode)}
        </span>
      </h3>
      <div ref={host} class="plot-host plot-pair" data-testid="pair" aria-hidden="true" />
    </div>
  );
}

const keyOf = (trial: number, values: readonly unknown[]): string => `${trial} ${values.join()}`;
