import { describe, expect, it } from 'vitest';

import { chooseColumns, formatColumns, moved } from '../../../web/src/model/chosen_columns';

const all = [{ key: 'number' }, { key: 'config.a,b' }, { key: 'ended', isOptional: true as const }];
const keysOf = (text: string | undefined): string[] =>
  chooseColumns(all, text).map(({ key }) => key);

describe('the chosen columns', () => {
  it('are the usual ones without a choice, or with only unknown columns', () => {
    expect(keysOf(undefined)).toEqual(['number', 'config.a,b']);
    expect(keysOf('gone')).toEqual(['number', 'config.a,b']);
    expect(keysOf('%')).toEqual(['number', 'config.a,b']);
  });

  it('keep their order, and names with commas', () => {
    const text = formatColumns(['ended', 'config.a,b', 'number']);
    expect(keysOf(text)).toEqual(['ended', 'config.a,b', 'number']);
    expect(keysOf('ended,ended,number')).toEqual(['ended', 'number']);
  });

  it('move within the list', () => {
    expect(moved(['a', 'b', 'c'], 0, 1)).toEqual(['b', 'a', 'c']);
    expect(moved(['a', 'b', 'c'], 2, 5)).toEqual(['a', 'b', 'c']);
    expect(moved(['a', 'b', 'c'], 1, -1)).toEqual(['b', 'a', 'c']);
  });
});
