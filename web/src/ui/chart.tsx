import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';

import { plural } from '../model/numbers';
import { DataTable, type TableColumn } from './data_table';
import { Icon } from './icons';
import { fileName, plotToCsv, plotToPng, plotToSvg, type PlotData } from './export/plot_export';
import { saveAs } from './export/save_as';

interface Props {
  /** The name of the chart for screen readers. */
  label: string;
  title: string;
  /** The horizontal axis, after "by". */
  by?: string;
  /** The choice among several charts, before the title. */
  views?: ComponentChildren;
  controls?: ComponentChildren;
  /** The drawn data, for CSV. */
  data(): PlotData;
  /** The plot is not on a canvas, so that it cannot be saved as a picture. */
  onlyData?: boolean;
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
          <ExportChoice
            title={by ? `${title} by ${by}` : title}
            data={props.data}
            pictures={!asTable && !props.onlyData}
          />
        </div>
      </div>
      {asTable ? props.table() : props.canvas()}
      <figcaption>{props.caption(asTable)}</figcaption>
    </figure>
  );
}

/** Saves the chart as a picture, or its data. */
function ExportChoice({
  title,
  data,
  pictures,
}: {
  title: string;
  data(): PlotData;
  pictures: boolean;
}): JSX.Element {
  const choose = async (choice: HTMLSelectElement): Promise<void> => {
    const format = choice.value;
    choice.value = '';
    // A page in a file has its place in the fragment.
    const path = /^#(\/[^?]*)/.exec(location.hash)?.[1] ?? location.pathname;
    const name = fileName(path, title, format);
    if (format === 'csv') return saveAs(new Blob([plotToCsv(data())], { type: 'text/csv' }), name);
    const plot = choice.closest('figure') as HTMLElement;
    const full = `${document.title.split(' · ').at(-2) ?? 'Attune'}: ${title}`;
    if (format === 'png') return saveAs(await plotToPng(plot, full), name);
    saveAs(new Blob([plotToSvg(plot, full)], { type: 'image/svg+xml' }), name);
  };
  return (
    <select
      class="export"
      aria-label="Export"
      value=""
      onChange={(event) => void choose(event.currentTarget)}
    >
      <option value="">Export…</option>
      {pictures && <option value="png">PNG</option>}
      {pictures && <option value="svg">SVG</option>}
      <option value="csv">CSV</option>
    </select>
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
  empty,
  rowKey,
}: {
  label: string;
  caption?: string;
  columns: readonly TableColumn<Row>[];
  rows: readonly Row[];
  /** Shown below the header if there are no rows. */
  empty?: ComponentChildren;
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
      {rows.length === 0 && <p class="none">{empty}</p>}
      {rows.length > mostRows && (
        <p class="muted none">
          The first {mostRows} of {plural(rows.length, 'row')}.
        </p>
      )}
    </div>
  );
}
