import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import type { HeldAttempt } from '../api/contract';
import { formatDuration } from '../model/time';
import { stateOfOutcome, type Bar, type Slot } from '../model/timeline';
import { lineToken } from './colors';
import { redraws } from './export/plot_export';
import { paintEpoch } from './theme';
import { barAt, drawTimeline, headHeight, rowHeight, type TimelineView } from './timeline_drawing';

interface Props {
  slots: readonly Slot[];
  /** The number of each sweep, which determines its colour. */
  sweeps: ReadonlyMap<string, number>;
  /** Milliseconds since 1970. */
  since: number;
  until: number;
  onOpen(attempt: HeldAttempt): void;
}

const mostHeight = 460;

interface Hovered {
  bar: Bar;
  slot: Slot;
  x: number;
  y: number;
}

/** The slots as rows and the attempts as bars. Only the rows in view are drawn. */
export function TimelineCanvas(props: Props): JSX.Element {
  const { slots, sweeps, since, until } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const scroll = useRef<HTMLDivElement>(null);
  const [hovered, setHovered] = useState<Hovered>();
  const [width, setWidth] = useState(0);
  const [top, setTop] = useState(0);
  const epoch = paintEpoch.value;
  const whole = headHeight + slots.length * rowHeight;
  const height = Math.min(whole, mostHeight);
  const view: TimelineView = { slots, sweeps, since, until, width, height, top };

  useEffect(() => {
    const host = scroll.current as HTMLElement;
    const observer = new ResizeObserver(() => setWidth(host.clientWidth));
    observer.observe(host);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const drawn = canvas.current;
    if (!drawn || width === 0) return;
    const draw = (): void => drawTimeline(drawn, view, hovered?.bar);
    redraws.set(drawn, draw);
    draw();
    drawn.dataset.bars = String(slots.reduce((count, { bars }) => count + bars.length, 0));
  }, [slots, sweeps, since, until, width, height, top, epoch, hovered?.bar]);

  const point = (event: MouseEvent): void => {
    const box = (canvas.current as HTMLElement).getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const found = barAt(view, x, y);
    setHovered(found && { ...found, x, y });
  };
  return (
    <div class="slot-timeline">
      <div
        ref={scroll}
        class="slot-scroll"
        style={{ maxHeight: `${mostHeight}px` }}
        onScroll={(event) => {
          setTop(event.currentTarget.scrollTop);
          setHovered(undefined);
        }}
      >
        <div style={{ height: `${whole}px` }}>
          <canvas
            ref={canvas}
            class={hovered ? 'slot-open' : ''}
            style={{ width: '100%', height: `${height}px` }}
            role="img"
            aria-label="Attempts by slot and time; the button Table shows them as a table"
            onMouseMove={point}
            onMouseLeave={() => setHovered(undefined)}
            onClick={() => hovered && props.onOpen(hovered.bar.attempt)}
          />
        </div>
      </div>
      {hovered && <Tip hovered={hovered} width={width} />}
    </div>
  );
}

function Tip({ hovered, width }: { hovered: Hovered; width: number }): JSX.Element {
  const { bar, slot, x, y } = hovered;
  const { sweep, sweep_name, trial, attempt, outcome } = bar.attempt;
  const place = x > width / 2 ? { right: `${width - x + 12}px` } : { left: `${x + 12}px` };
  return (
    <div class="slot-tip" style={{ ...place, top: `${y + 12}px` }} role="status">
      <b>
        {sweep}/{trial}
      </b>{' '}
      {sweep_name}
      <div class="muted">
        attempt {attempt} on {slot.executor}, {bar.ranks.length === 1 ? 'rank' : 'ranks'}{' '}
        {bar.ranks.join(', ')}
      </div>
      <div class="muted">
        {formatDuration((bar.end - bar.begin) / 1000)}, {outcome || 'runs'}
      </div>
    </div>
  );
}

const mostSweeps = 7;

/** The colours of sweeps and the marks at the ends of bars. */
export function TimelineLegend({
  attempts,
  sweeps,
}: {
  attempts: readonly HeldAttempt[];
  sweeps: ReadonlyMap<string, number>;
}): JSX.Element {
  const names = new Map(attempts.map(({ sweep, sweep_name }) => [sweep, sweep_name]));
  const outcomes = [...new Set(attempts.map(({ outcome }) => outcome))].filter(Boolean).sort();
  return (
    <span class="slot-legend">
      {[...sweeps].slice(0, mostSweeps).map(([sweep, order]) => (
        <span key={sweep}>
          <span class="swatch" style={{ background: `var(${lineToken(order)})` }} /> {sweep}{' '}
          {names.get(sweep)}
        </span>
      ))}
      {sweeps.size > mostSweeps && <span>and {sweeps.size - mostSweeps} more sweeps</span>}
      {outcomes.length > 0 && <span>Marks at the ends:</span>}
      {outcomes.map((outcome) => (
        <span key={outcome} class={`state-${stateOfOutcome(outcome)}`}>
          {marks[outcome] ?? '▲'} {outcome}
        </span>
      ))}
    </span>
  );
}

const marks: Record<string, string> = {
  finished: '●',
  stopped: '■',
  paused: '❚❚',
  killed: '✕',
};
