import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

import { firstMetric, formatAt, valuesOf, type Axis, type Strands } from '../model/axes';
import { chosenStrands, type Brush, type Brushes } from '../model/brush';
import { AxesTable } from './axes_table';
import { Chart } from './chart';
import { Grip } from './grip';
import { layOut } from './parallel_layout';
import { ParallelPlot } from './parallel_plot';
import { paintEpoch } from './theme';

interface Props {
  axes: readonly Axis[];
  strands: Strands;
  brushes: Brushes;
  selected: number | undefined;
  hovered: number | undefined;
  summary: string;
  onHover(number: number | undefined): void;
  onOpen(number: number): void;
  /** Undefined removes the brush. */
  onBrush(axis: Axis, brush: Brush | undefined): void;
  /** Shown if there are no trials. */
  empty?: ComponentChildren;
  views?: ComponentChildren;
  controls?: ComponentChildren;
}

/** Trials as lines across an axis for each parameter and metric; brushes select ranges. */
export function ParallelChart(props: Props): JSX.Element {
  return (
    <Chart
      label="Parallel coordinates"
      title="Parameters"
      by={props.axes[firstMetric(props.axes)]?.name ?? ''}
      views={props.views}
      controls={props.controls}
      data={() => ({
        columns: ['trial', ...props.axes.map(({ name }) => name)],
        rows: Array.from(props.strands.numbers, (number, line) => [
          number,
          ...props.axes.map((axis, i) => exportedValue(axis, valuesOf(props.strands, line)[i])),
        ]),
      })}
      canvas={() => <Canvases {...props} />}
      table={() => <AxesTable axes={props.axes} brushes={props.brushes} onBrush={props.onBrush} />}
      caption={(asTable) =>
        props.summary +
        (asTable
          ? ''
          : ' Drag along an axis to select a range; double-click it to clear the range.')
      }
    />
  );
}

function exportedValue(axis: Axis, value = NaN): string | number | undefined {
  if (Number.isNaN(value)) return undefined;
  return axis.kind === 'listed' ? formatAt(axis, value) : value;
}

function Canvases(props: Props): JSX.Element {
  const { axes, strands, brushes } = props;
  const scroll = useRef<HTMLDivElement>(null);
  const rest = useRef<HTMLCanvasElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const overlay = useRef<HTMLCanvasElement>(null);
  const plot = useRef<ParallelPlot>();
  const [draft, setDraft] = useState<{ key: string; brush: Brush | undefined }>();
  const epoch = paintEpoch.value;
  const size = useSize(scroll);
  const layout = useMemo(() => layOut(axes, size.width, size.height), [axes, size]);

  const drawn = useMemo(() => withDraft(brushes, draft), [brushes, draft]);
  const chosen = useMemo(() => chosenStrands(drawn, axes, strands), [axes, strands, drawn]);

  useEffect(() => {
    const made = new ParallelPlot(
      rest.current as HTMLCanvasElement,
      canvas.current as HTMLCanvasElement,
      overlay.current as HTMLCanvasElement,
    );
    plot.current = made;
    return () => made.destroy();
  }, []);
  const before = useRef({ drawn, epoch });
  useEffect(() => {
    if (size.width === 0) return;
    const brushed = before.current.drawn !== drawn && before.current.epoch === epoch;
    before.current = { drawn, epoch };
    plot.current?.update({ axes, strands, chosen, layout, selected: props.selected }, brushed);
  }, [axes, strands, chosen, layout, props.selected, epoch]);
  useEffect(() => plot.current?.highlight(props.hovered), [props.hovered]);

  const lineAt = ({ clientX, clientY }: MouseEvent): number | undefined => {
    const { left, top } = (canvas.current as HTMLCanvasElement).getBoundingClientRect();
    return plot.current?.at(clientX - left, clientY - top);
  };
  const point = (event: PointerEvent): void =>
    props.onHover(draft === undefined ? lineAt(event) : undefined);
  // A drag that ends over a line is not a click on it.
  const pressed = useRef<PointerEvent>();
  const click = (event: MouseEvent): void => {
    const onGrip = (event.target as Element).closest('.grip') !== null;
    const number = onGrip || isDrag(pressed.current, event) ? undefined : lineAt(event);
    if (number !== undefined) props.onOpen(number);
  };
  const scrolls = layout.width > size.width;
  return (
    <div class="plot">
      <div
        ref={scroll}
        class="parallel-scroll"
        {...(scrolls ? { tabIndex: 0, role: 'region', 'aria-label': 'Axes' } : {})}
      >
        <div
          class={props.hovered === undefined ? 'parallel' : 'parallel plot-pointed'}
          style={{ width: `${layout.width}px`, height: `${layout.height}px` }}
          data-testid="parallel"
          aria-hidden="true"
          onPointerDown={(event) => (pressed.current = event)}
          onPointerMove={point}
          onPointerLeave={() => props.onHover(undefined)}
          onClick={click}
        >
          <canvas ref={rest} class="parallel-canvas" hidden />
          <canvas ref={canvas} class="parallel-canvas" />
          <canvas ref={overlay} class="parallel-canvas" />
          {axes.map((axis, i) => (
            <Grip
              key={axis.key}
              axis={axis}
              x={layout.xs[i] as number}
              room={(layout.xs[i + 1] ?? layout.width) - (layout.xs[i] as number)}
              layout={layout}
              brush={drawn[axis.key]}
              onDraft={(brush) => setDraft({ key: axis.key, brush })}
              onDone={(brush) => {
                setDraft(undefined);
                props.onBrush(axis, brush);
              }}
              onCancel={() => setDraft(undefined)}
            />
          ))}
        </div>
      </div>
      {strands.numbers.length === 0 && (
        <p class="plot-empty">{props.empty ?? 'No trials to draw.'}</p>
      )}
      <Tooltip {...props} />
    </div>
  );
}

const largestClickPx = 4;

function isDrag(from: MouseEvent | undefined, to: MouseEvent): boolean {
  if (!from) return false;
  return Math.hypot(to.clientX - from.clientX, to.clientY - from.clientY) > largestClickPx;
}

function withDraft(
  brushes: Brushes,
  draft: { key: string; brush: Brush | undefined } | undefined,
): Brushes {
  if (!draft) return brushes;
  const { [draft.key]: _, ...others } = brushes;
  return draft.brush ? { ...others, [draft.key]: draft.brush } : others;
}

function Tooltip({ axes, strands, hovered }: Props): JSX.Element | null {
  const line = hovered === undefined ? -1 : strands.numbers.indexOf(hovered);
  if (line < 0) return null;
  const at = firstMetric(axes);
  const axis = axes[at];
  const value = valuesOf(strands, line)[at] ?? NaN;
  return (
    <div class="plot-tip" aria-hidden="true">
      <b>trial {hovered}</b> {axis?.name}{' '}
      {axis && !Number.isNaN(value) ? formatAt(axis, value) : 'without a value'}
    </div>
  );
}

function useSize(of: { current: HTMLElement | null }): { width: number; height: number } {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const element = of.current as HTMLElement;
    const measure = (): void => {
      const { clientWidth: width, clientHeight: height } = element;
      setSize((before) =>
        before.width === width && before.height === height ? before : { width, height },
      );
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return size;
}
