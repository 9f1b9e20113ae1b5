import type { JSX } from 'preact';

import type { Axis } from '../model/axes';
import { brushText, formatBrushes, type Brushes } from '../model/brush';
import { setQuery } from '../router';
import { Icon } from '../ui/icons';

/** One chip per brush, with its range; a click clears the brush. */
export function BrushChips({
  axes,
  brushes,
}: {
  axes: readonly Axis[];
  brushes: Brushes;
}): JSX.Element | null {
  const brushed = axes.filter((axis) => brushes[axis.key]);
  if (brushed.length === 0) return null;
  const clear = ({ key }: Axis): void => {
    const { [key]: _, ...others } = brushes;
    setQuery({ brush: formatBrushes(others) });
  };
  return (
    <div class="chips" role="group" aria-label="Brushes">
      {brushed.map((axis) => {
        const text = brushText(axis, brushes[axis.key] as Brushes[string]);
        return (
          <button
            key={axis.key}
            type="button"
            class="chip brush-chip"
            aria-label={`Clear ${text}`}
            title="Clear this range"
            onClick={() => clear(axis)}
          >
            {text} <Icon name="clear" />
          </button>
        );
      })}
    </div>
  );
}
