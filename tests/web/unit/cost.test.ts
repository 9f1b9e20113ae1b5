import { describe, expect, it } from 'vitest';

import { costParts, costSentence, formatHours, formatMoney } from '../../../web/src/model/cost';
import { noCost } from '../mock/no_cost';

describe('cost', () => {
  it('has hours with three digits', () => {
    expect([0, 0.012345, 1, 12.34, 99.96, 1204.4].map(formatHours)).toEqual([
      '0',
      '0.0123',
      '1',
      '12.3',
      '100',
      '1,204',
    ]);
  });

  it('shows money with cents and the currency', () => {
    expect(formatMoney(1234.5, 'EUR')).toBe('1,234.50 EUR');
    expect(formatMoney(2, '')).toBe('2.00');
  });

  it('lacks saved hours that are unknown', () => {
    expect(costParts(noCost).map(({ name }) => name)).toEqual(['used', 'wasted']);
    const price = { gpu_hour: 1, currency: '$', used: 2, wasted: 0, saved: 5 };
    expect(costParts({ ...noCost, saved_hours: 5, price }).at(-1)).toMatchObject({
      name: 'saved',
      hours: 5,
      money: '5.00 $',
    });
  });

  it('counts attempts in a sentence', () => {
    expect(costSentence({ ...noCost, attempts: 1 })).toBe('1 attempt.');
    expect(costSentence({ ...noCost, attempts: 9, running: 2, broken: 3, stopped: 1 })).toBe(
      '9 attempts, 2 running, 3 failed or lost; 1 trial stopped early.',
    );
  });
});
