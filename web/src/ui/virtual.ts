import {
  Virtualizer,
  elementScroll,
  observeElementOffset,
  observeElementRect,
  type VirtualItem,
} from '@tanstack/virtual-core';
import { useEffect, useLayoutEffect, useReducer, useRef, type MutableRef } from 'preact/hooks';

export interface VirtualRows {
  rows: VirtualItem[];
  /** The heights of the space above and below the rows, in pixels. */
  above: number;
  below: number;
  scrollTo(index: number): void;
}

const overscanRows = 8;

/** The rows of a long table that are in view; all rows have the same height. */
export function useVirtualRows(
  count: number,
  rowHeight: number,
  headHeight: number,
  container: MutableRef<HTMLElement | null>,
): VirtualRows {
  const [, rerender] = useReducer<number, void>((tick) => tick + 1, 0);
  const held = useRef<Virtualizer<HTMLElement, HTMLElement>>();
  const options = {
    count,
    getScrollElement: () => container.current,
    estimateSize: () => rowHeight,
    overscan: overscanRows,
    scrollPaddingStart: headHeight,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => rerender(),
  };
  held.current ??= new Virtualizer<HTMLElement, HTMLElement>(options);
  const virtualizer = held.current;
  virtualizer.setOptions(options);
  useEffect(() => virtualizer._didMount(), [virtualizer]);
  useLayoutEffect(() => virtualizer._willUpdate());

  const rows = virtualizer.getVirtualItems();
  return {
    rows,
    above: rows[0]?.start ?? 0,
    below: virtualizer.getTotalSize() - (rows.at(-1)?.end ?? 0),
    scrollTo: (index) => virtualizer.scrollToIndex(index, { align: 'auto' }),
  };
}
