import { describe, expect, it } from 'vitest';

import { diffLines } from '../../../web/src/model/line_diff';

const text = (lines: ReturnType<typeof diffLines>): string[] =>
  lines.map(({ kind, text }) => `${{ same: ' ', removed: '-', added: '+' }[kind]}${text}`);

describe('the difference of two texts', () => {
  it('names lines that stay, are removed and are added', () => {
    expect(text(diffLines('a\nb\nc\nd\n', 'a\nx\nc\nd\ne\n'))).toEqual([
      ' a',
      '-b',
      '+x',
      ' c',
      ' d',
      '+e',
    ]);
  });

  it('of equal texts has only lines that stay', () => {
    expect(text(diffLines('a\nb', 'a\nb\n'))).toEqual([' a', ' b']);
  });

  it('keeps a longest common sequence of lines', () => {
    const lines = diffLines('p\na\nb\nc\nq', 'r\nb\na\nb\nc\ns');
    expect(lines.filter(({ kind }) => kind === 'same').map((line) => line.text)).toEqual([
      'a',
      'b',
      'c',
    ]);
  });

  it('of very long texts shows everything as changed', () => {
    const many = (name: string): string =>
      Array.from({ length: 3000 }, (_, i) => `${name} ${i}`).join('\n');
    const lines = diffLines(many('a'), many('b'));
    expect(lines).toHaveLength(6000);
  });
});
