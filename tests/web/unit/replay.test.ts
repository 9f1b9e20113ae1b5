import { describe, expect, it } from 'vitest';

import {
  changedTrials,
  comparisons,
  unknownSentence,
  winnerSentence,
} from '../../../web/src/model/replay';
import { smallReplay } from '../mock/replays';
import { expectGolden } from './support/golden';

describe('a replay', () => {
  it('compares what was with what had been, both bounds where they differ', () => {
    const rows = comparisons(smallReplay());
    expect(rows.map(({ name, recorded, replayed }) => [name, recorded, replayed])).toEqual([
      ['CPU-hours', '2.100', '1.300 … 1.900'],
      ['Time', '21 min 00 s', '13 min 00 s … 19 min 00 s'],
      ['Steps', '21', '13 … 19'],
      ['Best accuracy', '0.9000', '0.8500'],
    ]);
  });

  it('counts GPU-hours where there are GPUs', () => {
    const replay = smallReplay();
    replay.recorded.gpu_hours = 4;
    expect(comparisons(replay)[0]?.name).toBe('GPU-hours');
  });

  it('says what becomes of the winner', () => {
    const replay = smallReplay();
    const loses = winnerSentence(replay);
    replay.best_case.keeps_best_trial = true;
    const depends = winnerSentence(replay);
    replay.worst_case.keeps_best_trial = true;
    expectGolden('web/winner', loses, depends, winnerSentence(replay));
  });

  it('lists the trials that end elsewhere, and those of which nobody knows', () => {
    expect(changedTrials(smallReplay())).toEqual([
      {
        number: 1,
        recorded: 'completed 9',
        replayed: 'stopped 1',
        why: smallReplay().trials[1]?.worst_case.reason,
      },
      {
        number: 2,
        recorded: 'stopped 3',
        replayed: 'stopped 3 … completed 9 ?',
        why: expect.stringContaining('step 3'),
      },
    ]);
    expect(unknownSentence(smallReplay())).toContain('1 trial of 3 ');
    expect(unknownSentence({ ...smallReplay(), unknown: 0 })).toBe('');
  });
});
