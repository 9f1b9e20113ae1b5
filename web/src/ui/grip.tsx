import { Fragment, type JSX } from 'preact';
import { useRef } from 'preact/hooks';

import type { Axis } from '../model/axes';
import { brushBetween, type Brush } from '../model/brush';
import { brushPlaces, placeAtY, yOfPlace, type Layout } from './parallel_layout';

interface Props {
  axis: Axis;
  x: number;
  /** The distance to the next axis, in pixels. */
  room: number;
  layout: Layout;
  brush: Brush | undefined;
  /** Called while the user drags. */
  onDraft(brush: Brush | undefined): void;
  onDone(brush: Brush | undefined): void;
  onCancel(): void;
}

const gripPx = 26;
const leastDragPx = 4;

/** The name of an axis, its brush, and the strip along the axis to draw and move the brush. */
export function Grip(props: Props): JSX.Element {
  const { axis, x, room, layout, brush } = props;
  const drag = useRef<{ fromY: number; moved: [number, number] | undefined; dragged: boolean }>();

  const yOf = (event: JSX.TargetedPointerEvent<HTMLElement>): number =>
    event.clientY - event.currentTarget.getBoundingClientRect().top + layout.top;
  const brushTo = (y: number): Brush | undefined => {
    const { fromY, moved } = drag.current as { fromY: number; moved: [number, number] | undefined };
    if (!moved) return brushBetween(axis, placeAtY(layout, fromY), placeAtY(layout, y));
    const by = (fromY - y) / (layout.bottom - layout.top);
    const [low, high] = moved;
    const shift = Math.max(-low, Math.min(1 - high, by));
    return brushBetween(axis, low + shift, high + shift);
  };
  const down = (event: JSX.TargetedPointerEvent<HTMLDivElement>): void => {
    if (event.button !== 0) return;
    event.preventDefault();
    event.currentTarget.setPointerCapture(event.pointerId);
    const y = yOf(event);
    const places = brush && brushPlaces(axis, brush);
    const at = placeAtY(layout, y);
    const inside = places && at >= places[0] && at <= places[1];
    drag.current = { fromY: y, moved: inside ? places : undefined, dragged: false };
  };
  const move = (event: JSX.TargetedPointerEvent<HTMLDivElement>): void => {
    const begun = drag.current;
    if (!begun) return;
    if (Math.abs(yOf(event) - begun.fromY) >= leastDragPx) begun.dragged = true;
    if (begun.dragged) props.onDraft(brushTo(yOf(event)));
  };
  const up = (event: JSX.TargetedPointerEvent<HTMLDivElement>): void => {
    const begun = drag.current;
    if (begun?.dragged) props.onDone(brushTo(yOf(event)));
    drag.current = undefined;
  };
  const cancel = (): void => {
    drag.current = undefined;
    props.onCancel();
  };
  return (
    <>
      <div
        class="axis-name"
        style={{ left: `${x - 4}px`, width: `${room - 6}px`, height: `${layout.top - 8}px` }}
        title={axis.name}
        data-plot-text={axis.name}
      >
        <span>{breakable(axis.name)}</span>
      </div>
      <div
        class="grip"
        data-axis={axis.key}
        style={{
          left: `${x - gripPx / 2}px`,
          width: `${gripPx}px`,
          top: `${layout.top}px`,
          height: `${(axis.lane ? layout.laneY + 10 : layout.bottom) - layout.top}px`,
        }}
        onPointerDown={down}
        onPointerMove={move}
        onPointerUp={up}
        onPointerCancel={cancel}
        onDblClick={() => props.onDone(undefined)}
      >
        {brush && <Stretches axis={axis} brush={brush} layout={layout} />}
      </div>
    </>
  );
}

// Allows line breaks at dots and dashes in long names.
function breakable(name: string): JSX.Element[] {
  return name.split(/(?<=[._/-])/).map((part, i) => (
    <Fragment key={i}>
      {part}
      <wbr />
    </Fragment>
  ));
}

function Stretches({
  axis,
  brush,
  layout,
}: {
  axis: Axis;
  brush: Brush;
  layout: Layout;
}): JSX.Element {
  const stretches: [number, number][] = [];
  const places = brushPlaces(axis, brush);
  if (places) stretches.push([yOfPlace(layout, places[1]), yOfPlace(layout, places[0])]);
  if (brush.absent && axis.lane) stretches.push([layout.laneY - 9, layout.laneY + 9]);
  return (
    <>
      {stretches.map(([from, to]) => (
        <span
          key={from}
          class="brush"
          style={{ top: `${from - layout.top}px`, height: `${Math.max(4, to - from)}px` }}
        />
      ))}
    </>
  );
}
