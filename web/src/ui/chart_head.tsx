import type { ComponentChildren, JSX } from 'preact';

import { Icon } from './icons';

interface Props {
  title: string;
  /** What it is put against. */
  by?: string;
  /** The choice among several charts, before the title. */
  views?: ComponentChildren;
  controls?: ComponentChildren;
  asTable: boolean;
  onAsTable(asTable: boolean): void;
}

/** What stands above every chart, with the way to its table. */
export function ChartHead(props: Props): JSX.Element {
  const { title, by, views, controls, asTable, onAsTable } = props;
  return (
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
          onClick={() => onAsTable(!asTable)}
        >
          <Icon name={asTable ? 'chart' : 'table'} /> {asTable ? 'Chart' : 'Table'}
        </button>
      </div>
    </div>
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
