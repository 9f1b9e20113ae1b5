import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

import type { Metric } from '../api/types';
import type { Sort } from '../model/columns';
import { formatConfig, formatMetric } from '../model/numbers';
import { trialSentence } from '../model/reason';
import type { TrialRow } from '../model/sweep_model';
import { formatDuration } from '../model/time';
import { navigate, trialUrl } from '../router';
import { colorToken, type ColorBy } from '../ui/colors';
import { useCursor } from '../ui/cursor';
import { StateLabel } from '../ui/icons';
import { useKeys } from '../ui/keys';
import { useVirtualRows } from '../ui/virtual';

interface Props {
  rows: readonly TrialRow[];
  parameters: readonly string[];
  metric: Metric;
  sort: Sort;
  colorBy: ColorBy;
  best: number | undefined;
  selected: number | undefined;
  hovered: number | undefined;
  /** What else is to be said beside a trial's state. */
  noteOf(row: TrialRow): string;
  onSort(key: string): void;
  onSelect(number: number | undefined): void;
  onHover(number: number | undefined): void;
}

interface Column {
  key: string;
  label: string;
  width: number;
  numeric: boolean;
  note?: string;
}

const rowHeight = 34;
const headHeight = 34;
const pageRows = 10;

/** The trials, of which only those in view are in the document; sorted by their headers. */
export function TrialTable(props: Props): JSX.Element {
  const { rows, selected, onSelect } = props;
  const scroll = useRef<HTMLDivElement>(null);
  const columns = columnsOf(props);
  const virtual = useVirtualRows(rows.length, rowHeight, headHeight, scroll);
  const at = rows.findIndex((each) => each.number === selected);
  const row = rows[at];

  const cursor = useCursor(rows.length, at, (index) => onSelect(rows[index]?.number));
  // The selection may come from the chart or the URL: show it. Not when rows move under it.
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
        style={{ minWidth: `${columns.reduce((sum, column) => sum + column.width, 0)}px` }}
      >
        <colgroup>
          {columns.map((column) => (
            <col
              key={column.key}
              style={column.key === 'reason' ? {} : { width: `${column.width}px` }}
            />
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
            return (
              shown && (
                <Row key={shown.number} {...props} row={shown} index={index} columns={columns} />
              )
            );
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
  const active = sort.key === column.key;
  const direction = sort.descending ? 'descending' : 'ascending';
  return (
    <th scope="col" class={column.numeric ? 'number' : ''} aria-sort={active ? direction : 'none'}>
      <button
        type="button"
        class="sort"
        onClick={() => onSort(column.key)}
        title={column.note ?? `Sort by ${column.label}`}
      >
        {column.label}
        <span class="arrow" aria-hidden="true">
          {active ? (sort.descending ? '▾' : '▴') : ''}
        </span>
      </button>
    </th>
  );
}

function Row({
  row,
  index,
  columns,
  ...props
}: Props & { row: TrialRow; index: number; columns: readonly Column[] }): JSX.Element {
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
      {columns.map((column) => (
        <Cell
          key={column.key}
          column={column}
          row={row}
          isBest={row.number === props.best}
          colorBy={props.colorBy}
          note={props.noteOf(row)}
        />
      ))}
    </tr>
  );
}

function Cell({
  column,
  row,
  isBest,
  colorBy,
  note,
}: {
  column: Column;
  row: TrialRow;
  isBest: boolean;
  colorBy: ColorBy;
  note: string;
}): JSX.Element {
  switch (column.key) {
    case 'number':
      return (
        <th scope="row">
          <a href={trialUrl(row.sweep, row.number)} class="trial-link" tabIndex={-1}>
            <span class="line-swatch" style={{ background: `var(${colorToken(row, colorBy)})` }} />
            {row.number}
          </a>
        </th>
      );
    case 'state':
      return (
        <td>
          <StateLabel state={row.state} />
          {note && <span class="muted small"> {note}</span>}
        </td>
      );
    case 'best':
      return (
        <td class="number">
          {isBest && <span class="tag">best</span>}{' '}
          {row.best === undefined ? '' : formatMetric(row.best)}
        </td>
      );
    case 'step':
      return <td class="number">{row.step || ''}</td>;
    case 'seconds':
      return <td class="number">{row.seconds > 0 ? formatDuration(row.seconds) : ''}</td>;
    case 'reason': {
      const text = trialSentence(row);
      return (
        <td class="reason" title={text}>
          {text}
        </td>
      );
    }
    default: {
      const value = row.config[column.label];
      return (
        <td
          class={column.numeric ? 'number' : ''}
          title={value === undefined ? 'not active' : String(value)}
        >
          {formatConfig(value)}
        </td>
      );
    }
  }
}

function columnsOf({
  parameters,
  rows,
  metric,
  noteOf,
}: Pick<Props, 'parameters' | 'rows' | 'metric' | 'noteOf'>): Column[] {
  const noted = rows.some((row) => noteOf(row) !== '');
  const first = rows[0]?.config ?? {};
  return [
    { key: 'number', label: 'trial', width: 84, numeric: false },
    { key: 'state', label: 'state', width: noted ? 196 : 124, numeric: false },
    {
      key: 'best',
      label: metric.name,
      width: Math.max(128, metric.name.length * 8 + 40),
      numeric: true,
      note: `Sort by the best ${metric.name} of each trial; the ${metric.mode === 'max' ? 'highest' : 'lowest'} is best`,
    },
    { key: 'step', label: 'step', width: 72, numeric: true },
    { key: 'seconds', label: 'time', width: 108, numeric: true },
    ...parameters.map((name) => ({
      key: `config.${name}`,
      label: name,
      width: Math.min(180, Math.max(108, name.length * 8 + 36)),
      numeric: typeof first[name] === 'number',
    })),
    { key: 'reason', label: 'reason', width: 380, numeric: false },
  ];
}
