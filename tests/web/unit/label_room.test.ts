import { describe, expect, it } from 'vitest';

import { axisLabels } from '../../../web/src/ui/curve_drawing';
import { labelRoom } from '../../../web/src/ui/label_room';

describe('the room for the labels of an axis', () => {
  it('is the same for all short labels, so that charts stay aligned', () => {
    expect(labelRoom(['0', '0.5', '1'])).toBe(labelRoom(null));
  });

  it('grows with the longest label', () => {
    expect(labelRoom(['1e−5', '0.0001000'])).toBeGreaterThan(labelRoom(['1e−5']));
  });
});

describe('the labels of a logarithmic axis', () => {
  it('are short, also at the end of its range', () => {
    expect(axisLabels([0.482535330465, 0.6, 0.9], true)).toEqual(['0.4825', '0.6', '0.9']);
  });
});
