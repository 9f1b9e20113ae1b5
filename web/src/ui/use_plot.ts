import { useEffect, useRef, useState, type MutableRef } from 'preact/hooks';

import { AxisPlot, type Painter, type PlotContent } from './axis_plot';
import { paintEpoch } from './theme';

interface Options<Content extends PlotContent> {
  painter(): Painter<Content>;
  content: Content;
  hovered: number | undefined;
  onHover(number: number | undefined): void;
  onClick(number: number): void;
  onZoom?(range: readonly [number, number] | undefined): void;
}

/**
 * Keeps a plot in a host element. It draws again when a member of `inputs` changes, or the colours.
 * `clipped` counts the curves or trials that leave the frame.
 */
export function usePlot<Content extends PlotContent>(
  options: Options<Content>,
  inputs: readonly unknown[],
): { host: MutableRef<HTMLDivElement | null>; clipped: number } {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<AxisPlot<Content>>();
  const latest = useRef(options);
  latest.current = options;
  const [clipped, setClipped] = useState(0);
  const epoch = paintEpoch.value;

  useEffect(() => {
    const made = new AxisPlot(host.current as HTMLElement, options.painter(), {
      hover: (number) => latest.current.onHover(number),
      click: (number) => latest.current.onClick(number),
      clip: setClipped,
      zoom: (range) => latest.current.onZoom?.(range),
    });
    plot.current = made;
    return () => made.destroy();
  }, []);
  useEffect(() => plot.current?.update(options.content, epoch), [...inputs, epoch]);
  useEffect(() => plot.current?.highlight(options.hovered), [options.hovered]);
  return { host, clipped };
}
