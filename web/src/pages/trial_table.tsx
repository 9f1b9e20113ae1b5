import { Component, type ComponentChildren, type JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

import type { Sort } from '../model/columns';
import { plural } from '../model/numbers';
import { trialSentence } from '../model/reason';
import type { TrialRow } from '../model/sweep_model';
import { navigate, trialUrl } from '../router';
import { useCursor } from '../ui/cursor';
import { DataCell } from '../ui/data_table';
import { useKeys } from '../ui/keys';
import { printing } from '../ui/theme';
import { useVirtualRows } from '../ui/virtual';
import { togglePicked } from './compare/picked';
import type { Column } from './trial_columns';

/** The rows of the table in their order. */
export interface RowSource {
  length: number;
  /** Undefined while the row is read. */
  at(index: number): TrialRow | undefined;
  /** -1: the trial has no row, or it is not read. */
  indexOf(number: number | undefined): number;
  /** Called with the rows in view. */
  want?(first: number, last: number): void;
}

interface Props {
  columns: readonly Column[];
  rows: RowSource;
  sort: Sort;
  best: number | undefined;
  selected: number | undefined;
  hovered: number | undefined;
  /** Changes when cells show something else for the same row. */
  cellRevision: unknown;
  /** Shown if there are no rows. */
  empty: ComponentChildren;
  onSort(key: string): void;
  onSelect(number: number | undefined): void;
  onHover(number: number | undefined): void;
  /** Undefined: the user cannot enqueue. */
  onEnqueueCopy: ((number: number) => void) | undefined;
}

const rowHeight = 34;
const headHeight = 34;
const pageRows = 10;
const mostPrintedRows = 100;

/** The trials of a sweep. Only the rows in view are in the document; headers sort them. */
export function TrialTable(props: Props): JSX.Element {
  const { columns, rows, selected, onSelect } = props;
  const scroll = useRef<HTMLDivElement>(null);
  const virtual = useVirtualRows(rows.length, rowHeight, headHeight, scroll);
  const at = rows.indexOf(selected);
  const row = at < 0 ? undefined : rows.at(at);
  const latest = useRef(props);
  latest.current = props;

  const indexes = printing.value
    ? Array.from({ length: Math.min(rows.length, mostPrintedRows) }, (_, index) => index)
    : virtual.rows.map(({ index }) => index);
  const first = indexes[0] ?? 0;
  const last = indexes.at(-1) ?? 0;
  useEffect(() => rows.want?.(first, last), [rows, first, last]);

  const cursor = useCursor(rows.length, at, (index) => {
    const chosen = rows.at(index);
    if (chosen) onSelect(chosen.number);
    else virtual.scrollTo(index);
  });
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
    x: () => selected !== undefined && togglePicked(selected),
    e: () => selected !== undefined && props.onEnqueueCopy?.(selected),
    Enter: () => {
      const chosen = rows.at(cursor.at());
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
      <p class="visually-hidden" role="status">
        {row && `Trial ${row.number}, ${row.state}. ${trialSentence(row)}`}
      </p>
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
          {indexes.map((index) => {
            if (index >= rows.length) return null;
            const shown = rows.at(index);
            if (!shown)
              return <LoadingRow key={`place ${index}`} columns={columns} index={index} />;
            return (
              <Row
                key={shown.number}
                row={shown}
                index={index}
                columns={columns}
                cellRevision={props.cellRevision}
                isBest={shown.number === props.best}
                isSelected={shown.number === selected}
                isHovered={shown.number === props.hovered}
                table={latest}
              />
            );
          })}
          {virtual.below > 0 && <Spacer height={virtual.below} />}
        </tbody>
      </table>
      {rows.length === 0 && <p class="muted none">{props.empty}</p>}
      {printing.value && rows.length > mostPrintedRows && (
        <p class="muted none">
          The first {mostPrintedRows} of {plural(rows.length, 'trial')}.
        </p>
      )}
    </div>
  );
}

function Spacer({ height }: { height: number }): JSX.Element {
  return <tr class="spacer" aria-hidden="true" style={{ height: `${height}px` }} />;
}

/** A row that is being read. */
function LoadingRow({
  columns,
  index,
}: {
  columns: readonly Column[];
  index: number;
}): JSX.Element {
  return (
    <tr class="loading-row" aria-rowindex={index + 2} aria-busy="true">
      {columns.map(({ key }, i) => (
        <td key={key}>{i < 4 && <span />}</td>
      ))}
    </tr>
  );
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

interface RowProps {
  row: TrialRow;
  index: number;
  columns: readonly Column[];
  cellRevision: unknown;
  isBest: boolean;
  isSelected: boolean;
  isHovered: boolean;
  /** The newest properties of the table, for handlers. */
  table: { current: Pick<Props, 'onSelect' | 'onHover'> };
}

/** A row renders again only if one of its properties changes. */
class Row extends Component<RowProps> {
  override shouldComponentUpdate(next: RowProps): boolean {
    const before = this.props;
    return (Object.keys(next) as (keyof RowProps)[]).some((key) => next[key] !== before[key]);
  }

  override render({ row, index, columns, ...props }: RowProps): JSX.Element {
    const { isBest, isSelected, isHovered, table } = props;
    const classes = ['openable', isBest ? 'best' : '', isHovered ? 'hovered' : ''];
    const click = (event: MouseEvent): void => {
      if (event.shiftKey) return togglePicked(row.number);
      if (!(event.target as Element).closest('a'))
        table.current.onSelect(isSelected ? undefined : row.number);
    };
    return (
      <tr
        class={classes.join(' ')}
        data-trial={row.number}
        aria-rowindex={index + 2}
        aria-current={isSelected}
        onMouseDown={(event) => event.shiftKey && event.preventDefault()}
        onClick={click}
        onDblClick={() => navigate(trialUrl(row.sweep, row.number))}
        onMouseEnter={() => table.current.onHover(row.number)}
      >
        {columns.map((column, i) => (
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
}
