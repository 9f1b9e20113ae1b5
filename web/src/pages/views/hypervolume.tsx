import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';

import { canMeasure, countedReports, hypervolumeLine, worstValues } from '../../model/hypervolume';
import { formatMetric, plural } from '../../model/numbers';
import { navigate, place, setQuery, trialUrl } from '../../router';
import { SeriesChart } from '../../ui/series_chart';
import type { Series } from '../../ui/series_plot';
import type { ViewProps } from './view';

/** The volume that the results of the first trials dominate, for two or three metrics. */
export function Hypervolume({ model, rows, version, views }: ViewProps): JSX.Element {
  const { sweep } = model;
  const { metrics } = sweep;
  const reports = useMemo(() => countedReports(rows, sweep), [rows, version]);
  const given = (place.value.query.get('ref') ?? '').split(',').map(Number);
  const worst = useMemo(() => worstValues(reports, metrics), [reports]);
  const isGiven = given.length === metrics.length && given.every(Number.isFinite);
  const reference = isGiven ? given : worst;
  const series = useMemo((): Series[] => {
    if (!canMeasure(metrics.length) || reports.length === 0) return [];
    const points = hypervolumeLine(reports, metrics, reference);
    const end = reports.at(-1)?.trial;
    const line = { number: 0, name: 'hypervolume', color: '--accent', points };
    return [end === undefined ? line : { ...line, end }];
  }, [reports, reference.join()]);
  const last = series[0]?.points.at(-1);
  const change = (i: number, value: number): void =>
    setQuery({ ref: reference.map((each, k) => (k === i ? value : each)).join(',') });
  return (
    <SeriesChart
      label="Hypervolume"
      title="hypervolume"
      by="trial"
      series={series}
      x="number"
      logarithmic={false}
      empty={
        canMeasure(metrics.length)
          ? 'No report counts yet.'
          : 'The hypervolume is computed for two or three metrics.'
      }
      views={views}
      onOpen={() => last && navigate(trialUrl(sweep.id, last.x))}
      controls={metrics.map(({ name }, i) => (
        <label key={name} class="pick">
          reference {name}
          <input
            type="number"
            step="any"
            style={{ width: '7em' }}
            value={Number.isFinite(reference[i]) ? Number(reference[i]?.toPrecision(6)) : ''}
            onChange={(event) => change(i, Number(event.currentTarget.value))}
          />
        </label>
      ))}
      summary={
        last && (
          <>
            The volume between the front and the reference point (
            {metrics
              .map(({ name }, i) => `${name} ${formatMetric(reference[i] ?? NaN)}`)
              .join(', ')}
            {isGiven ? '' : '; the worst value of each metric'}), from the newest report of{' '}
            {plural(rows.length, 'trial')} and the reports on the front. Now {formatMetric(last.y)};
            trial {last.x} was the last to improve it.
          </>
        )
      }
    />
  );
}
