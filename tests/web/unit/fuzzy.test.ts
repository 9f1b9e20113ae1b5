import { describe, expect, it } from 'vitest';

import { fuzzyScore, fuzzySort } from '../../../web/src/model/fuzzy';

describe('a fuzzy match', () => {
  it('needs all letters in their order', () => {
    expect(fuzzyScore('hst', 'History')).toBeGreaterThan(0);
    expect(fuzzyScore('tsh', 'History')).toBe(0);
    expect(fuzzyScore('historyy', 'History')).toBe(0);
  });

  it('prefers whole words, beginnings of words and short texts', () => {
    const sorted = (query: string, ...texts: string[]): string[] =>
      fuzzySort(query, texts, (text) => text);
    expect(sorted('stop', 'show top', 'Stop…')[0]).toBe('Stop…');
    expect(sorted('mv', 'remove', 'More views')[0]).toBe('More views');
    expect(sorted('kill', 'kill the sweep', 'kill')[0]).toBe('kill');
  });

  it('keeps the order for an empty query', () => {
    expect(fuzzySort(' ', ['b', 'a'], (text) => text)).toEqual(['b', 'a']);
  });
});
