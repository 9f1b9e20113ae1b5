import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { suggest, type Schema } from '../../../web/src/model/editor/sweep_keys';

const schema = JSON.parse(
  readFileSync(new URL('../../../docs/schemas/sweep-v1.json', import.meta.url), 'utf8'),
) as Schema;

/** The suggestions at the mark `|` of a text. */
function at(text: string): string[] {
  const cursor = text.indexOf('|');
  return suggest(text.replace('|', ''), cursor, schema).options.map((each) => each.text);
}

describe('suggestions in a sweep file', () => {
  it('are the keys that begin with the word and are not there yet', () => {
    expect(at('comm|')).toEqual(['command:']);
    expect(at('command: [a]\n|\nstop:\n  max_trials: 3\n')).not.toContain('command:');
    expect(at('command: [a]\n|\nstop:\n  max_trials: 3\n')).not.toContain('stop:');
    expect(at('command: [a]\n|')).toContain('metric:');
  });

  it('are the keys of the map that contains the line', () => {
    expect(at('stop:\n  max_trials: 3\n  max_t|')).toEqual(['max_time:', 'max_trial_time:']);
    expect(at('parameters:\n  lr:\n    |')).toContain('scale:');
  });

  it('depend on the name of the algorithm', () => {
    expect(at('scheduler:\n  name: asha\n  |')).toContain('reduction_factor:');
    expect(at('scheduler:\n  name: fifo\n  |')).not.toContain('reduction_factor:');
  });

  it('are values after a key', () => {
    expect(at('metric:\n  name: loss\n  mode: ma|')).toEqual(['max', 'maximize', 'maximise']);
    expect(at('scheduler:\n  name: as|')).toEqual(['asha']);
    expect(at('parameters:\n  lr:\n    scale: l|')).toEqual(['linear', 'log']);
  });

  it('are absent inside a value', () => {
    expect(at('command: [python3, |')).toEqual([]);
    expect(at('name: my sweep|')).toEqual([]);
  });
});
