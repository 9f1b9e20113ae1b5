import { describe, expect, it } from 'vitest';

import { countMask, Grid, GridPen } from '../../../web/src/ui/grid';

function drawn(...lines: [number, number][][]): Grid {
  const grid = new Grid(6, 5);
  const pen = new GridPen(grid);
  lines.forEach((points, i) => {
    pen.begin(i);
    for (const [x, y] of points) pen.to(x, y);
    pen.end();
  });
  return grid;
}

const counts = ({ width, height, cells }: Grid): string[] =>
  Array.from({ length: height }, (_, y) =>
    [...cells.subarray(y * width, (y + 1) * width)].map((cell) => cell & countMask).join(''),
  );

describe('a grid of pixels', () => {
  it('counts how many lines cross a pixel', () => {
    const grid = drawn(
      [
        [0.5, 2.5],
        [5.5, 2.5],
      ],
      [
        [0.5, 0.5],
        [2.5, 2.5],
        [5.5, 2.5],
      ],
    );
    expect(counts(grid)).toEqual(['100000', '110000', '122222', '000000', '000000']);
    expect(grid.most).toBe(2);
  });

  it('counts a line once in a pixel, also with several points there', () => {
    const steep = drawn([
      [2.1, 4.5],
      [2.3, 0.5],
      [2.5, 4.5],
      [2.7, 1.5],
    ]);
    expect(counts(steep)).toEqual(['001000', '001000', '001000', '001000', '001000']);
  });

  it('has no gaps in steep lines', () => {
    const rows = counts(
      drawn([
        [1.5, 4.9],
        [2.5, 0.1],
      ]),
    );
    expect(rows.every((row) => row.includes('1'))).toBe(true);
  });

  it('ignores what lies outside', () => {
    const grid = drawn([
      [-10, 2.5],
      [20, 2.5],
      [30, 1.5],
    ]);
    expect(counts(grid)).toEqual(['000000', '000000', '111111', '000000', '000000']);
    expect(
      drawn([
        [0.5, -9],
        [5.5, -2],
      ]).most,
    ).toBe(0);
    expect(
      drawn([
        [0.5, -1e9],
        [5.5, 1e9],
      ]).most,
    ).toBe(1);
  });

  it('keeps the shade of the newest line', () => {
    const grid = drawn([[0.5, 0.5]], [[0.5, 0.5]], [[0.5, 0.5]]);
    expect((grid.cells[0] as number) >>> 24).toBe(2);
    expect((grid.cells[0] as number) & countMask).toBe(3);
  });
});
