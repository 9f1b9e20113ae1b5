import type { JSX } from 'preact';

import { formatAt, type Axis } from '../model/axes';
import { absentOnly, brushText, type Brush, type Brushes } from '../model/brush';

interface Props {
  axes: readonly Axis[];
  brushes: Brushes;
  onBrush(axis: Axis, brush: Brush | undefined): void;
}

const everything: Brush = { low: -Infinity, high: Infinity, absent: true };

/** The axes and their brushes as a table, for users who do not drag. */
export function AxesTable({ axes, brushes, onBrush }: Props): JSX.Element {
  return (
    <div class="table-scroll plot-table" tabIndex={0} role="region" aria-label="Axes as a table">
      <table class="data">
        <thead>
          <tr>
            <th scope="col">axis</th>
            <th scope="col">scale</th>
            <th scope="col">from</th>
            <th scope="col">to</th>
            <th scope="col">absent</th>
            <th scope="col">kept</th>
          </tr>
        </thead>
        <tbody>
          {axes.map((axis) => (
            <Row
              key={axis.key}
              axis={axis}
              brush={brushes[axis.key]}
              onBrush={(brush) => onBrush(axis, brush)}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({
  axis,
  brush,
  onBrush,
}: {
  axis: Axis;
  brush: Brush | undefined;
  onBrush(brush: Brush | undefined): void;
}): JSX.Element {
  const { low, high, absent } = brush ?? everything;
  const change = (changes: Partial<Brush>): void => {
    const next = { low, high, absent: brush ? absent : false, ...changes };
    const all = next.low === -Infinity && next.high === Infinity;
    if (all && (next.absent || !axis.lane)) return onBrush(undefined);
    onBrush(next.low > next.high ? (next.absent ? absentOnly : undefined) : next);
  };
  return (
    <tr>
      <th scope="row">{axis.name}</th>
      <td class="muted">
        {axis.kind === 'listed'
          ? 'listed'
          : `${formatAt(axis, axis.min)} … ${formatAt(axis, axis.max)}${axis.kind === 'log' ? ', log' : ''}`}
      </td>
      <td>
        <End axis={axis} end="from" value={low} onChange={(value) => change({ low: value })} />
      </td>
      <td>
        <End axis={axis} end="to" value={high} onChange={(value) => change({ high: value })} />
      </td>
      <td>
        {axis.lane && (
          <input
            type="checkbox"
            aria-label={`${axis.name} absent`}
            checked={absent}
            onChange={(event) => change({ absent: event.currentTarget.checked })}
          />
        )}
      </td>
      <td>{brush ? brushText(axis, brush) : <span class="muted">all</span>}</td>
    </tr>
  );
}

function End({
  axis,
  end,
  value,
  onChange,
}: {
  axis: Axis;
  end: 'from' | 'to';
  value: number;
  onChange(value: number): void;
}): JSX.Element {
  const open = end === 'from' ? -Infinity : Infinity;
  const shown = Number.isFinite(value) ? String(value) : '';
  const read = (text: string): void => onChange(text === '' ? open : Number(text));
  const label = `${axis.name} ${end}`;
  if (axis.kind !== 'listed') {
    return (
      <input
        type="number"
        step="any"
        aria-label={label}
        value={shown}
        onChange={(event) => read(event.currentTarget.value)}
      />
    );
  }
  return (
    <select aria-label={label} value={shown} onChange={(event) => read(event.currentTarget.value)}>
      <option value="">any</option>
      {axis.values.map((each, i) => (
        <option key={i} value={String(i)}>
          {String(each)}
        </option>
      ))}
    </select>
  );
}
