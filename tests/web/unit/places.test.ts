import { describe, expect, it } from 'vitest';

import { parseRoute, sweepUrl, trialUrl, withQuery } from '../../../web/src/router';

describe('an address', () => {
  it.each([
    ['/', { page: 'sweeps' }],
    ['/sweeps', { page: 'sweeps' }],
    ['/sweeps/', { page: 'sweeps' }],
    ['/executors', { page: 'executors' }],
    ['/sweeps/s1', { page: 'sweep', sweep: 's1' }],
    ['/sweeps/s1/', { page: 'sweep', sweep: 's1' }],
    ['/sweeps/a%20b', { page: 'sweep', sweep: 'a b' }],
    ['/sweeps/s1/trials/17', { page: 'trial', sweep: 's1', trial: 17 }],
    ['/sweeps/s1/trials/x', { page: 'missing' }],
    ['/sweeps/s1/trials', { page: 'missing' }],
    ['/elsewhere', { page: 'missing' }],
  ])('%s is a place', (path, route) => expect(parseRoute(path)).toEqual(route));

  it('is made so that it is read back', () => {
    expect(parseRoute(sweepUrl('a/b'))).toEqual({
      page: 'sweep',
      sweep: 'a/b',
    });
    expect(parseRoute(trialUrl('s1', 3))).toEqual({
      page: 'trial',
      sweep: 's1',
      trial: 3,
    });
  });

  it('holds only what is set, in one order', () => {
    const query = new URLSearchParams('y=log&sort=best');
    expect(withQuery(query, { sort: undefined, q: 'lr<0.1' }).toString()).toBe('q=lr%3C0.1&y=log');
    expect(withQuery(query, { q: '' }).toString()).toBe('sort=best&y=log');
  });
});
