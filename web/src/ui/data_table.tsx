import type { ComponentChildren, JSX } from 'preact';

/** A column of a table: its header and how to show a row. */
export interface TableColumn<Row> {
  label: ComponentChildren;
  cell(row: Row): ComponentChildren;
  /** Aligned to the right, in the header too. */
  numeric?: boolean;
  /** Classes of the cells. */
  class?: string;
  /** The tooltip of the header. */
  hint?: string;
}

interface Props<Row> {
  columns: readonly TableColumn<Row>[];
  rows: readonly Row[];
  rowKey(row: Row, index: number): string | number;
  /** Without it, the first column is the header of its row. */
  plainRows?: boolean;
  /** `data` for a wide table, `narrow` for one in a card. */
  class?: string;
  caption?: string;
  /** On narrow screens each row is a list of names and values, so that nothing is cut. */
  stacks?: boolean;
}

/** A plain table whose rows are all in the document. */
export function DataTable<Row>(props: Props<Row>): JSX.Element {
  const { columns, rows, plainRows, caption, stacks } = props;
  return (
    <table class={`${props.class ?? 'data'} ${stacks ? 'stacks' : ''}`.trim()}>
      {caption && <caption class="visually-hidden">{caption}</caption>}
      <thead>
        <tr>
          {columns.map(({ label, numeric, hint }, i) => (
            <th key={i} scope="col" class={numeric ? 'number' : ''} title={hint}>
              {label}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, index) => (
          <tr key={props.rowKey(row, index)}>
            {columns.map((column, i) => (
              <DataCell key={i} column={column} row={row} isHeader={i === 0 && !plainRows} />
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A cell of a table; as a header it names its row. */
export function DataCell<Row>({
  column,
  row,
  isHeader,
  title,
}: {
  column: TableColumn<Row>;
  row: Row;
  isHeader: boolean;
  title?: string | undefined;
}): JSX.Element {
  const classes = `${column.numeric ? 'number' : ''} ${column.class ?? ''}`.trim();
  const label = typeof column.label === 'string' ? column.label : undefined;
  if (isHeader) {
    return (
      <th scope="row" class={classes} title={title}>
        {column.cell(row)}
      </th>
    );
  }
  return (
    <td class={classes} title={title} data-label={label}>
      {column.cell(row)}
    </td>
  );
}
