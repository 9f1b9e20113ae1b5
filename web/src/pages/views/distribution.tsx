import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';

import { distributionOf, quantileOf } from '../../model/distribution';
import { formatMetric, plural } from '../../model/numbers';
import { SeriesChart } from '../../ui/series_chart';
import type { ViewProps } from './view';

/** The empirical distribution of the trials' best values. */
export function Distribution({ model, rows, views }: ViewProps): JSX.Element {
  const { metric } = model.sweep;
  const points = useMemo(() => distributionOf(rows.flatMap(({ best }) => best ?? [])), [rows]);
  const series = useMemo(
    () => [{ number: 0, name: metric.name, color: '--accent', points }],
    [points, metric.name],
  );
  const finite = rows.filter(({ best }) => best !== undefined && Number.isFinite(best)).length;
  const quantiles = [0.1, 0.5, 0.9].map((share) => quantileOf(points, share));
  const [tenth, median, ninetieth] = quantiles.map((value) => formatMetric(value ?? NaN));
  return (
    <SeriesChart
      label={`Distribution of ${metric.name}`}
      title="share of trials"
      by={metric.name}
      series={series}
      x="value"
      yRange={[0, 1.02]}
      logarithmic={false}
      empty={`No trial has reported ${metric.name} yet.`}
      views={views}
      summary={
        finite > 0 &&
        `The share of ${plural(finite, 'trial')} whose best ${metric.name} is at most this value. ` +
          `Median ${median}; 80 % of the trials are between ${tenth} and ${ninetieth}.` +
          (finite < rows.length ? ` ${plural(rows.length - finite, 'trial')} without a value.` : '')
      }
    />
  );
}
