import { describe, expect, it } from 'vitest';

import { parseViews, renamedView, withView } from '../../../web/src/model/saved_views';

describe('saved views', () => {
  it('replace another of their name', () => {
    const views = withView([{ name: 'b', query: '1' }], { name: 'a', query: '2' });
    expect(withView(views, { name: 'b', query: '3' })).toEqual([
      { name: 'a', query: '2' },
      { name: 'b', query: '3' },
    ]);
  });

  it('are renamed, and keep their order by name', () => {
    const [a, b] = [
      { name: 'a', query: '1' },
      { name: 'b', query: '2' },
    ];
    expect(renamedView([a, b], a, 'c')).toEqual([b, { name: 'c', query: '1' }]);
    expect(renamedView([a, b], a, 'b')).toEqual([{ name: 'b', query: '1' }]);
    expect(renamedView([a, b], a, 'a')).toEqual([a, b]);
  });

  it('of a damaged storage are left out', () => {
    expect(parseViews('{')).toEqual([]);
    expect(parseViews('[{"name": 1}, null, {"name": "a", "query": ""}]')).toEqual([
      { name: 'a', query: '' },
    ]);
  });
});
