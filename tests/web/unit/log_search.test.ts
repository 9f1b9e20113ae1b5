import { describe, expect, it } from 'vitest';

import { LogSearch, searchPattern } from '../../../web/src/model/logs/log_search';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

function matches(text: string, pattern: string, pieces: number, matchCase = false) {
  const search = new LogSearch(searchPattern(pattern, matchCase), 100);
  const all = bytes(text);
  for (let at = 0; at < all.length; at += pieces) search.add(all.slice(at, at + pieces), at);
  search.finish();
  return search.matches.map(({ offset, line, begin, end }) => [offset, line.slice(begin, end)]);
}

describe('a search in a log', () => {
  const log = 'epoch 1 loss 0.5\nEpoch 2 löss 0.4\nend (100%)';

  it('finds lines, however the log arrives', () => {
    for (const pieces of [1, 3, 7, 1000]) {
      expect(matches(log, 'epoch', pieces)).toEqual([
        [0, 'epoch'],
        [17, 'Epoch'],
      ]);
      expect(matches(log, 'löss', pieces)).toEqual([[17, 'löss']]);
      expect(matches(log, 'END', pieces)).toEqual([[bytes(log).length - 10, 'end']]);
    }
  });

  it('can match the case, and knows regular expressions', () => {
    expect(matches(log, 'epoch', 100, true)).toEqual([[0, 'epoch']]);
    expect(matches(log, '/l.ss 0\\.[45]/', 100)).toHaveLength(2);
    expect(matches(log, '(100%)', 100)).toHaveLength(1);
    expect(() => searchPattern('/(/', false)).toThrow(SyntaxError);
  });

  it('finds a match at the end of a long line, and shows the part around it', () => {
    const search = new LogSearch(searchPattern('needle', false), 10);
    search.add(bytes(`${'x'.repeat(5000)}needle\n`), 0);
    const [match] = search.matches;
    expect(match?.line.slice(match.begin, match.end)).toBe('needle');
    expect(match?.line.length).toBeLessThan(2001);
  });

  it('stops when it has found enough, and continues after a gap', () => {
    const search = new LogSearch(searchPattern('a', false), 2);
    search.add(bytes('a\na\na\n'), 0);
    expect(search.isFull).toBe(true);
    expect(search.matches).toHaveLength(2);
    const other = new LogSearch(searchPattern('a', false), 10);
    other.add(bytes('a\nxa'), 0);
    other.add(bytes('a\n'), 100);
    expect(other.matches.map(({ offset }) => offset)).toEqual([0, 2, 100]);
  });
});
