import type { ComponentChildren, JSX } from 'preact';

import { plural } from '../../model/numbers';
import type { ComparedRow } from '../../model/compare';

interface Props<Value> {
  /** The headers of the columns. */
  heads: readonly ComponentChildren[];
  rows: readonly ComparedRow<Value>[];
  /** The name of one row, for the line that counts the equal ones: "parameter". */
  noun: string;
  format(value: Value): string;
}

/** Members side by side: differences are marked, and equal members are folded. */
export function ComparedTable<Value>(props: Props<Value>): JSX.Element {
  const { rows, noun } = props;
  const differing = rows.filter((row) => row.differs);
  const equal = rows.filter((row) => !row.differs);
  return (
    <>
      {differing.length > 0 ? (
        <Rows {...props} rows={differing} />
      ) : (
        <p class="muted">Every {noun} is equal.</p>
      )}
      {equal.length > 0 && (
        <details class="equal">
          <summary class="small">{plural(equal.length, `equal ${noun}`)}</summary>
          <Rows {...props} rows={equal} />
        </details>
      )}
    </>
  );
}

function Rows<Value>({ heads, rows, noun, format }: Props<Value>): JSX.Element {
  return (
    <SideBySide corner={<th scope="col">{noun}</th>} heads={heads}>
      {rows.map((row) => (
        <tr key={row.name} class={row.differs ? 'differs' : ''}>
          <th scope="row">
            {row.differs && (
              <span class="unequal" title="differs">
                ≠{' '}
              </span>
            )}
            <span>{row.name}</span>
          </th>
          {row.values.map((value, i) => (
            <td key={i}>{value === undefined ? <span class="muted">–</span> : format(value)}</td>
          ))}
        </tr>
      ))}
    </SideBySide>
  );
}

/** The name of a fact, and its content for one of the compared objects. */
export type Fact<Compared> = [name: string, cell: (each: Compared) => ComponentChildren];

/** A row for each fact. */
export function FactTable<Compared>({
  heads,
  facts,
  compared,
}: {
  heads: readonly ComponentChildren[];
  facts: readonly Fact<Compared>[];
  compared: readonly Compared[];
}): JSX.Element {
  return (
    <SideBySide corner={<td />} heads={heads}>
      {facts.map(([name, cell]) => (
        <tr key={name}>
          <th scope="row">{name}</th>
          {compared.map((each, i) => (
            <td key={i} class="wrap">
              {cell(each)}
            </td>
          ))}
        </tr>
      ))}
    </SideBySide>
  );
}

function SideBySide({
  corner,
  heads,
  children,
}: {
  corner: ComponentChildren;
  heads: readonly ComponentChildren[];
  children: ComponentChildren;
}): JSX.Element {
  return (
    <div class="table-scroll">
      <table class="data compared">
        <thead>
          <tr>
            {corner}
            {heads.map((head, i) => (
              <th key={i} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
