import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';

import { plural } from '../model/numbers';
import { DataTable, type TableColumn } from './data_table';
import { Icon } from './icons';

interface Props {
  /** The name of the chart for screen readers. */
  label: string;
  title: string;
  /** The horizontal axis, after "by". */
  by?: string;
  /** The choice among several charts, before the title. */
  views?: ComponentChildren;
  controls?: ComponentChildren;
  canvas(): JSX.Element;
  table(): JSX.Element;
  caption(asTable: boolean): ComponentChildren;
}

/** A chart with its title, its controls, its caption, and a table of what it draws. */
export function Chart(props: Props): JSX.Element {
  const { label, title, by, views, controls } = props;
  const [asTable, setAsTable] = useState(false);
  return (
    <figure class="chart" aria-label={label}>
      <div class="chart-head">
        {views}
        <h2>
          {title} {by && <span class="muted">by {by}</span>}
        </h2>
        <div class="chart-controls">
          {controls}
          <button
            type="button"
            class="quiet"
            aria-pressed={asTable}
            onClick={() => setAsTable(!asTable)}
          >
            <Icon name={asTable ? 'chart' : 'table'} /> {asTable ? 'Chart' : 'Table'}
          </button>
        </div>
      </div>
      {asTable ? props.table() : props.canvas()}
      <figcaption>{props.caption(asTable)}</figcaption>
    </figure>
  );
}

export function LogCheck({
  on,
  onChange,
}: {
  on: boolean;
  onChange(on: boolean): void;
}): JSX.Element {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={on}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      log scale
    </label>
  );
}

const mostRows = 500;

/** The values of a chart as a table, for readers who do not see the chart. */
export function ChartTable<Row>({
  label,
  caption,
  columns,
  rows,
  rowKey,
}: {
  label: string;
  caption?: string;
  columns: readonly TableColumn<Row>[];
  rows: readonly Row[];
  rowKey(row: Row, index: number): string | number;
}): JSX.Element {
  return (
    <div class="table-scroll plot-table" tabIndex={0} role="region" aria-label={label}>
      <DataTable
        caption={caption ?? ''}
        columns={columns}
        rows={rows.slice(0, mostRows)}
        rowKey={rowKey}
      />
      {rows.length > mostRows && (
        <p class="muted none">
          The first {mostRows} of {plural(rows.length, 'trial')}; filter to see others.
        </p>
      )}
    </div>
  );
}
