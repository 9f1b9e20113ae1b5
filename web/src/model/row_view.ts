import { compareNatural, type ColumnData, type Sort, type Value } from './columns';
import type { Predicate } from './filter';
import type { SweepModel, TrialRow } from './sweep_model';

// With more changed rows than this share, sorting everything is faster.
const mostInserted = 0.05;

/**
 * The rows that match a filter, in the order of a column. Rows without a value come last in both
 * directions; equal rows are ordered by number. Sorts again only if the column or the filter
 * changes; rows that change later are removed and inserted again.
 */
export class RowView {
  rows: readonly TrialRow[] = [];
  private model: SweepModel | undefined;
  private revision = -1;
  private matches: Predicate | undefined;
  private sort: Sort | undefined;
  private compare: (a: TrialRow, b: TrialRow) => number = byNumber;

  /** Returns the rows; the same array as before if nothing changed. */
  update(
    model: SweepModel,
    matches: Predicate,
    sort: Sort,
    columns: readonly ColumnData[],
  ): readonly TrialRow[] {
    const isSame =
      model === this.model &&
      matches === this.matches &&
      sort.key === this.sort?.key &&
      sort.descending === this.sort.descending;
    if (isSame && model.revision === this.revision) return this.rows;
    const { changes } = model;
    const follows = model.revision === this.revision + 1;
    const few = changes && changes.size <= 20 + mostInserted * model.trials.size;
    if (isSame && follows && few) this.insert(model, changes, matches);
    else {
      const kept: TrialRow[] = [];
      for (const row of model.trials.values()) if (matches(row)) kept.push(row);
      const column = sortColumn(sort, columns);
      this.compare = column ? rowOrder(column, sort.descending) : byNumber;
      this.rows = sortRows(kept, column, sort.descending);
    }
    [this.model, this.revision, this.matches, this.sort] = [model, model.revision, matches, sort];
    return this.rows;
  }

  private insert(model: SweepModel, changes: ReadonlySet<number>, matches: Predicate): void {
    if (changes.size === 0) return;
    const rows = this.rows.filter((row) => !changes.has(row.number));
    const { compare } = this;
    for (const number of changes) {
      const row = model.trials.get(number);
      if (!row || !matches(row)) continue;
      let low = 0;
      let high = rows.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (compare(rows[middle] as TrialRow, row) > 0) high = middle;
        else low = middle + 1;
      }
      rows.splice(low, 0, row);
    }
    this.rows = rows;
  }
}

function sortColumn(sort: Sort, columns: readonly ColumnData[]): ColumnData | undefined {
  return columns.find(({ key, sortable }) => sortable && key === sort.key);
}

const byNumber = (a: TrialRow, b: TrialRow): number => a.number - b.number;

function rowOrder(column: ColumnData, descending: boolean): (a: TrialRow, b: TrialRow) => number {
  const sign = descending ? -1 : 1;
  const compare = (left: Value, right: Value): number => {
    if (!column.order) return compareNatural(left, right);
    const [first, second] = [column.order(left), column.order(right)];
    return first === second ? 0 : first - second;
  };
  return (a, b) => {
    const [left, right] = [column.value(a), column.value(b)];
    if (left === undefined || right === undefined) {
      if (left !== right) return left === undefined ? 1 : -1;
      return a.number - b.number;
    }
    return sign * compare(left, right) || a.number - b.number;
  };
}

/** Sorts by keys in a typed array: the value, or its rank among all values. */
export function sortRows(
  rows: readonly TrialRow[],
  column: ColumnData | undefined,
  descending: boolean,
): TrialRow[] {
  if (!column) return [...rows].sort(byNumber);
  const keys = keysOf(rows, column, descending);
  const numbers = Float64Array.from(rows, (row) => row.number);
  const order = Uint32Array.from(rows, (_, i) => i);
  order.sort((a, b) => {
    const [left, right] = [keys[a] as number, keys[b] as number];
    if (left !== right) return left - right;
    return (numbers[a] as number) - (numbers[b] as number);
  });
  return Array.from(order, (i) => rows[i] as TrialRow);
}

// The key of rows without a value is larger than all others.
const noValue = Number.MAX_VALUE;

function keysOf(rows: readonly TrialRow[], column: ColumnData, descending: boolean): Float64Array {
  const sign = descending ? -1 : 1;
  const values = rows.map((row) => column.value(row));
  const orderOf = column.order ?? (values.some(isWord) ? rankAmong(values) : Number);
  const most = Number.MAX_VALUE / 2;
  return Float64Array.from(values, (value) => {
    if (value === undefined) return noValue;
    return Math.max(-most, Math.min(most, sign * orderOf(value)));
  });
}

const isWord = (value: Value): boolean => value !== undefined && typeof value !== 'number';

function rankAmong(values: readonly Value[]): (value: Value) => number {
  const distinct = [...new Set(values)].filter((value) => value !== undefined);
  distinct.sort(compareNatural);
  const ranks = new Map<Value, number>();
  let rank = 0;
  distinct.forEach((value, i) => {
    if (i > 0 && compareNatural(distinct[i - 1], value) !== 0) rank += 1;
    ranks.set(value, rank);
  });
  return (value) => ranks.get(value) as number;
}
