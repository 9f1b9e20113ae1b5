import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import { navigate, trialUrl } from '../../router';

interface ClickedPoint {
  number: number;
  /** The place of the click in the window, in pixels. */
  x: number;
  y: number;
}

interface PointMenu {
  /** Handles a click before the plot does, to learn its place. */
  noteClick(event: MouseEvent): void;
  /** Called when the user clicks the point of a trial. */
  open(number: number): void;
  menu: JSX.Element | undefined;
}

/** Opens a menu at a trial's point in a plot; opens the trial if the user may not enqueue a copy. */
export function usePointMenu(
  sweep: string,
  onEnqueueCopy: ((number: number) => void) | undefined,
): PointMenu {
  const click = useRef({ x: 0, y: 0 });
  const [shown, setShown] = useState<ClickedPoint>();
  return {
    noteClick: ({ clientX, clientY }) => (click.current = { x: clientX, y: clientY }),
    open: (number) => {
      if (onEnqueueCopy) setShown({ number, ...click.current });
      else navigate(trialUrl(sweep, number));
    },
    menu: shown && onEnqueueCopy && (
      <Menu
        key={`${shown.x} ${shown.y}`}
        sweep={sweep}
        point={shown}
        onEnqueueCopy={onEnqueueCopy}
        // A click on another point shows its menu before this one reports that it is closed.
        onClose={() => setShown((now) => (now === shown ? undefined : now))}
      />
    ),
  };
}

function Menu({
  sweep,
  point: { number, x, y },
  onEnqueueCopy,
  onClose,
}: {
  sweep: string;
  point: ClickedPoint;
  onEnqueueCopy(number: number): void;
  onClose(): void;
}): JSX.Element {
  const menu = useRef<HTMLDivElement>(null);
  useEffect(() => menu.current?.showPopover(), []);
  const enqueue = (): void => {
    menu.current?.hidePopover();
    onEnqueueCopy(number);
  };
  return (
    <div
      ref={menu}
      popover="auto"
      class="point-menu"
      role="group"
      aria-label={`Trial ${number}`}
      style={{ '--x': `${x}px`, '--y': `${y}px` }}
      onToggle={({ newState }) => newState === 'closed' && onClose()}
    >
      <a href={trialUrl(sweep, number)} autofocus>
        Open trial {number}
      </a>
      <button type="button" onClick={enqueue}>
        Enqueue a copy…
      </button>
    </div>
  );
}
