import { describe, expect, it } from 'vitest';

import { ApiError, localProblem } from '../../../web/src/api/client';
import type { Parameter } from '../../../web/src/api/contract';
import {
  annotation,
  durationText,
  extension,
  typedConfig,
  typedLimits,
  typedTags,
  typedValue,
  valuesText,
} from '../../../web/src/model/steering';
import { limitsSummary } from '../../../web/src/model/summary';
import { smallWorld } from '../mock/scenarios';
import { expectGolden } from './support/golden';

const lr: Parameter = { name: 'lr', type: 'float', min: 0.001, max: 0.5, scale: 'log' };
const width: Parameter = { name: 'width', type: 'int', min: 8, max: 64, scale: 'linear', step: 8 };
const optimizer: Parameter = { name: 'optimizer', type: 'categorical', values: ['sgd', 4, false] };

describe('notes and tags that are typed', () => {
  const before = { note: 'a\nb', tags: ['best', 'of a file'] };

  it('are separated by commas or blanks, except known ones', () => {
    expect(typedTags(' a,b  c,, of a file,a', before.tags)).toEqual(['a', 'b', 'c', 'of a file']);
  });

  it('are a request for what has changed', () => {
    expect(annotation(before, { note: 'a\r\nb', tags: 'best, of a file' })).toBeUndefined();
    expect(annotation(before, { note: '', tags: 'best, of a file' })).toEqual({ note: '' });
    expect(annotation(before, { note: 'a\nb', tags: 'best lr' })).toEqual({
      add_tags: ['lr'],
      remove_tags: ['of a file'],
    });
  });
});

describe('limits that are typed', () => {
  const before = typedLimits(smallWorld().sweep('s1'));

  it('start as the limits of the sweep, and are sent only if changed', () => {
    expect(before).toEqual({ max_trials: '12', max_step: '9', max_time: '0', max_gpu_hours: '0' });
    expect(extension(before, { ...before })).toEqual({});
    expect(extension(before, { ...before, max_trials: '40', max_gpu_hours: '0.5' })).toEqual({
      max_trials: 40,
      max_gpu_hours: 0.5,
    });
  });

  it('do not change if the field is empty or missing', () => {
    expect(extension(before, { max_trials: '', max_time: ' ' })).toEqual({});
  });

  it('have a time with its unit, and 0s for no limit', () => {
    expect(extension(before, { max_time: ' 2h ' })).toEqual({ max_time: '2h' });
    expect(extension({ ...before, max_time: '1d' }, { max_time: '0' })).toEqual({
      max_time: '0s',
    });
  });

  it('write times in the format of sweep files', () => {
    expect([0, 86_400, 5400, 3600, 90, 1.5].map(durationText)).toEqual([
      '0',
      '1d',
      '90m',
      '1h',
      '90s',
      '1.5s',
    ]);
  });
});

describe('a configuration that is typed', () => {
  it('is parsed to the values that were shown', () => {
    const config = { lr: 0.062, width: 32, optimizer: false };
    const parameters = [lr, width, optimizer];
    const typed = Object.fromEntries(
      parameters.map((each) => [
        each.name,
        typedValue(each, config[each.name as keyof typeof config]),
      ]),
    );
    expect(typed).toEqual({ lr: '0.062', width: '32', optimizer: '2' });
    expect(typedConfig(parameters, typed)).toEqual(config);
  });

  it('omits empty fields', () => {
    expect(typedValue(lr, undefined)).toBe('');
    expect(typedConfig([lr, width, optimizer], { lr: '0', width: '', optimizer: '' })).toEqual({
      lr: 0,
    });
  });

  it('says what may be typed', () => {
    expect(valuesText(lr)).toBe('0.001 … 0.5, log');
    expect(valuesText(width)).toBe('8 … 64 by 8');
    expect(valuesText({ ...width, step: 1 })).toBe('8 … 64');
  });
});

describe('a refusal', () => {
  it('names each place that was wrong', () => {
    const errors = [
      { pointer: '/config/lr', line: 0, column: 0, message: 'missing' },
      { pointer: '', line: 0, column: 0, message: 'unknown key' },
    ];
    const refused = new ApiError({ ...localProblem('Wrong', 422), errors });
    expect(refused.message).toBe('config.lr: missing\nunknown key');
  });

  it('is the detail if there is one, otherwise the title', () => {
    const conflict = localProblem('Conflict', 409);
    expect(new ApiError({ ...conflict, detail: 'ended' }).message).toBe('ended');
    expect(new ApiError(conflict).message).toBe('Conflict');
  });
});

describe('the limits of a sweep', () => {
  const { limits } = smallWorld().sweep('s1');

  it('are shown if there are any', () => {
    expect(limitsSummary(limits)).toBe('');
    expect(limitsSummary({ ...limits, target: 0.95, max_time: 7200, patience: 1 })).toBe(
      'target 0.9500, 2 h 00 min, patience 1 trial',
    );
    const plateau = {
      metric: 'loss',
      mode: 'min',
      patience: 5,
      std: 0.1,
      grace_period: 1,
    } as const;
    const threshold = { loss: { at_least: 50, at_most: 0.5, grace_period: 1 } };
    expectGolden('web/limits', limitsSummary({ ...limits, plateau, threshold }));
  });
});
