import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

import type { Sort } from '../model/columns';
import { trialSentence } from '../model/reason';
import type { TrialRow } from '../model/sweep_model';
import { navigate, trialUrl } from '../router';
import { useCursor } from '../ui/cursor';
import { DataCell } from '../ui/data_table';
import { useKeys } from '../ui/keys';
import { useVirtualRows } from '../ui/virtual';
import type { Column } from './trial_columns';

interface Props {
  columns: readonly Column[];
  rows: readonly TrialRow[];
  sort: Sort;
  best: number | undefined;
  selected: number | undefined;
  hovered: number | undefined;
  onSort(key: string): void;
  onSelect(number: number | undefined): void;
  onHover(number: number | undefined): void;
}

const rowHeight = 34;
const headHeight = 34;
const pageRows = 10;

/** The trials of a sweep. Only the rows in view are in the document; headers sort them. */
export function TrialTable(props: Props): JSX.Element {
  const { columns, rows, selected, onSelect } = props;
  const scroll = useRef<HTMLDivElement>(null);
  const virtual = useVirtualRows(rows.length, rowHeight, headHeight, scroll);
  const at = rows.findIndex((each) => each.number === selected);
  const row = rows[at];

  const cursor = useCursor(rows.length, at, (index) => onSelect(rows[index]?.number));
  // Shows a selection from the chart or the URL; does not follow it when rows move.
  useEffect(() => {
    if (at >= 0) virtual.scrollTo(at);
  }, [selected]);

  useKeys({
    j: () => cursor.by(1),
    k: () => cursor.by(-1),
    Home: (event) => (event.preventDefault(), cursor.to(0)),
    End: (event) => (event.preventDefault(), cursor.to(rows.length - 1)),
    Escape: () => onSelect(undefined),
    Enter: () => {
      const chosen = rows[cursor.at()];
      if (chosen) navigate(trialUrl(chosen.sweep, chosen.number));
    },
  });
  const arrows = (event: KeyboardEvent): void => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: pageRows, PageUp: -pageRows }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    cursor.by(by);
  };

  return (
    <div
      ref={scroll}
      class="table-scroll trials-scroll"
      tabIndex={0}
      role="region"
      aria-label="Trials; j and k move the selection"
      onKeyDown={arrows}
    >
      <table
        class="data trials"
        aria-rowcount={rows.length + 1}
        style={{ minWidth: `${columns.reduce((sum, column) => sum + column.widthPx, 0)}px` }}
      >
        <colgroup>
          {columns.map((column) => (
            <col key={column.key} style={column.grows ? {} : { width: `${column.widthPx}px` }} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((column) => (
              <Head key={column.key} column={column} sort={props.sort} onSort={props.onSort} />
            ))}
          </tr>
        </thead>
        <tbody onMouseLeave={() => props.onHover(undefined)}>
          {virtual.above > 0 && <Spacer height={virtual.above} />}
          {virtual.rows.map(({ index }) => {
            const shown = rows[index];
            return shown && <Row key={shown.number} {...props} row={shown} index={index} />;
          })}
          {virtual.below > 0 && <Spacer height={virtual.below} />}
        </tbody>
      </table>
      {rows.length === 0 && <p class="muted none">No trial matches the filter.</p>}
      <p class="visually-hidden" role="status">
        {row && `Trial ${row.number}, ${row.state}. ${trialSentence(row)}`}
      </p>
    </div>
  );
}

function Spacer({ height }: { height: number }): JSX.Element {
  return <tr class="spacer" aria-hidden="true" style={{ height: `${height}px` }} />;
}

function Head({
  column,
  sort,
  onSort,
}: {
  column: Column;
  sort: Sort;
  onSort(key: string): void;
}): JSX.Element {
  const { key, label, sortable, hint = `Sort by ${label}` } = column;
  const active = sort.key === key;
  const direction = sort.descending ? 'descending' : 'ascending';
  return (
    <th scope="col" class={column.numeric ? 'number' : ''} aria-sort={active ? direction : 'none'}>
      {sortable ? (
        <button type="button" class="sort" onClick={() => onSort(key)} title={hint}>
          {label}
          <span class="arrow" aria-hidden="true">
            {active ? (sort.descending ? '▾' : '▴') : ''}
          </span>
        </button>
      ) : (
        label
      )}
    </th>
  );
}

function Row({ row, index, ...props }: Props & { row: TrialRow; index: number }): JSX.Element {
  const isSelected = row.number === props.selected;
  const classes = [
    'openable',
    row.number === props.best ? 'best' : '',
    row.number === props.hovered ? 'hovered' : '',
  ];
  const click = (event: MouseEvent): void => {
    if (!(event.target as Element).closest('a'))
      props.onSelect(isSelected ? undefined : row.number);
  };
  return (
    <tr
      class={classes.join(' ')}
      data-trial={row.number}
      aria-rowindex={index + 2}
      aria-current={isSelected}
      onClick={click}
      onDblClick={() => navigate(trialUrl(row.sweep, row.number))}
      onMouseEnter={() => props.onHover(row.number)}
    >
      {props.columns.map((column, i) => (
        <DataCell
          key={column.key}
          column={column}
          row={row}
          isHeader={i === 0}
          title={column.title?.(row)}
        />
      ))}
    </tr>
  );
}
