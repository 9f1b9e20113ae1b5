import { describe, expect, it } from 'vitest';

import { fileName, plotToCsv } from '../../../web/src/ui/export/plot_export';

describe('exported data', () => {
  it('quotes what CSV requires, and leaves missing values empty', () => {
    const rows = [
      [1, 'a,b', undefined],
      [2, 'say "x"', NaN],
    ];
    expect(plotToCsv({ columns: ['trial', 'name', 'loss'], rows })).toBe(
      'trial,name,loss\r\n1,"a,b",\r\n2,"say ""x""",NaN\r\n',
    );
  });
});

describe('the name of an exported file', () => {
  it('has the place of the page and the title', () => {
    expect(fileName('/sweeps/s1', 'val/loss by step', 'svg')).toBe('s1-val-loss-by-step.svg');
    expect(fileName('/sweeps/s1/trials/3', 'loss', 'csv')).toBe('s1-3-loss.csv');
    expect(fileName('/', '…', 'png')).toBe('chart.png');
  });
});
